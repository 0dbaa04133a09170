"""What is released agrees: the version, which stands in ragwatch/__init__.py alone, the image, and the chart."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from ragwatch import __version__
from tools import release
from tools.chart import values_schema

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


DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")


def pins(name: str) -> set[str]:
    """What a lock file pins."""
    return set(re.findall(r"(?m)^([\w.-]+==[^\s;\\]+)", (ROOT / name).read_text(encoding="utf-8")))


def wanted(*extras: str) -> set[str]:
    """Names of what the package and some of its extras need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"], *(line for each in extras for line in project["optional-dependencies"][each])]
    return {re.split(r"[<>=~!\[; ]", line)[0].lower() for line in lines}


@pytest.mark.parametrize(("argument", "extras"), [("", ()), ("local", ("local",))])
def test_x25_what_the_image_is_built_of_is_locked(argument: str, extras: tuple[str, ...]) -> None:
    """Each value of EXTRAS names a lock that is copied, holds all that is needed, and differs only in what it adds."""
    assert 'ARG EXTRAS=""' in DOCKERFILE
    assert '-r "requirements/${EXTRAS:-run}.lock"' in DOCKERFILE
    file = f"requirements/{argument or 'run'}.lock"
    copied = re.search(r"(?m)^COPY (requirements.*) requirements/$", DOCKERFILE)
    assert copied is not None
    assert file in copied[1].split()
    assert pins("requirements/run.lock") <= pins(file)
    names = {each.partition("==")[0] for each in pins(file)}
    copied_projects = {"ragwatch-reader"} if "COPY reader reader" in DOCKERFILE and "./reader" in DOCKERFILE else set()
    assert wanted("encryption", "postgres", *extras) - copied_projects <= names


def test_sqlite_may_sort_in_the_state_directory() -> None:
    """Large sorts need a file; where the root is read-only and /tmp is no volume, only the state can hold it."""
    volume = re.search(r"(?m)^VOLUME (\S+)$", DOCKERFILE)
    assert volume is not None
    assert f"SQLITE_TMPDIR={volume[1]}" in DOCKERFILE


def test_the_image_has_what_a_wheel_has() -> None:
    """The hook of the build, and the documents that it puts into the wheel, are copied before the package is built."""
    copied = re.findall(r"(?m)^COPY (\S+) ", DOCKERFILE)
    hook = (ROOT / "tools" / "manual_page.py").read_text(encoding="utf-8")
    assert {"tools/manual_page.py", *re.findall(r'"((?:docs|deploy)/[^"]+)":', hook)} <= set(copied)


# `make check-deploy` renders the chart with helm. Without helm, its schema and defaults are held here.
CHART = Path(__file__).parents[2] / "deploy" / "helm" / "ragwatch"
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
SCHEMA = values_schema()


def refused(values: dict[str, Any]) -> list[str]:
    """Places of values that the schema refuses."""
    validator = jsonschema.Draft7Validator(SCHEMA)
    return [".".join(map(str, error.absolute_path)) for error in validator.iter_errors(values)]


def test_the_values_and_the_example_are_accepted() -> None:
    """Every value of values.yaml is in the schema, and the other way round."""
    example = yaml.safe_load((CHART.parent / "example-values.yaml").read_text(encoding="utf-8"))
    assert (refused(VALUES), refused(example)) == ([], [])
    assert {*VALUES, "global"} == set(SCHEMA["properties"])
    for name, value in VALUES.items():
        if isinstance(value, dict) and "properties" in SCHEMA["properties"][name] and name != "config":
            assert set(value) == set(SCHEMA["properties"][name]["properties"]), name


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"replicass": 2}, ""),
        ({"config": {"sampling": {"probabilty": 0.2}}}, "config.sampling"),
        ({"config": {"state": "/elsewhere"}}, "config"),
        ({"config": {"web": {"listen": "127.0.0.1:1"}}}, "config.web"),
        ({"auth": {"basicAuthUsers": {"oncall": "the password in the clear"}}}, "auth.basicAuthUsers.oncall"),
        ({"service": {"port": 70000}}, "service.port"),
    ],
)
def test_what_is_wrong_is_refused_by_its_place(values: dict[str, Any], place: str) -> None:
    """A misspelt key of ragwatch, a key that the chart sets itself, a password where a hash belongs."""
    if "config" in values:
        values = {"config": {**VALUES["config"], **values["config"]}}
    assert refused(values) == [place]
