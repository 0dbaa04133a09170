"""`ragwatch redact`: rule, line, column, a masked excerpt, counts, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path

from support.command_line import command, configured, refused

from ragwatch.commands.redact import MAX_BYTES


def a_config(folder: Path, pattern: str) -> Path:
    """A configuration with a rule of its own."""
    return configured(folder, redaction={"rules": [{"name": "employee", "pattern": pattern}]})


def test_shows_places_and_masks_values(tmp_path: Path) -> None:
    """Nothing of a short value is shown, and the first two characters of a long one; without any, exit code 0."""
    path = tmp_path / "log.txt"
    path.write_text("fine\nask ann@example.org or 10.0.0.1\n")
    result = command("redact", path)
    assert result.return_value == 1
    assert result.stdout.splitlines() == [
        f"{path}:2:5: email: an*** (15 characters)",
        f"{path}:2:24: ipv4: *** (8 characters)",
    ]
    assert "2 values would be redacted" in result.stderr
    result = command("redact", "-", said="a plain text")
    assert (result.return_value, result.stdout) == (0, "")


def test_rules_of_a_configuration(tmp_path: Path) -> None:
    """They are used; JSON holds the findings and their counts; an unsafe one is refused with what to write instead."""
    words = ("redact", "-", "--json", "--config")
    result = command(*words, a_config(tmp_path, "EMP-[0-9]{6}"), said="ask EMP-123456")
    said = json.loads(result.stdout)
    assert (result.return_value, said["counts"]) == (1, {"employee": 1})
    place = {"rule": "employee", "kind": "CUSTOM", "line": 1, "column": 5, "length": 10}
    assert said["findings"][0].items() >= place.items()
    error = refused(command(*words, a_config(tmp_path, "(a+)+b"), said="x"))
    assert "redaction.rules[0].pattern" in error
    assert "{1,64}" in error


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    """The error says what to do."""
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    assert "split it" in str(command("redact", path).exception)
