"""YAML texts: what YAML reads otherwise than people write it, surrogate pairs, secrets and durations."""

from pathlib import Path

import pytest

from ragwatch.config import text
from ragwatch.config.text import load_text, parse_text, resolve_secrets, value_of
from ragwatch.errors import ConfigError
from ragwatch.model.units import duration_seconds


def test_durations() -> None:
    """A number and a unit, with or without a space; numbers are seconds; anything else is refused, not guessed."""
    written = ("500ms", "30s", "15m", "1.5h", "7d", "2w", " 1 h ", 10, None)
    assert [duration_seconds(one) for one in written] == [0.5, 30, 900, 5400, 604_800, 1_209_600, 3600, 10, None]
    for value in ("", "1", "h", "-1h", "1h30m", "1 hour", "1e3s", "1" * 40 + "s"):
        with pytest.raises(ValueError, match="is not a duration"):
            duration_seconds(value)


def test_merge_keys_may_override() -> None:
    """`<<` fills in what is missing, over several levels, and an override is no duplicate; a mapping is no key."""
    data = parse_text("a: &a {x: 1, y: 1}\nb:\n  deep: &b\n    <<: *a\n    x: 2\nc:\n  <<: *b\n  z: 3\n", "x.yaml")
    assert data == {"a": {"x": 1, "y": 1}, "b": {"deep": {"x": 2, "y": 1}}, "c": {"x": 2, "y": 1, "z": 3}}
    with pytest.raises(ConfigError, match=r"x\.yaml: not valid YAML: [^<]* at line 1, [^<]*unhashable key"):
        parse_text("? [a]\n: 1\n? [a]\n: 2\n", "x.yaml")


def test_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables and files are filled in wherever a string stands in a mapping, what they hold is not looked into."""
    monkeypatch.setenv("RAGWATCH_A", "one")
    monkeypatch.setenv("RAGWATCH_B", "${RAGWATCH_A}")
    (tmp_path / "key").write_text("  s3cret\n")
    written: list[tuple[object, object]] = [
        ("x${RAGWATCH_A}y", "xoney"),
        (["${RAGWATCH_B}", "file:key"], ["${RAGWATCH_A}", "s3cret"]),
        ({"d": "${RAGWATCH_NOT:-else}", "e": 7}, {"d": "else", "e": 7}),
        *(("$A {x}", "$A {x}"), ("${RAGWATCH_NOT:-}", "")),
    ]
    for given, meant in written:
        assert resolve_secrets({"a": given}, tmp_path) == {"a": meant}
    with pytest.raises(ConfigError, match="must be a mapping"):
        resolve_secrets([], tmp_path)  # type: ignore[arg-type]


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing, a directory, too large, or no UTF-8: one line each."""
    (tmp_path / "latin.yaml").write_bytes(b"a: \xff")
    (tmp_path / "large.yaml").write_text("a: 1\n" * 10)
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_text(tmp_path / "missing.yaml")
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_text(tmp_path)
    with pytest.raises(ConfigError, match=r"latin\.yaml: is not UTF-8 text: .* at byte 3"):
        load_text(tmp_path / "latin.yaml")
    monkeypatch.setattr(text, "MAX_BYTES", 20)
    with pytest.raises(ConfigError, match=r"large\.yaml: larger than 20 bytes"):
        load_text(tmp_path / "large.yaml")


def test_pairs_are_joined() -> None:
    """Where the escapes are read, in keys too; other characters stay as they are."""
    for written, value in (
        (r'"\ud83d\ude00"', "😀"),
        (r'"\U0000d83d\U0000de00 and \uD834\uDD1E"', "😀 and 𝄞"),
        (r'"\ufeff\uffff\U0001f600"', "\ufeff\uffff😀"),
        (r"'\ud83d'", r"\ud83d"),
        ("😀", "😀"),
    ):
        assert value_of(written) == value
        assert parse_text(f"a: {{b: [1, {written}]}}", "c") == {"a": {"b": [1, value]}}
    assert parse_text(r'{a: &x {"\ud83d\ude00": 1}, b: *x}', "c") == {"a": {"😀": 1}, "b": {"😀": 1}}


def test_half_of_a_pair_is_refused() -> None:
    """No encoding has it: it could be neither sent nor shown."""
    advice = r'write the character itself, or both halves such as "\ud83d\ude00"'
    for written, place in (
        (r'a: {b: [1, "\ud83d"]}', "a.b[1]"),
        (r'a: "\ude00\ud83d"', "a"),
        (r'{a: {"\ud83d": 1}}', r"a.\ud83d"),
        (r'{"\ud83d\ude00": "\ud83d"}', r"\ud83d\ude00"),
    ):
        with pytest.raises(ConfigError) as caught:
            parse_text(written, "c")
        assert str(caught.value) == f"c: {place}: contains half of a surrogate pair; {advice}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {b: [1, 1:30]}", r"c: a\.b\[1\]: YAML reads 1:30 as a number in base 60; write \"1:30\" in quotes"),
        ("1:30: x", r"c: 1:30: YAML reads 1:30 as"),
        ("? [1:30]\n: x", r"c: \?\[0\]: YAML reads 1:30 as"),
        ("a: 012", r"a: YAML reads 012 as an octal number, 10; write 12 for the number, or \"012\" in quotes"),
        ("a: -0_17", r"a: YAML reads -0_17 as an octal number, -15; write -17 for the number"),
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
    """Quoted texts, zero, hexadecimal, decimals, addresses and durations stay; the same holds on a command line."""
    text = "{a: '1:30', b: \"012\", c: 0, d: 0x1F, e: 0.5, f: '::1', g: 127.0.0.1:80, h: 08, i: 1m30, j: -0}"
    assert list(parse_text(text, "c").values()) == ["1:30", "012", 0, 31, 0.5, "::1", "127.0.0.1:80", "08", "1m30", 0]
    assert (value_of("0.5"), value_of("")) == (0.5, None)
    with pytest.raises(ConfigError, match="value: YAML reads 1:30"):
        value_of("1:30")
