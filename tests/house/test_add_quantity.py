"""CONTRIBUTING.md tells the truth: its diff adds a quantity to verdict lines, series and recording rules."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DIFF = re.compile(r"```diff\n(.*?)```", re.DOTALL)
HUNK = re.compile(r"--- a/(\S+)\n@@\n((?:[ +].*\n|\n)+)")
ANSWER = {
    "question": "Where does the old mill stand?",
    "contexts": ["The old mill stands by the river.", "Tomatoes need six hours of sun."],
    "answer": "The old mill stands by the river.",
}


def _apply(hunk: str, path: Path) -> int:
    """Apply a hunk without line numbers at the one place that it fits; return the number of lines that it adds."""
    lines = hunk.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line.startswith(" "))
    after = "".join(line[1:] for line in lines)
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1, f"the diff of CONTRIBUTING.md does not fit {path.name}"
    path.write_text(text.replace(before, after), encoding="utf-8")
    return sum(line.startswith("+") for line in lines)


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package to which the diff was applied."""
    folder = tmp_path_factory.mktemp("changed")
    shutil.copytree(ROOT / "ragwatch", folder / "ragwatch", ignore=shutil.ignore_patterns("__pycache__"))
    (diff,) = DIFF.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    hunks = HUNK.findall(diff)
    assert len(hunks) == 2
    assert sum(_apply(hunk, folder / name) for name, hunk in hunks) <= 18
    return folder


def _ragwatch(folder: Path, *arguments: str, text: str = "") -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "ragwatch", *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, env=environment, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_row_and_a_function_are_a_quantity(changed: Path) -> None:
    """Verdict lines have its score, a scrape its series, and rules record it."""
    line = json.loads(_ragwatch(changed, "judge", text=json.dumps(ANSWER)))
    assert line["scores"]["relevant_use"] == 1.0

    (changed / "rag.jsonl").write_text(json.dumps(ANSWER) + "\n", encoding="utf-8")
    source = {"kind": "tail", "name": "app", "path": f"{changed}/rag.jsonl", "start": "beginning"}
    config = {"state": f"{changed}/state", "sources": [source], "sampling": {"probability": 1.0}}
    (changed / "ragwatch.yaml").write_text(json.dumps(config), encoding="utf-8")
    scrape = _ragwatch(changed, "run", "--once", "--config", "ragwatch.yaml")
    assert re.search(r"(?m)^ragwatch_relevant_use_ratio\{[^}]*\} 1\.0$", scrape)
    assert "quantity: relevant_use" in _ragwatch(changed, "rules", "--config", "ragwatch.yaml").replace('"', "")
