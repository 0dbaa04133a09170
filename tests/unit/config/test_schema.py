"""The JSON schema of the configuration: it accepts what ragwatch reads, and refuses what an editor should underline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from ragwatch.commands import cli
from ragwatch.config import load, parse
from ragwatch.config.schema import json_schema
from ragwatch.errors import ConfigError

HOME = Path(__file__).resolve().parents[3]
CONFIGS = HOME / "tests" / "data" / "configs"
SOURCE = {"kind": "tail", "name": "app", "path": "app.jsonl"}
SEEN_ONLY_BY_READING = 0.5
"""Share of the invalid configurations in tests/data that the schema may accept: files, references, other languages."""


@pytest.fixture(scope="module")
def validator() -> Any:
    """The validator of the schema, which is itself checked against its dialect."""
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def _configs(pattern: str) -> list[Path]:
    """Those of the test data, without one that is nested so deeply that reading it takes seconds."""
    return sorted(path for path in CONFIGS.glob(pattern) if path.name != "invalid-far-too-deep.yaml")


def _valid(path: Path) -> bool:
    try:
        load(path)
    except ConfigError:
        return False
    return True


def _data(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError):
        return None


def test_what_ragwatch_reads_is_accepted(validator: Any) -> None:
    """The example with all keys, the configurations of the deploy files, and every valid one among the test data."""
    inner = [
        yaml.safe_load(document["data"]["ragwatch.yaml"])
        for document in yaml.safe_load_all((HOME / "deploy" / "kubernetes" / "config.yaml").read_text(encoding="utf-8"))
        if document["kind"] == "ConfigMap" and "ragwatch.yaml" in document["data"]
    ]
    assert inner
    valid = [_data(path) for path in _configs("*.yaml") if _valid(path)]
    for data in (_data(HOME / "config.example.yaml"), *inner, *valid):
        errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(data)]
        assert errors == []


def test_most_of_what_ragwatch_refuses_is_refused(validator: Any) -> None:
    """Of the configurations that do not start, the schema refuses most; it never accepts an unknown key."""
    invalid = [path for path in _configs("invalid-*.yaml") if isinstance(_data(path), dict)]
    accepted = [path.name for path in invalid if validator.is_valid(_data(path))]
    assert len(accepted) <= SEEN_ONLY_BY_READING * len(invalid), accepted
    assert [name for name in accepted if "unknown-key" in name or "kind" in name] == []


@pytest.mark.parametrize(
    "keys",
    [
        {"judging": {"timeout": "90s"}},
        {"judging": {"timeout": 90, "batch": "${BATCH:-10}"}},
        {"retention": {"bytes": "2GiB", "days": 3}},
        {"thresholds": {"faithfulness": 0.9, "routes": {"faq": {"faithfulness": None}}}, "routes": ["faq"]},
        {"estimates": {"windows": ["1h", 90]}},
        {"web": {"listen": "127.0.0.1:1"}, "routes": ["a/{id}"]},
        {
            "alerts": {"slos": {"faithfulness": {"objective": 0.95}, "routes": {"faq": {"faithfulness": None}}}},
            "routes": ["faq"],
        },
    ],
)
def test_units_variables_and_routes_are_accepted(validator: Any, keys: dict[str, Any]) -> None:
    """A duration, size or number may be written as ragwatch reads it."""
    data = {"sources": [SOURCE], **keys}
    parse(yaml.safe_load(yaml.safe_dump(data).replace("${BATCH:-10}", "10")), folder=Path())
    assert [error.message for error in validator.iter_errors(data)] == []


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ({"judging": {"timeout": "90 parsecs"}}, "$.judging.timeout"),
        ({"judging": {"tmeout": 9}}, "$.judging"),
        ({"judges": [{"name": "a", "kind": "lexical", "model": "x"}]}, "$.judges[0]"),
        ({"judges": [{"name": "a", "kind": "lexicl"}]}, "$.judges[0].kind"),
        ({"judges": [{"kind": "lexical"}]}, "$.judges[0]"),
        ({"store": {"kind": "sqlite", "texts": "some"}}, "$.store.texts"),
        ({"canaries": [{"suite": "a", "items": [], "file": "b", "probe": {"kind": "http"}}]}, "$.canaries[0]"),
    ],
)
def test_a_mistake_is_refused_at_its_place(validator: Any, keys: dict[str, Any], path: str) -> None:
    """An editor underlines the key that is wrong."""
    assert path in {error.json_path for error in validator.iter_errors({"sources": [SOURCE], **keys})}


def test_the_command_prints_it() -> None:
    """`ragwatch config schema` prints the schema as JSON."""
    result = CliRunner().invoke(cli, ["config", "schema"], standalone_mode=False)
    assert json.loads(result.stdout) == json.loads(json.dumps(json_schema()))
