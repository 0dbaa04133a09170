"""What is released: the wheel of ragwatch is small, and the model of `kind: local` is a wheel of its own."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tomllib
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest

from ragwatch import __version__
from tools.manual import manual

ROOT = Path(__file__).parents[2]
MAX_BASE_BYTES = 2_000_000

pytestmark = pytest.mark.costly


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


def test_the_wheel_of_the_model_is_whole(tmp_path: Path) -> None:
    """It has the three files with the digests that ragwatch verifies, licence and notice, and no dependency."""
    with built(ROOT / "reader", tmp_path) as wheel:
        model = "ragwatch_reader/model/"
        digests = json.loads(wheel.read(f"{model}local.json"))["files"]
        assert {name: hashlib.sha256(wheel.read(model + name)).hexdigest() for name in digests} == digests
        assert {"LICENSE", "NOTICE"} <= {Path(name).name for name in wheel.namelist()}
        assert metadata(wheel) == ("ragwatch-reader", [])


def test_the_range_of_the_extra_admits_the_model_of_this_repository() -> None:
    """What the extra asks for and what `reader/` is are released together."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = tomllib.loads((ROOT / "reader" / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    (wanted,) = (line for line in project["optional-dependencies"]["local"] if line.startswith("ragwatch-reader"))
    minor = ".".join(version.split(".")[:2])
    assert wanted.startswith(f"ragwatch-reader>={minor},<")
