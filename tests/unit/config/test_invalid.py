"""Every wrong configuration in tests/data/configs is refused with the line that its first comment expects."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragwatch.config import load
from ragwatch.errors import ConfigError

FILES = sorted((Path(__file__).parents[2] / "data" / "configs").glob("invalid-*.yaml"))


def test_there_are_files() -> None:
    """The folder is where we look for it."""
    assert len(FILES) >= 20


@pytest.mark.costly
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem.removeprefix("invalid-"))
def test_x18_wrong_files_say_what_is_wrong(path: Path) -> None:
    """One line names the place, what is wrong, and what to write instead."""
    expected = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# expect: ")
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert expected in str(caught.value)
