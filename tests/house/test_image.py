"""The image: what may be asked for beside the defaults is locked, and it runs on a read-only root."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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
