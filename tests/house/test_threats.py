"""The threat model: every threat once, and every test that it names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.split("|")[1:-1]]
    for line in (ROOT / "docs" / "security.md").read_text(encoding="utf-8").splitlines()
    if re.match(r"\| X\d+ \|", line)
]
THREATS = 26


def test_every_threat_has_a_row() -> None:
    """X1 to X26, in order, each with what stops it and at least one test."""
    assert [row[0] for row in ROWS] == [f"X{number}" for number in range(1, THREATS + 1)]
    assert all(len(row) == 4 and all(row) for row in ROWS)


def test_the_tests_that_are_named_exist() -> None:
    """Each name in the last column is that of a test; names that carry a number stand in its row."""
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    known = set(re.findall(r"(?m)^(?:async )?def (test_\w+)", tests))
    for number, _, _, names in ROWS:
        named = re.findall(r"`(\w+)`", names)
        assert named
        assert set(named) <= known, number
        for name in named:
            numbers = re.match(r"test_((?:x\d+_)+)", name)
            assert numbers is None or number.lower() in numbers[1].split("_"), (number, name)
