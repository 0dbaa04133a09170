"""Numbers that YAML reads otherwise than people write them are refused, with the path and what to write."""

from __future__ import annotations

import pytest

from ragwatch.config.text import parse_text, value_of
from ragwatch.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {b: [1, 1:30]}", r"c: a\.b\[1\]: YAML reads 1:30 as a number in base 60; write \"1:30\" in quotes"),
        ("a: 1:30.5", r"a: YAML reads 1:30\.5 as a number in base 60"),
        ("1:30: x", r"c: 1:30: YAML reads 1:30 as"),
        ("? [1:30]\n: x", r"c: \?\[0\]: YAML reads 1:30 as"),
        ("a: 012", r"a: YAML reads 012 as an octal number, 10; write 12 for the number, or \"012\" in quotes"),
        ("a: -0_17", r"a: YAML reads -0_17 as an octal number, -15; write -17 for the number"),
        ("a: 00", r"a: YAML reads 00 as an octal number, 0; write 0 for the number"),
        ("a: &x 010\nb: *x", r"a: YAML reads 010"),
        ("a: 2026-13-45", "c: holds a value that cannot be read: month must be in 1..12; quote it"),
        ("a: " + "9" * 5000, r"c: holds a value that cannot be read: Exceeds the limit .*; quote it"),
    ],
)
def test_x18_ambiguous_numbers(text: str, message: str) -> None:
    """The error is about the first of them."""
    with pytest.raises(ConfigError, match=message):
        parse_text(text, "c")


def test_unambiguous_values() -> None:
    """Quoted texts, zero, hexadecimal, decimals, addresses and durations are as they were."""
    text = "{a: '1:30', b: \"012\", c: 0, d: 0x1F, e: 0.5, f: '::1', g: 127.0.0.1:80, h: 08, i: 1m30, j: -0}"
    assert list(parse_text(text, "c").values()) == ["1:30", "012", 0, 31, 0.5, "::1", "127.0.0.1:80", "08", "1m30", 0]


def test_values_of_a_command_line() -> None:
    """The same holds there."""
    assert value_of("0.5") == 0.5
    assert value_of("") is None
    with pytest.raises(ConfigError, match="value: YAML reads 1:30"):
        value_of("1:30")
