"""True and false are no numbers, wherever a number stands; what is a boolean stays one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, BeforeValidator, Field

from ragwatch.config import parse
from ragwatch.config.fields import is_number, models_in
from ragwatch.config.text import parse_text
from ragwatch.config.web_file import load_web_file
from ragwatch.errors import ConfigError

TAIL = {"kind": "tail", "name": "app", "path": "app.jsonl"}
CLAUDE = {"name": "j", "kind": "claude", "model": "m", "api_key": "k"}
PROBE = {"kind": "http", "url": "http://localhost/", "body": "{{ query }}", "contexts": "passages"}
SUITE = {"suite": "s", "items": [{"query": "q", "expected": ["a"]}]}


class Inner(BaseModel):
    """A section of a section."""

    number: int = 0


class Model(BaseModel):
    """One field of each kind."""

    number: float = 0.0
    limited: Annotated[int, Field(ge=1)] | None = None
    switch: bool = False
    either: int | bool = 0
    scalar: str | int = ""
    converted: Annotated[float, BeforeValidator(float)] = 0.0
    inner: dict[str, tuple[Inner | None, ...]] = Field(default_factory=dict)


def test_what_is_a_number() -> None:
    """A field that takes booleans or texts too is none, nor is one that converts by itself."""
    assert [name for name, field in Model.model_fields.items() if is_number(field)] == ["number", "limited"]
    assert list(models_in(Model.model_fields["inner"].annotation)) == [Inner]


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ("retention: {days: yes}", "retention.days"),
        ("retention: {failing_days: on}", "retention.failing_days"),
        ("judging: {batch: yes}", "judging.batch"),
        ("judging: {max_pending: yes}", "judging.max_pending"),
        ("judging: {shed_above: yes}", "judging.shed_above"),
        ("gate: {minimum_samples: yes}", "gate.minimum_samples"),
        ("drift: {bridge: yes}", "drift.bridge"),
        ("labels: {per_hour: yes}", "labels.per_hour"),
        ("labels: {double: yes}", "labels.double"),
    ],
)
def test_booleans_are_no_numbers(data: str, place: str) -> None:
    """`yes` would be 1: texts would be deleted after a day."""
    with pytest.raises(ConfigError) as caught:
        parse({"sources": [TAIL], **parse_text(data, "c")}, folder=Path())
    assert str(caught.value) == f"{place}: true is not a number; write one"


@pytest.mark.parametrize(
    ("data", "places"),
    [
        ({"sources": [{**TAIL, "scan_seconds": False}]}, ["sources[0].scan_seconds: false"]),
        (
            {"judges": [{**CLAUDE, "concurrency": True, "max_claims": True}]},
            ["judges[0].concurrency: true", "judges[0].max_claims: true"],
        ),
        ({"judges": [{**CLAUDE, "prices": {"input": True, "output": 1}}]}, ["judges[0].prices.input: true"]),
        ({"judges": [{**CLAUDE, "budget": {"usd_per_day": True}}]}, ["judges[0].budget.usd_per_day: true"]),
        ({"store": {"kind": "postgres", "url": "x", "connections": True}}, ["store.connections: true"]),
        ({"canaries": [{**SUITE, "probe": {**PROBE, "timeout": True}}]}, ["canaries[0].probe.timeout: true"]),
    ],
)
def test_booleans_are_no_numbers_of_kinds(data: dict[str, Any], places: list[str]) -> None:
    """Neither those of sources, judges, stores and probes, nor those inside them."""
    with pytest.raises(ConfigError) as caught:
        parse({"sources": [TAIL], **data}, folder=Path())
    assert str(caught.value).splitlines() == [f"{place} is not a number; write one" for place in places]


@pytest.mark.parametrize("key", ["interval", "burst"])
def test_booleans_are_no_numbers_of_a_web_file(tmp_path: Path, key: str) -> None:
    """Its format is that of Go, which refuses them too."""
    (tmp_path / "web.yml").write_text(f"rate_limit: {{{key}: yes}}")
    with pytest.raises(ConfigError, match=rf"web\.yml: rate_limit\.{key}: true is not a number; write one"):
        load_web_file(tmp_path / "web.yml")


def test_booleans_stay_booleans() -> None:
    """Also beside numbers in one section."""
    data: dict[str, Any] = {
        "gate": {"strict": True, "minimum_samples": 1},
        "judges": [{**CLAUDE, "second_reading": False, "concurrency": 1}],
    }
    config = parse({"sources": [TAIL], **data}, folder=Path())
    assert (config.settings.gate.strict, config.settings.gate.minimum_samples) == (True, 1)
    assert config.judges[0].options.model_dump(include={"second_reading", "concurrency"}) == {
        "second_reading": False,
        "concurrency": 1,
    }
