"""Surrogate pairs in YAML are the characters that they mean; half of one is refused, with its path."""

from __future__ import annotations

import pytest

from ragwatch.config.text import parse_text, value_of
from ragwatch.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\ud83d\ude00"', "😀"),
        (r'"\U0000d83d\U0000de00 and \uD834\uDD1E"', "😀 and 𝄞"),
        (r'"\ufeff\uffff\U0001f600"', "\ufeff\uffff😀"),
        (r"'\ud83d'", r"\ud83d"),
        ("😀", "😀"),
    ],
)
def test_pairs_are_joined(text: str, value: str) -> None:
    """Where the escapes are read; other characters stay as they are."""
    assert value_of(text) == value
    assert parse_text(f"a: {{b: [1, {text}]}}", "c") == {"a": {"b": [1, value]}}


def test_keys_are_texts_too() -> None:
    """Also where an alias repeats them."""
    assert parse_text(r'{a: &x {"\ud83d\ude00": 1}, b: *x}', "c") == {"a": {"😀": 1}, "b": {"😀": 1}}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (r'a: {b: [1, "\ud83d"]}', "a.b[1]"),
        (r'a: "\ude00\ud83d"', "a"),
        (r'a: "x\ude00"', "a"),
        (r'{a: {"\ud83d": 1}}', r"a.\ud83d"),
        (r'{"\ud83d\ude00": "\ud83d"}', r"\ud83d\ude00"),
    ],
)
def test_half_of_a_pair_is_refused(text: str, place: str) -> None:
    """No encoding has it: it could be neither sent nor shown."""
    with pytest.raises(ConfigError) as caught:
        parse_text(text, "c")
    assert str(caught.value) == (
        f"c: {place}: contains half of a surrogate pair; "
        r'write the character itself, or both halves such as "\ud83d\ude00"'
    )
