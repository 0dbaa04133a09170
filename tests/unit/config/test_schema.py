"""The schema accepts what ragwatch reads and refuses what an editor should underline; names of earlier versions."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from click.testing import CliRunner
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from ragwatch import judges, probes, sources, stores
from ragwatch.commands import cli
from ragwatch.config import load, parse
from ragwatch.config.model import Settings
from ragwatch.config.schema import json_schema
from ragwatch.errors import ConfigError
from ragwatch.exporter.catalogue import CATALOGUE

HOME = Path(__file__).resolve().parents[3]
CONFIGS = HOME / "tests" / "data" / "configs"
SOURCE = {"kind": "tail", "name": "app", "path": "app.jsonl"}
SEEN_ONLY_BY_READING = 0.5
"""Share of the invalid configurations in tests/data that the schema may accept: files, references, other languages."""
FOLDERS = Path(__file__).parents[2] / "data" / "upgrade"
OLD = FOLDERS / "0.1.0"
versions = pytest.mark.parametrize("version", ["0.1.0", "0.2.0"])
REGISTRIES = {"judges": judges, "probes": probes, "sources": sources, "stores": stores}


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
    documents = yaml.safe_load_all((HOME / "deploy" / "kubernetes" / "config.yaml").read_text(encoding="utf-8"))
    maps = [document["data"] for document in documents if document["kind"] == "ConfigMap"]
    inner = [yaml.safe_load(files["ragwatch.yaml"]) for files in maps if "ragwatch.yaml" in files]
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


def test_units_variables_and_routes_are_accepted(validator: Any) -> None:
    """A duration, size or number may be written as ragwatch reads it."""
    objectives = {"faithfulness": {"objective": 0.95}, "routes": {"faq": {"faithfulness": None}}}
    written: list[dict[str, Any]] = [
        {"judging": {"timeout": "90s"}},
        {"judging": {"timeout": 90, "batch": "${BATCH:-10}"}},
        {"retention": {"bytes": "2GiB", "days": 3}},
        {"thresholds": {"faithfulness": 0.9, "routes": {"faq": {"faithfulness": None}}}, "routes": ["faq"]},
        {"estimates": {"windows": ["1h", 90]}},
        {"web": {"listen": "127.0.0.1:1"}, "routes": ["a/{id}"]},
        {"alerts": {"slos": objectives}, "routes": ["faq"]},
    ]
    for data in ({"sources": [SOURCE], **keys} for keys in written):
        parse(yaml.safe_load(yaml.safe_dump(data).replace("${BATCH:-10}", "10")), folder=Path())
        assert [error.message for error in validator.iter_errors(data)] == []


def test_a_mistake_is_refused_at_its_place(validator: Any) -> None:
    """An editor underlines the key that is wrong."""
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"judging": {"timeout": "90 parsecs"}}, "$.judging.timeout"),
        ({"judging": {"tmeout": 9}}, "$.judging"),
        ({"judges": [{"name": "a", "kind": "lexical", "model": "x"}]}, "$.judges[0]"),
        ({"judges": [{"name": "a", "kind": "lexicl"}]}, "$.judges[0].kind"),
        ({"judges": [{"kind": "lexical"}]}, "$.judges[0]"),
        ({"store": {"kind": "sqlite", "texts": "some"}}, "$.store.texts"),
        ({"canaries": [{"suite": "a", "items": [], "file": "b", "probe": {"kind": "http"}}]}, "$.canaries[0]"),
    ]
    for parts, path in wrong:
        assert path in {error.json_path for error in validator.iter_errors({"sources": [SOURCE], **parts})}, parts


def test_the_command_prints_it(validator: Any) -> None:
    """`ragwatch config schema` prints the schema as JSON."""
    result = CliRunner().invoke(cli, ["config", "schema"], standalone_mode=False)
    assert json.loads(result.stdout) == json.loads(json.dumps(validator.schema))


def keys(annotation: Any) -> Iterator[str]:
    """Every dotted key of a model, or of the models in a type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            key = field.alias or name
            yield key
            yield from (f"{key}.{inner}" for inner in keys(field.annotation))
    for argument in get_args(annotation):
        yield from keys(argument)


@versions
def test_every_key_and_series_of_before_is_known(version: str) -> None:
    """None was removed or renamed. One that will be leaves its list and is described in docs/upgrading.md."""
    known = set(keys(Settings))
    for registry, package in REGISTRIES.items():
        known |= {f"{registry}.{kind}.{key}" for kind, rows in package.KINDS.items() for key in keys(rows.Options)}
    assert set((FOLDERS / version / "keys.txt").read_text(encoding="utf-8").split()) <= known
    names = {row.name for row in CATALOGUE}
    assert set((FOLDERS / version / "series.txt").read_text(encoding="utf-8").split()) <= names


def written(text: str, folder: Path) -> Path:
    """A configuration of 0.1.0 in a file, with its variables filled in."""
    for name, value in (("FOLDER", str(folder)), ("LLM", "http://127.0.0.1:9"), ("RETRIEVER", "http://127.0.0.1:9")):
        text = text.replace(f"${{{name}}}", value)
    path = folder / "ragwatch.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_configuration_of_0_1_0_is_read_as_it_is(tmp_path: Path) -> None:
    """With every section, two judges and a suite."""
    config = load(written((OLD / "ragwatch.yaml").read_text(encoding="utf-8"), tmp_path))
    assert [judge.place.name for judge in config.judges] == ["embedded", "local-llm"]
    assert [suite.place.suite for suite in config.canaries] == ["docs"]


def test_a_value_that_0_1_0_read_differently_is_refused(tmp_path: Path) -> None:
    """The error names the key and what to write instead."""
    text = (OLD / "ragwatch.yaml").read_text(encoding="utf-8")
    for before, after, message in (
        ("line_bytes: 4MiB", "line_bytes: 4M", "sources[0].max_line_bytes: '4M' is not a size; write one such as"),
        ("timeout: 60s", "timeout: 1:30", 'judging.timeout: YAML reads 1:30 as a number in base 60; write "1:30" in'),
    ):
        assert text.count(before) == 1
        with pytest.raises(ConfigError) as error:
            load(written(text.replace(before, after), tmp_path))
        assert message in str(error.value)
