"""Copies of the package to which a change is applied, and programs that run them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]


def changed_copy(folder: Path, changes: Iterable[tuple[str, str, str]]) -> Path:
    """Make a copy of the package and of config.example.yaml in a folder, with changes: path, text, its replacement."""
    shutil.copytree(ROOT / "ragwatch", folder / "ragwatch", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "config.example.yaml", folder)
    for name, before, after in changes:
        path = folder / name
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1, f"{name}: the change does not fit: {before}"
        path.write_text(text.replace(before, after), encoding="utf-8")
    return folder


def run_python(folder: Path, *arguments: str, text: str = "") -> str:
    """Run Python with the package of a copy, and tools of the repository; return its output."""
    path = os.pathsep.join(map(str, (folder, ROOT)))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, env=environment, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_ragwatch(folder: Path, *arguments: str, text: str = "") -> str:
    """Run a command of a copy; return its output."""
    return run_python(folder, "-m", "ragwatch", *arguments, text=text)


def scrape(folder: Path, record: str) -> str:
    """Judge a log of one record with a copy, and return what Prometheus would scrape."""
    (folder / "rag.jsonl").write_text(f"{record}\n", encoding="utf-8")
    (folder / "ragwatch.yaml").write_text(
        f"sources: [{{kind: tail, name: app, path: {folder}/rag.jsonl}}]\nsampling: {{probability: 1.0}}\n",
        encoding="utf-8",
    )
    return run_ragwatch(folder, "run", "--once", "--config", "ragwatch.yaml")
