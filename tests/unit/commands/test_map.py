"""`ragwatch map`: known formats are named, others get a proposal, and what is no JSON is said to be none."""

from __future__ import annotations

import json
from pathlib import Path

import yaml
from click.testing import CliRunner, Result

from ragwatch.commands import cli
from ragwatch.formats import FORMATS, build

DATA = Path(__file__).parents[2] / "data" / "formats"


def _map(text: str) -> Result:
    return CliRunner().invoke(cli, ["map", "-"], input=text, standalone_mode=False)


def test_every_known_format_is_named() -> None:
    """The file of each format is recognised as that format."""
    for name in FORMATS:
        result = _map((DATA / f"{name}.jsonl").read_text(encoding="utf-8"))
        assert yaml.safe_load(result.stdout)["format"] == name
        assert result.return_value == 0


def test_a_proposal_can_be_pasted_into_the_configuration() -> None:
    """What is printed for an unknown shape is YAML whose mapping reads the record."""
    record = {"payload": {"query": "why?", "hits": [{"body": "because"}]}, "reply": "so"}
    result = _map(json.dumps(record) + "\n")
    assert result.return_value == 1
    source = yaml.safe_load(result.stdout)
    sample = build(source["format"], source["mapping"]).read(record, "x")
    assert (sample.question, sample.answer, sample.contexts[0].text) == ("why?", "so", "because")


def test_a_file_without_json_is_refused() -> None:
    """Nothing is guessed from nothing."""
    result = _map("hello\n\n")
    assert result.return_value == 1
    assert "holds no JSON object" in result.stderr
    assert ":1: torn_json" in result.stderr


def test_a_file_without_a_hint_says_so() -> None:
    """No likely field, no mapping."""
    result = _map('{"level": 3}\n')
    assert result.return_value == 1
    assert "write a mapping by hand" in result.stdout
