"""Names of earlier versions, keys and series, are still there; a value that is refused now says what to write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from ragwatch import judges, probes, sources, stores
from ragwatch.config import load
from ragwatch.config.model import Settings
from ragwatch.errors import ConfigError
from ragwatch.exporter.catalogue import CATALOGUE

FOLDERS = Path(__file__).parents[2] / "data" / "upgrade"
OLD = FOLDERS / "0.1.0"
versions = pytest.mark.parametrize("version", ["0.1.0", "0.2.0"])
REGISTRIES = {"judges": judges, "probes": probes, "sources": sources, "stores": stores}


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
def test_every_key_of_before_is_known(version: str) -> None:
    """No key was removed or renamed. One that will be leaves this list and is described in docs/upgrading.md."""
    known = set(keys(Settings))
    for registry, package in REGISTRIES.items():
        known |= {f"{registry}.{kind}.{key}" for kind, rows in package.KINDS.items() for key in keys(rows.Options)}
    assert set((FOLDERS / version / "keys.txt").read_text(encoding="utf-8").split()) <= known


@versions
def test_every_series_of_before_is_there(version: str) -> None:
    """No series was removed or renamed; the same holds for one that will be."""
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


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "max_line_bytes: 4MiB",
            "max_line_bytes: 4M",
            "sources[0].max_line_bytes: '4M' is not a size; write one such as",
        ),
        ("timeout: 60s", "timeout: 1:30", 'judging.timeout: YAML reads 1:30 as a number in base 60; write "1:30" in'),
    ],
)
def test_a_value_that_0_1_0_read_differently_is_refused(before: str, after: str, message: str, tmp_path: Path) -> None:
    """The error names the key and what to write instead."""
    text = (OLD / "ragwatch.yaml").read_text(encoding="utf-8")
    assert text.count(before) == 1
    with pytest.raises(ConfigError) as error:
        load(written(text.replace(before, after), tmp_path))
    assert message in str(error.value)
