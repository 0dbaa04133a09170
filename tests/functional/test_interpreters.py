"""The same verdicts and the same redaction under every Python on the machine that ragwatch admits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from interpreters import Interpreter, interpreters, oldest_and_newest
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


@pytest.mark.parametrize(
    ("versions", "chosen"),
    [
        ([], []),
        ([(3, 11, 2)], []),
        ([(3, 13, 0)], [(3, 13, 0)]),
        ([(3, 11, 2), (3, 12, 1), (3, 13, 0)], [(3, 12, 1), (3, 13, 0)]),
    ],
)
def test_a_short_run_is_under_other_versions(
    versions: list[tuple[int, int, int]], chosen: list[tuple[int, int, int]]
) -> None:
    """Another patch of the version that runs everything adds nothing to it."""
    pythons = [Interpreter(Path("python3"), version, "/usr") for version in versions]
    assert [python.version for python in oldest_and_newest(pythons, (3, 11))] == chosen
