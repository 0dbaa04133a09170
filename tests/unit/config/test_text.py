"""YAML texts, secrets and durations."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragwatch.config import text
from ragwatch.config.text import load_text, parse_text, resolve_secrets
from ragwatch.core.units import duration_seconds
from ragwatch.errors import ConfigError


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("500ms", 0.5),
        ("30s", 30.0),
        ("15m", 900.0),
        ("1.5h", 5400.0),
        ("7d", 604800.0),
        ("2w", 1209600.0),
        (" 1 h ", 3600.0),
    ],
)
def test_durations(value: str, expected: float) -> None:
    """A number and a unit, with or without a space."""
    assert duration_seconds(value) == expected


@pytest.mark.parametrize("value", ["", "1", "h", "-1h", "1h30m", "1 hour", "1e3s", "1" * 40 + "s"])
def test_what_is_no_duration(value: str) -> None:
    """Anything else is refused, not guessed."""
    with pytest.raises(ValueError, match="is not a duration"):
        duration_seconds(value)


def test_numbers_are_seconds() -> None:
    """A number needs no unit; what is neither is left to the model's check."""
    assert (duration_seconds(10), duration_seconds(None)) == (10, None)


def test_merge_keys_may_override() -> None:
    """`<<` fills in what is missing, also over several levels; an override is no duplicate."""
    data = parse_text("a: &a {x: 1, y: 1}\nb:\n  deep: &b\n    <<: *a\n    x: 2\nc:\n  <<: *b\n  z: 3\n", "x.yaml")
    assert data == {"a": {"x": 1, "y": 1}, "b": {"deep": {"x": 2, "y": 1}}, "c": {"x": 2, "y": 1, "z": 3}}


def test_complex_keys_are_refused_as_yaml() -> None:
    """A mapping cannot be a key; it is told, not a traceback."""
    with pytest.raises(ConfigError, match=r"x\.yaml: not valid YAML: .*unhashable key"):
        parse_text("? [a]\n: 1\n? [a]\n: 2\n", "x.yaml")


def test_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables and files are filled in wherever a string stands; what they hold is not looked into again."""
    monkeypatch.setenv("RAGWATCH_A", "one")
    monkeypatch.setenv("RAGWATCH_B", "${RAGWATCH_A}")
    (tmp_path / "key").write_text("  s3cret\n")
    data = {
        "a": "x${RAGWATCH_A}y",
        "b": ["${RAGWATCH_B}", "file:key"],
        "c": {"d": "${RAGWATCH_NOT:-else}", "e": 7},
        "f": "$A {x}",
    }
    assert resolve_secrets(data, tmp_path) == {
        "a": "xoney",
        "b": ["${RAGWATCH_A}", "s3cret"],
        "c": {"d": "else", "e": 7},
        "f": "$A {x}",
    }


def test_empty_default(tmp_path: Path) -> None:
    """`${NAME:-}` is an empty text when the variable is not set."""
    assert resolve_secrets({"a": "${RAGWATCH_NOT:-}"}, tmp_path) == {"a": ""}


def test_secrets_need_a_mapping(tmp_path: Path) -> None:
    """Anything but a mapping is no configuration."""
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
