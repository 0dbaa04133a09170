"""The same verdicts and the same redaction under every Python on the machine that ragwatch admits."""

from __future__ import annotations

import subprocess

import pytest
from interpreters import Interpreter, interpreters
from support.patience import DEADLINE
from support.readings import BARE, FIGURES

PYTHONS = interpreters()


@pytest.mark.parametrize("python", PYTHONS, ids=map(str, PYTHONS))
def test_reads_and_redacts_alike(python: Interpreter) -> None:
    """Claims, features, scores and redacted texts are those that are pinned, whatever order its sets have."""
    command = [str(python.path), "-I", "-S", "-B", "-c", BARE]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE)
    assert done.stderr == ""
    lines, pinned = done.stdout.splitlines(), FIGURES.read_text().splitlines()
    assert [pair for pair in zip(lines, pinned, strict=True) if pair[0] != pair[1]] == []
