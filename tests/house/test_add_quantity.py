"""CONTRIBUTING.md tells the truth: its diff adds a quantity to verdict lines, series and recording rules."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.changed_copy import ROOT, changed_copy, run_ragwatch, scrape

DIFF = re.compile(r"```diff\n(.*?)```", re.DOTALL)
HUNK = re.compile(r"--- a/(\S+)\n@@\n((?:[ +].*\n|\n)+)")
ANSWER = {
    "question": "Where does the old mill stand?",
    "contexts": ["The old mill stands by the river.", "Tomatoes need six hours of sun."],
    "answer": "The old mill stands by the river.",
}


def _change(name: str, hunk: str) -> tuple[str, str, str]:
    """Path, text and replacement of a hunk without line numbers."""
    lines = hunk.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line.startswith(" "))
    return name, before, "".join(line[1:] for line in lines)


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package to which the diff was applied."""
    (diff,) = DIFF.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    hunks = HUNK.findall(diff)
    assert len(hunks) == 2
    assert sum(line.startswith("+") for _, hunk in hunks for line in hunk.splitlines()) <= 18
    return changed_copy(tmp_path_factory.mktemp("changed"), (_change(*hunk) for hunk in hunks))


def test_a_row_and_a_function_are_a_quantity(changed: Path) -> None:
    """Verdict lines have its score, a scrape its series, and rules record it."""
    line = json.loads(run_ragwatch(changed, "judge", text=json.dumps(ANSWER)))
    assert line["scores"]["relevant_use"] == 1.0
    assert re.search(r"(?m)^ragwatch_relevant_use_ratio\{[^}]*\} 1\.0$", scrape(changed, json.dumps(ANSWER)))
    rules = run_ragwatch(changed, "rules", "--config", "ragwatch.yaml")
    assert "quantity: relevant_use" in rules.replace('"', "")
