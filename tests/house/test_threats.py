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
THREATS = 27
NAMES = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"(?m)^(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"))
}


def test_every_threat_has_a_row() -> None:
    """X1 to X27, in order, each with what stops it and at least one test."""
    assert [row[0] for row in ROWS] == [f"X{number}" for number in range(1, THREATS + 1)]
    assert all(len(row) == 4 and all(row) for row in ROWS)


def test_the_tests_that_are_named_exist() -> None:
    """Each name in the last column is that of a test; names with a number stand in its row, and every row has one."""
    for number, _, _, names in ROWS:
        named = re.findall(r"`(\w+)`", names)
        assert named
        assert set(named) <= NAMES, number
        numbers = [match[1].split("_") for name in named if (match := re.match(r"test_((?:x\d+_)+)", name))]
        assert numbers, number
        assert all(number.lower() in each for each in numbers), number


def test_every_test_with_a_number_is_named() -> None:
    """A test that carries the number of a threat stands in the row of that threat."""
    rows = {number.lower(): set(re.findall(r"`(\w+)`", names)) for number, _, _, names in ROWS}
    for name in NAMES:
        for number in re.findall(r"x\d+(?=_)", (re.match(r"test_((?:x\d+_)+)", name) or [""])[0]):
            assert name in rows[number], (number, name)
