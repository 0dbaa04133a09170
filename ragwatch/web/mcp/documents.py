"""Documents that assistants may read: the glossary and the runbooks, from the wheel or the checkout."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

SCHEME = "ragwatch://"
_HERE = Path(__file__).parent
_CHECKOUT = _HERE.parents[2]


@cache
def documents() -> Mapping[str, Path]:
    """Return the files by their URI; those that are not installed are left out."""
    folders = {"": (_HERE, _CHECKOUT / "docs"), "runbooks": (_HERE / "runbooks", _CHECKOUT / "deploy" / "runbooks")}
    files = {f"{SCHEME}glossary": _first(*(folder / "glossary.md" for folder in folders[""]))}
    runbooks = next((folder for folder in folders["runbooks"] if folder.is_dir()), None)
    for file in () if runbooks is None else sorted(runbooks.glob("Ragwatch*.md")):
        files[f"{SCHEME}runbooks/{file.stem}"] = file
    return {uri: file for uri, file in files.items() if file is not None}


def _first(*files: Path) -> Path | None:
    return next((file for file in files if file.is_file()), None)
