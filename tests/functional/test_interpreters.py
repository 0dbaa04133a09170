"""The same verdicts and the same redaction under every Python on the machine that ragwatch admits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from interpreters import Interpreter, ends_of_the_range, interpreters
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
    ("own", "versions", "chosen"),
    [
        ((3, 11), [], []),
        ((3, 11), [(3, 11, 2)], []),
        ((3, 11), [(3, 13, 0)], [(3, 13, 0)]),
        ((3, 11), [(3, 11, 2), (3, 12, 1), (3, 13, 0), (3, 13, 5)], [(3, 13, 0)]),
        ((3, 12), [(3, 11, 2), (3, 12, 1), (3, 13, 0)], [(3, 11, 2), (3, 13, 0)]),
        ((3, 13), [(3, 11, 2), (3, 11, 7), (3, 12, 1)], [(3, 11, 2)]),
    ],
)
def test_a_short_run_is_under_both_ends_of_the_range(
    own: tuple[int, int], versions: list[tuple[int, int, int]], chosen: list[tuple[int, int, int]]
) -> None:
    """What passes under the oldest and the newest version is not run under those between."""
    pythons = [Interpreter(Path("python3"), version, "/usr") for version in versions]
    assert [python.version for python in ends_of_the_range(pythons, own)] == chosen
