"""The version has one place, ragwatch/__init__.py, and whatever else names a version of ragwatch agrees with it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from ragwatch import __version__
from tools import release

ROOT = Path(__file__).parents[2]


def test_the_distributions_take_the_version_from_the_package() -> None:
    """The wheel and the sdist have no version of their own."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == release.SOURCE


@pytest.mark.parametrize("name", release.PLACES)
def test_every_place_names_this_version(name: str) -> None:
    """What a release writes is there, and agrees."""
    versions = re.findall(release.PLACES[name], (ROOT / name).read_text(encoding="utf-8"))
    assert versions
    assert {*versions} == {__version__}


def test_no_other_file_of_deploy_or_docs_names_a_version_of_the_image() -> None:
    """A tag of the image that a release would not write is found."""
    files = (path for folder in ("deploy", "docs") for path in (ROOT / folder).rglob("*") if path.is_file())
    tagged = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "README.md", *files)
        if re.search(rb"(?<!/)ragwatch:\d+\.\d", path.read_bytes())
    }
    assert tagged <= {*release.PLACES}


def test_the_newest_release_of_the_changelog_is_this_version() -> None:
    """What is not released stands above it, under its own heading."""
    headings = re.findall(r"(?m)^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert headings[:2] == ["Unreleased", __version__]


def test_a_release_is_cut_once_and_from_something() -> None:
    """The unreleased changes get the heading; twice, or without changes, is an error."""
    changes = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n\n## [0.1.0]\n"
    after = release.cut(changes, "0.2.0", "2026-11-23")
    assert after.index("[Unreleased]") < after.index("## [0.2.0] - 2026-11-23") < after.index("A thing")
    with pytest.raises(ValueError, match="already"):
        release.cut(after, "0.2.0", "2026-11-24")
    with pytest.raises(ValueError, match="nothing"):
        release.cut(after, "0.3.0", "2026-11-24")
