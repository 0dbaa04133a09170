"""Versions that records name: each value is stored once, redacted, with the time of its first answer."""

from __future__ import annotations

from typing import Any

import orjson
from support.intakes import an_intake
from support.kit import AT, Clock, a_batch, a_sample

from ragwatch.core.sampling import SamplingPlan
from ragwatch.pipeline.placing import MAX_CHARS, MAX_NEW, NamedVersions
from ragwatch.ports import RecordedEvent, VersionValue
from ragwatch.redaction.redactor import Redactor
from ragwatch.stores.sqlite.store import SqliteStore


def values(versions: NamedVersions, *metadata: dict[str, Any]) -> list[tuple[str, str]]:
    """New values of records with this metadata."""
    new: list[VersionValue] = []
    for one in metadata:
        versions.read(a_sample(metadata=one), AT, new)
    return [(one.field, one.value) for one in new]


def test_texts_and_integers_are_versions_and_nothing_else() -> None:
    """Lists, booleans, numbers with a fraction and empty texts are none; long values are cut."""
    versions = NamedVersions(("release", "model"))
    metadata = [{"release": value} for value in ("v1", 2, True, None, "", 1.5, ["v3"], {"a": 1}, "x" * 500)]
    assert values(versions, *metadata, {"model": "v1", "other": "v9"}) == [
        ("release", "v1"),
        ("release", "2"),
        ("release", "x" * MAX_CHARS),
        ("model", "v1"),
    ]


def test_a_value_is_new_until_it_is_stored() -> None:
    """Within a batch it counts once; a batch that could not be stored is read again."""
    versions = NamedVersions(("release",))
    assert values(versions, {"release": "v1"}, {"release": "v1"}) == [("release", "v1")]
    assert values(versions, {"release": "v1"}) == [("release", "v1")]
    versions.note([VersionValue("release", "v1", AT)])
    assert values(versions, {"release": "v1"}, {"release": "v2"}) == [("release", "v2")]


def test_values_are_redacted_and_limited() -> None:
    """A key with a person in it names nobody; one with another value in each record fills no batch."""
    versions = NamedVersions(("release",), Redactor())
    ((_, value),) = values(versions, {"release": "built by ada@example.com"})
    assert "ada" not in value
    versions.note([VersionValue("release", value, AT)])
    assert values(versions, {"release": "built by ada@example.com"}) == []
    assert len(values(NamedVersions(("release",)), *({"release": str(index)} for index in range(999)))) == MAX_NEW


def test_much_that_is_known_is_forgotten() -> None:
    """Memory is bounded: the store knows the rest."""
    versions = NamedVersions(("release",))
    versions.note(VersionValue("release", str(index), AT) for index in range(20_000))
    versions.note([VersionValue("release", "v1", AT)])
    assert values(versions, {"release": "v1"}, {"release": "5"}) == [("release", "5")]


async def test_the_first_answer_with_another_version_becomes_an_event(store: SqliteStore) -> None:
    """Of all answers, drawn or not; over restarts once; with its time."""

    def line(name: str, release: str, at: float) -> bytes:
        return orjson.dumps(a_sample(name, metadata={"release": release}, at=at).to_record())

    records = [line(f"r{index}", "v1" if index < 3 else "v2", AT + index) for index in range(6)]
    for start in (0, 2, 4, 4):
        batch, versions = a_batch(*records[start : start + 2], cursor=str(start)), NamedVersions(("release",))
        plan = SamplingPlan(1e-6)
        assert await an_intake(store, batch, plan=plan, versions=versions, clock=Clock(AT + 99)).step()
    assert store.events(0.0) == [RecordedEvent(AT + 3, "version", "release: v2")]
