"""Cuts a release: writes its version wherever one is written, and gives the unreleased changes its heading.

    python tools/release.py 0.2.0 2026-11-23

`ragwatch/__init__.py` is the place that the wheel, the sdist, the pages and the series take it from; the others are
listed in `PLACES`, and `tests/house/test_version.py` holds that they agree. `make kit` writes the rest.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = "ragwatch/__init__.py"
NUMBER = r"\d+\.\d+\.\d+"
PLACES: Mapping[str, str] = {
    SOURCE: rf'(?m)^__version__ = "({NUMBER})"$',
    "deploy/helm/ragwatch/Chart.yaml": rf'(?m)^(?:version|appVersion): "?({NUMBER})"?$',
    "deploy/kubernetes/sidecar.yaml": rf"image: ragwatch:({NUMBER})",
    "deploy/kubernetes/sidecar-patch.yaml": rf'image: "ragwatch:({NUMBER})"',
    "deploy/kubernetes/fleet/deployment.yaml": rf"image: ragwatch:({NUMBER})",
}
"""Files that name the version, and what stands around it."""
UNRELEASED = "## [Unreleased]\n"


def replaced(text: str, pattern: str, version: str) -> str:
    """The text with another version in each place that the pattern finds."""
    return re.sub(pattern, lambda place: place[0].replace(place[1], version), text)


def cut(changes: str, version: str, date: str) -> str:
    """The changelog, with the unreleased changes under the heading of a version.

    Raises:
        ValueError: That version has a heading already, or nothing is unreleased.
    """
    if f"## [{version}]" in changes:
        raise ValueError(f"CHANGELOG.md: {version} has a heading already")
    before, heading, after = changes.partition(UNRELEASED)
    if not heading or after.lstrip().startswith("## "):
        raise ValueError("CHANGELOG.md: nothing is unreleased")
    return f"{before}{UNRELEASED}\n## [{version}] - {date}\n{after}"


def main(version: str, date: str) -> None:
    """Write the version everywhere."""
    if not re.fullmatch(NUMBER, version) or not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        sys.exit("give a version such as 0.2.0 and a date such as 2026-11-23")
    path = ROOT / "CHANGELOG.md"
    try:
        path.write_text(cut(path.read_text(encoding="utf-8"), version, date), encoding="utf-8")
    except ValueError as error:
        sys.exit(str(error))
    for name, pattern in PLACES.items():
        file = ROOT / name
        file.write_text(replaced(file.read_text(encoding="utf-8"), pattern, version), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
