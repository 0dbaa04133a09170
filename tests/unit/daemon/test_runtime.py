"""The runtime of a configuration, a single run of it with failing judges, and what changed since another one."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import LogCapture
from support.callers import canned
from support.kit import AT, JUDGE, Clock, a_draw, an_admission
from support.otlp_backend import OtlpBackend, plain, traced
from support.patience import DEADLINE

from ragwatch.board import Board
from ragwatch.config import Config, parse
from ragwatch.daemon.actions import MAX_DETAIL_CHARS, actions
from ragwatch.daemon.changes import (
    ONE_CHANGE_SECONDS,
    EventKind,
    changed_sections,
    last_events,
    record_judges,
    record_reload,
)
from ragwatch.daemon.once import OneShotRun
from ragwatch.daemon.process import SharedState
from ragwatch.daemon.runtime import Runtime, build
from ragwatch.errors import ConfigError, StoreError
from ragwatch.pipeline.drift.scores import KIND
from ragwatch.pipeline.drift.traffic import KIND as TRAFFIC
from ragwatch.ports.capabilities import ReceivesRequests
from ragwatch.ports.sources import IncomingRequest
from ragwatch.statistics.sampling import key_of
from ragwatch.statistics.snapshot import Gauge
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry
from ragwatch.web import Action, ParameterError

ANSWERED, DRAWN = 3, 40


def sources(tmp_path: Path) -> list[dict[str, str]]:
    """One log."""
    return [{"kind": "tail", "name": "app", "path": str(tmp_path / "app.jsonl"), "start": "beginning"}]


def asks(address: str) -> dict[str, Any]:
    """A judge that asks a model at an address."""
    return {"name": "mine", "kind": "openai", "model": "m", "base_url": address, "allow_unknown_price": True}


async def test_clients_that_wait_at_the_end_are_told_at_once(
    tmp_path: Path, store: SqliteStore, telemetry: Telemetry
) -> None:
    """Nothing will be stored any more: they send their records again, to whoever runs then."""
    config = parse({"sources": [{"kind": "push", "name": "pushed"}, *sources(tmp_path)]}, folder=tmp_path)
    runtime = build(config, SharedState(store, Board(), telemetry, Clock()), tuple)
    handle = runtime.receivers()["/v1/samples"]["pushed"]

    async def chunks() -> AsyncIterator[bytes]:
        yield b'{"question": "Why?"}'

    request = IncomingRequest("/v1/samples", {"content-type": "application/json"}, chunks())
    waiting = asyncio.ensure_future(handle(request))
    (source,) = (intake.source for intake in runtime.intakes if intake.source.name == "pushed")
    assert isinstance(source, ReceivesRequests)
    await source.wake.wait()
    runtime.refuse_requests()
    reply = await asyncio.wait_for(waiting, DEADLINE)
    assert (reply.status, reply.headers["Retry-After"]) == (503, "5")
    await runtime.close()


@pytest.mark.parametrize(
    ("judge", "left"),
    [
        ({"kind": "claude", "urgency": "relaxed"}, 1),
        ({"kind": "claude"}, 1),
        ({"kind": "openai", "model": "m", "allow_unknown_price": True}, 0),
        ({"kind": "lexical"}, 0),
    ],
    ids=["claude, relaxed", "claude", "openai", "lexical"],
)
async def test_batches_stay_open_where_they_can_be_collected(
    tmp_path: Path, store: SqliteStore, telemetry: Telemetry, judge: dict[str, object], left: int
) -> None:
    """They are paid for; where a judge without batches has taken the name, their draws return to the queue."""
    address = {} if judge["kind"] == "lexical" else {"base_url": "http://127.0.0.1:9/v1", "api_key": "k"}
    settings = {"sources": sources(tmp_path), "judges": [{"name": JUDGE, **judge, **address}]}
    store.admit(an_admission(a_draw("a")))
    store.prepare_batch(JUDGE, {key_of("app", "a"): 1}, "seed", now=AT)
    runtime = build(parse(settings, folder=tmp_path), SharedState(store, Board(), telemetry, Clock()), tuple)
    await runtime.expire()
    await runtime.close()
    assert len(store.batches(JUDGE)) == left
    assert len(store.lease(JUDGE, 10, now=AT, seconds=1.0)) == 1 - left


@pytest.mark.costly
async def test_once_counts_what_could_not_be_judged(tmp_path: Path) -> None:
    """A judge that answers for 3 of 40 answers covers 0.075 of the log, not all of it."""
    sample = {"question": "What do cats do?", "contexts": ["Cats purr."], "answer": "Cats purr.", "route": "search"}
    lines = [json.dumps(sample | {"id": f"r{index}", "at": 1_700_000_000}) for index in range(DRAWN)]
    (tmp_path / "app.jsonl").write_text("\n".join(lines) + "\n")
    message = {"role": "assistant", "content": '{"address":"fully"}'}
    usage = {"prompt_tokens": 100, "completion_tokens": 5}
    good = (200, {}, {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})
    with canned(*[good] * ANSWERED, (503, {}, {"error": {"message": "overloaded"}})) as (address, _):
        judge = {"quantities": ["answer_relevancy"], "concurrency": 1, "deadline_seconds": 1}
        settings = {
            "state": str(tmp_path / "state"),
            "sources": sources(tmp_path),
            "routes": ["search"],
            "sampling": {"probability": 1.0},
            "judges": [asks(f"{address}/v1") | judge],
        }
        text = await OneShotRun(parse(settings, folder=tmp_path)).run()
    shown = dict(line.rsplit(" ", 1) for line in text.splitlines() if line and line[0] != "#")
    assert float(shown["ragwatch_samples_pending"]) == DRAWN - ANSWERED
    place = '{judge="mine",route="search",window="1h"}'
    assert float(shown[f"ragwatch_coverage_ratio{place}"]) == pytest.approx(ANSWERED / DRAWN)


def test_a_wrong_judge_is_a_wrong_configuration(tmp_path: Path, store: SqliteStore, telemetry: Telemetry) -> None:
    """Options that a kind rejects when it is built are a ConfigError, so that a reload fails cleanly.

    With judging.timeout 10s every wait of a judge (25 s + 30 s) would end as Unjudged(timeout), for good, and paid.
    """
    relaxed = asks("http://127.0.0.1:9/v1") | {"urgency": "relaxed"}  # it has no message batches
    wrong = parse({"sources": sources(tmp_path), "judges": [relaxed]}, folder=tmp_path)
    with pytest.raises(ConfigError):
        build(wrong, SharedState(store, Board(), telemetry, Clock()), tuple)
    short = {"sources": sources(tmp_path), "judges": [asks("http://127.0.0.1:9/v1")], "judging": {"timeout": "10s"}}
    with pytest.raises(ConfigError):
        parse(short, folder=tmp_path)


def exporting(folder: Path, store: SqliteStore, telemetry: Telemetry, **otlp: Any) -> Runtime:
    """The runtime of a configuration with this export."""
    raw = {
        "routes": ["search"],
        "sources": [{"kind": "push", "name": "app"}],
        "judges": [{"name": "embedded", "kind": "lexical", "quantities": ["faithfulness"]}],
        "thresholds": {"faithfulness": 0.5, "routes": {"search": {"faithfulness": None}}},
        **({"export": {"otlp": otlp}} if otlp else {}),
    }
    return build(parse(raw, folder=folder), SharedState(store, Board(), telemetry, Clock(AT + 60)), lambda: ())


async def test_one_loop_for_each_form(tmp_path: Path, store: SqliteStore, telemetry: Telemetry) -> None:
    """Events come with what the judge judges, and with the thresholds of the route; without the section nothing is."""
    backend = OtlpBackend()
    built = exporting(tmp_path, store, telemetry, endpoint=backend.url)
    verdict = traced()
    store.admit(an_admission(verdict.draw))
    store.settle([verdict])
    for export in built.exports:
        await export.step()
    await built.close()
    (event,) = backend.logs()
    backend.close()
    assert [export.signal for export in built.exports] == ["logs", "spans"]
    assert plain(event.attributes)["gen_ai.evaluation.name"] == "faithfulness"
    assert "gen_ai.evaluation.score.label" not in plain(event.attributes)
    plainly = exporting(tmp_path, store, telemetry)
    await plainly.close()
    assert plainly.exports == ()


def detecting(folder: Path, store: SqliteStore, telemetry: Telemetry, support: float) -> Runtime:
    """Build a runtime, as a reload does."""
    data = {
        "sources": [{"kind": "tail", "name": "app", "path": str(folder / "app.jsonl")}],
        "judges": [{"name": "embedded", "kind": "lexical", "support": support}],
    }
    return build(parse(data, folder=folder), SharedState(store, Board(), telemetry, Clock(AT)), tuple)


@pytest.mark.parametrize("lived", [False, True])
async def test_a_full_disk_does_not_stop_drift_detection(
    tmp_path: Path, store: SqliteStore, telemetry: Telemetry, log: LogCapture, *, lived: bool
) -> None:
    """On a full disk a start, or a reload with another judge, succeeds; changes are stored when space is free."""
    if lived:
        first = detecting(tmp_path, store, telemetry, 0.5)
        first.resume(store)
        first.watchers.drift._save()
    store.engine._writer.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError):
        store.remember("anything", {})
    second = detecting(tmp_path, store, telemetry, 0.9)
    second.resume(store)
    assert [entry["kind"] for entry in log.entries if entry["event"] == "event"] == ["judge"] * lived
    store.engine._writer.execute("PRAGMA query_only = OFF")
    again = detecting(tmp_path, store, telemetry, 0.9)
    again.resume(store)
    assert (store.recall(TRAFFIC) is not None, len(store.events(0.0))) == (True, int(lived))
    assert (store.recall(KIND) or {}).get("version") == (again.watchers.drift.rules.version if lived else None)


SOURCE = {"kind": "tail", "name": "app", "path": "app.jsonl"}


def config(tmp_path: Path, **sections: Any) -> Config:
    """A configuration with these sections."""
    return parse({"sources": [SOURCE], "state": str(tmp_path / "state"), **sections}, folder=tmp_path)


@pytest.fixture
def clock() -> Clock:
    """A clock wound by hand."""
    return Clock()


@pytest.fixture
def shared(tmp_path: Path, clock: Clock) -> Iterator[SharedState]:
    """What workers over an empty store share."""
    with closing(SqliteStore(tmp_path / "state")) as store:
        yield SharedState(store, Board(), Telemetry(), clock)


def details(shared: SharedState) -> list[tuple[str, str]]:
    """Kinds and details of the stored events."""
    return [(event.kind, event.detail) for event in shared.store.events(0.0)]


@pytest.mark.parametrize(
    ("sections", "changed"),
    [
        ({}, []),
        ({"thresholds": {"faithfulness": 0.9}}, ["thresholds"]),
        ({"routes": ["faq"], "thresholds": {"routes": {"faq": {"faithfulness": 0.5}}}}, ["routes", "thresholds"]),
        ({"judges": [{"name": "other", "kind": "lexical"}]}, ["judges"]),
        ({"redaction": {"salt": "secret"}}, ["redaction"]),
    ],
)
def test_sections_that_differ_are_named(tmp_path: Path, sections: dict[str, Any], changed: list[str]) -> None:
    """As in the file, without their values."""
    assert changed_sections(config(tmp_path), config(tmp_path, **sections)) == changed


def test_another_configuration_is_an_event_once(tmp_path: Path, shared: SharedState, clock: Clock) -> None:
    """Workers load the same file one after the other; what says the same is no change; a later change is another."""
    before, after = config(tmp_path), config(tmp_path, drain=5)
    record_reload(shared, before, before)
    record_reload(shared, before, after)
    event = ("reload", "configuration changed: drain")
    assert details(shared) == [event]
    record_reload(shared, before, after, "another worker")
    assert details(shared) == [event]
    clock.now += ONE_CHANGE_SECONDS + 1
    record_reload(shared, after, before)
    assert details(shared) == [event, event]


def test_another_version_of_a_judge_is_an_event(shared: SharedState) -> None:
    """A new judge is none; the judge that drift detection reads announces its versions itself."""
    for versions in ({"a": "1", "b": "1"}, {"a": "1", "b": "1"}, {"a": "2", "b": "2", "c": "1"}, {"b": "2"}):
        record_judges(shared, versions, "a")
    assert details(shared) == [("judge", "judge b is 2 now, and was 1")]


def test_a_store_that_is_full_stops_nothing(tmp_path: Path, shared: SharedState) -> None:
    """The change is in force, and is not stored."""
    shared.store.engine._writer.execute("PRAGMA query_only=ON")  # type: ignore[attr-defined]  # of SQLite
    record_reload(shared, config(tmp_path), config(tmp_path, drain=5))
    record_judges(shared, {"a": "1"}, "")
    assert details(shared) == []


async def _unused() -> None:
    raise AssertionError


def _no_runtime() -> AbstractAsyncContextManager[Runtime]:
    raise AssertionError


def report(recorded: list[tuple[str, str]]) -> Action:
    """The action, which appends to `recorded`."""
    return actions(_unused, _no_runtime, lambda kind, detail: recorded.append((kind, detail)))["/-/events"]


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({}, "kind: '' is not known; use one of: release, index, other"),
        ({"kind": "judge"}, "kind: 'judge' is not known"),
        ({"kind": "release", "text": "v2"}, "text: is not known; use kind, detail"),
        ({"kind": "release", "detail": "x" * (MAX_DETAIL_CHARS + 1)}, "501 characters, at most 500"),
    ],
)
async def test_other_events_are_refused(parameters: dict[str, str], told: str) -> None:
    """Kinds are few, because each is a series; those of ragwatch itself cannot be reported. The detail is optional."""
    recorded: list[tuple[str, str]] = []
    with pytest.raises(ParameterError, match=told):
        await report(recorded)(parameters)
    assert await report(recorded)({"kind": "release", "detail": "v2"}) == "release recorded"
    await report(recorded)({"kind": "index"})
    assert recorded == [("release", "v2"), ("index", "")]


def test_the_series_has_few_kinds() -> None:
    """Whatever kinds are stored, by earlier versions as well."""
    times = {**dict.fromkeys(EventKind, 3.0), "party": 5.0, "rollout": 4.0}
    gauges = last_events(times)
    assert {labels for _, labels in gauges} == {(kind,) for kind in EventKind}
    assert gauges[Gauge.LAST_EVENT, ("other",)] == 5.0
    assert last_events({}) == {}
