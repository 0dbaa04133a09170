"""What is released agrees: the version, which stands in ragwatch/__init__.py alone, the image, and the chart."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from email import message_from_bytes
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import jsonschema
import pytest
import yaml

from ragwatch import __version__
from tools import release
from tools.chart import values_schema
from tools.manual import manual

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


MAX_BASE_BYTES = 2_000_000


def built(project: Path, folder: Path) -> ZipFile:
    """The wheel of a project, built from a copy of what its wheel is made of."""
    copy = folder / "project"
    ignored = shutil.ignore_patterns("__pycache__", "tests", "training", "docs", ".*")
    shutil.copytree(project, copy, ignore=ignored)
    if project == ROOT:
        page = copy / "dist" / "kit" / "ragwatch.1"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(manual(), encoding="utf-8")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = (folder / "dist").glob("*.whl")
    return ZipFile(wheel)


def metadata(wheel: ZipFile) -> tuple[str, list[str]]:
    """Name and dependencies."""
    (name,) = (name for name in wheel.namelist() if name.endswith("dist-info/METADATA"))
    message = message_from_bytes(wheel.read(name))
    return message["Name"], message.get_all("Requires-Dist") or []


@pytest.mark.costly
def test_the_wheel_of_ragwatch_is_small_and_holds_no_model(tmp_path: Path) -> None:
    """It depends on the package of the model through the extra `local` only."""
    with built(ROOT, tmp_path) as wheel:
        assert not [name for name in wheel.namelist() if name.endswith(".onnx") or "reader" in name.split("/")[0]]
        assert [name for name in wheel.namelist() if name.endswith("ragwatch.1")] == [
            f"ragwatch_exporter-{__version__}.data/data/share/man/man1/ragwatch.1"
        ]
        assert sum(entry.compress_size for entry in wheel.infolist()) < MAX_BASE_BYTES
        assert "ragwatch/web/mcp/runbooks/RagwatchQualityDrift.md" in wheel.namelist()
        name, dependencies = metadata(wheel)
    assert name == "ragwatch-exporter"
    (reader,) = (line for line in dependencies if line.startswith("ragwatch-reader"))
    assert "extra == 'local'" in reader.replace('"', "'")


@pytest.mark.costly
def test_the_wheel_of_the_model_is_whole(tmp_path: Path) -> None:
    """It has the three files with the digests that ragwatch verifies, licence and notice, and no dependency."""
    with built(ROOT / "reader", tmp_path) as wheel:
        model = "ragwatch_reader/model/"
        digests = json.loads(wheel.read(f"{model}local.json"))["files"]
        assert {name: hashlib.sha256(wheel.read(model + name)).hexdigest() for name in digests} == digests
        assert {"LICENSE", "NOTICE"} <= {Path(name).name for name in wheel.namelist()}
        assert metadata(wheel) == ("ragwatch-reader", [])


@pytest.mark.costly
def test_the_range_of_the_extra_admits_the_model_of_this_repository() -> None:
    """What the extra asks for and what `reader/` is are released together."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = tomllib.loads((ROOT / "reader" / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    (wanted,) = (line for line in project["optional-dependencies"]["local"] if line.startswith("ragwatch-reader"))
    minor = ".".join(version.split(".")[:2])
    assert wanted.startswith(f"ragwatch-reader>={minor},<")
