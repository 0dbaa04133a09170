"""`ragwatch redact`: rule, line, column, a masked excerpt, counts, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path

from support.command_line import command

from ragwatch.commands.redact import MAX_BYTES

SOURCES = "state: state\nsources: [{kind: tail, name: app, path: app.jsonl}]\n"


def test_shows_places_and_masks_values(tmp_path: Path) -> None:
    """Nothing of a short value is shown, and the first two characters of a long one."""
    path = tmp_path / "log.txt"
    path.write_text("fine\nask ann@example.org or 10.0.0.1\n")
    result = command("redact", path)
    assert result.return_value == 1
    assert result.stdout.splitlines() == [
        f"{path}:2:5: email: an*** (15 characters)",
        f"{path}:2:24: ipv4: *** (8 characters)",
    ]
    assert "2 values would be redacted" in result.stderr


def test_json_and_rules_of_a_configuration(tmp_path: Path) -> None:
    """The configuration's own rules are used; JSON holds the findings and their counts."""
    config = tmp_path / "ragwatch.yaml"
    config.write_text(SOURCES + 'redaction: {rules: [{name: employee, pattern: "EMP-[0-9]{6}"}]}\n')
    arguments = ["redact", "-", "--json", "--config", str(config)]
    result = command(*arguments, said="ask EMP-123456")
    said = json.loads(result.stdout)
    assert (result.return_value, said["counts"]) == (1, {"employee": 1})
    assert said["findings"][0] | {"excerpt": ""} == {
        "rule": "employee",
        "kind": "CUSTOM",
        "line": 1,
        "column": 5,
        "length": 10,
        "excerpt": "",
    }


def test_nothing_found() -> None:
    """Exit code 0."""
    result = command("redact", "-", said="a plain text")
    assert (result.return_value, result.stdout) == (0, "")


def test_unsafe_pattern_is_refused(tmp_path: Path) -> None:
    """The error names the key and says what to write instead."""
    config = tmp_path / "ragwatch.yaml"
    config.write_text(SOURCES + 'redaction: {rules: [{name: a, pattern: "(a+)+b"}]}\n')
    result = command("redact", "-", "--config", config, said="x")
    assert "redaction.rules[0].pattern" in str(result.exception)
    assert "{1,64}" in str(result.exception)


def test_too_large(tmp_path: Path) -> None:
    """A file that is larger than the limit is not read into memory."""
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    result = command("redact", path)
    assert "split it" in str(result.exception)
