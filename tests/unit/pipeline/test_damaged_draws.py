"""Damaged draws: settled as unjudged, without blocking other draws."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import LogCapture
from support.batched import Life, Provider
from support.judgings import a_judging
from support.kit import AT, JUDGE, Clock, ScriptedJudge, a_draw, a_verdict, an_admission

from ragwatch.core.tally import Tally
from ragwatch.pipeline.drift.bridge import VersionBridge
from ragwatch.pipeline.judging import MAX_CHARS, give_up
from ragwatch.pipeline.labels.tasks import MAX_CHARS as MAX_TASK_CHARS
from ragwatch.pipeline.labels.tasks import LabelTasks
from ragwatch.pipeline.labels.verdicts import LabelRules
from ragwatch.ports import Query
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry


def harm(store: SqliteStore, name: str) -> None:
    """Damage the stored text of a draw."""
    store.engine._writer.execute("UPDATE samples SET body = X'00ff' WHERE key = ?", (a_draw(name).key,))


def outcomes(store: SqliteStore) -> dict[str, str | None]:
    """Reason by key, None for a judged one."""
    return {row.verdict.key: row.verdict.reason for row in store.find(Query())}


async def test_a_damaged_draw_is_unjudged_and_the_next_is_read(
    store: SqliteStore, telemetry: Telemetry, log: LogCapture
) -> None:
    """The judge is not asked about it; it is counted by its reason, told once, and leaves the queue."""
    store.admit(an_admission(a_draw("a"), a_draw("b")))
    harm(store, "a")
    judge = ScriptedJudge()
    loop = a_judging(store, judge, telemetry=telemetry)
    while await loop.step():
        pass
    assert outcomes(store) == {a_draw("a").key: "damaged", a_draw("b").key: None}
    assert (judge.asked, store.pending()) == (["b"], {})
    assert store.tallies()[Tally.UNJUDGED, ("search", JUDGE, "damaged")] == 1
    (told,) = [entry for entry in log.entries if entry.get("reason") == "damaged"]
    assert a_draw("a").key in told["why"]


async def test_damaged_draws_expire_and_are_given_up(store: SqliteStore) -> None:
    """What waits too long, or for a judge that is gone, goes, whether its text can be read or not."""
    store.admit(an_admission(a_draw("a"), a_draw("b"), judges=(JUDGE, "gone")))
    harm(store, "a")
    loop = a_judging(store, clock=Clock(AT + 1e6))
    assert await loop.expire()
    assert give_up(store, [JUDGE], now=AT) == 2
    assert store.pending() == {}


async def test_all_that_is_large_and_late_expires_in_one_step(store: SqliteStore) -> None:
    """A lease of large texts is a few at a time; expiring goes on until none is left."""
    store.admit(an_admission(*(a_draw(name, answer="x" * (5 << 20)) for name in "abcde")))
    loop = a_judging(store, clock=Clock(AT + 1e6))
    assert await loop.expire()
    assert (store.pending(), await loop.expire()) == ({}, False)


@pytest.mark.costly
async def test_long_answers_are_taken_up_a_few_at_a_time(store: SqliteStore) -> None:
    """However many draws a batch may hold, the texts that are held at a time are limited; all are read in the end."""
    store.admit(an_admission(*(a_draw(name, answer="x" * (MAX_CHARS // 2)) for name in "abcdefgh")))
    loop = a_judging(store, batch=32)
    most = 0
    while await loop.step():
        most = max(most, sum(loop._chars.values()))
        assert len(loop._tasks) <= 6
    assert len(outcomes(store)) == 8
    assert most <= 3 * MAX_CHARS


@pytest.mark.parametrize("sent", [False, True])
async def test_a_batch_passes_over_what_is_damaged(tmp_path: Path, telemetry: Telemetry, *, sent: bool) -> None:
    """Damaged before it is sent, or while it is out: unjudged with that reason; the others are judged."""
    life = Life(tmp_path / "state", Provider(), telemetry=telemetry)
    life.admit(*"abcd")
    if sent:
        assert await life.loop.step() is True
    life.store.engine._writer.execute("UPDATE samples SET body = X'00ff' WHERE key = ?", (a_draw("a").key,))
    await life.work()
    assert life.provider.entries == 4 - (not sent)
    reasons = {row.verdict.key: row.verdict.reason for row in life.store.find(Query())}
    assert reasons == {a_draw(name).key: None for name in "bcd"} | {a_draw("a").key: "damaged"}
    assert (life.store.pending(), life.store.batches(JUDGE)) == ({}, [])
    life.store.close()


def test_a_damaged_sample_is_no_task(store: SqliteStore) -> None:
    """People are given the others, and labels on it are kept."""
    draws = [a_draw(name) for name in "abc"]
    store.admit(an_admission(*draws))
    store.settle([a_verdict(draw) for draw in draws])
    harm(store, "b")
    labelling = LabelTasks(LabelRules({JUDGE: "scripted-1"}, (JUDGE,)), store=store, clock=Clock(), uniform=lambda: 0.5)
    assert sorted(task["sample"]["id"] for task in labelling.tasks("ann", 9)) == ["a", "c"]
    put = labelling.put([{"key": draws[1].key, "annotator": "ann", "at": AT, "scores": {"faithfulness": 1.0}}])
    assert put == {"new": 1, "replaced": 0, "unmatched": 0}


def test_tasks_are_fewer_where_texts_are_long(store: SqliteStore) -> None:
    """A person asks for ten and is given what fits a response; the others come the next time."""
    draws = [a_draw(name, answer="x" * (MAX_TASK_CHARS // 2 - 1000)) for name in "abcde"]
    store.admit(an_admission(*draws))
    store.settle([a_verdict(draw) for draw in draws])
    labelling = LabelTasks(LabelRules({JUDGE: "scripted-1"}, (JUDGE,)), store=store, clock=Clock(), uniform=lambda: 0.5)
    given = labelling.tasks("ann", 10)
    assert len(given) == 2
    for task in given:
        labelling.put([{"key": task["key"], "annotator": "ann", "at": AT, "scores": {"faithfulness": 1.0}}])
    assert len(labelling.tasks("ann", 10)) == 2


def test_a_bridge_passes_over_what_is_damaged(store: SqliteStore, telemetry: Telemetry) -> None:
    """A judge that changes its version reads again what can be read."""
    draws = [a_draw(name) for name in "abc"]
    store.admit(an_admission(*draws))
    store.settle([a_verdict(draw) for draw in draws])
    store.remember(f"bridge {JUDGE}", {"version": "scripted-1"})
    harm(store, "b")
    judge = ScriptedJudge()
    judge.version = "scripted-2"
    bridge = VersionBridge(judge, 10, timeout_seconds=1.0, store=store, telemetry=telemetry, clock=Clock())
    bridge.resume()
    assert sorted(bridge._samples) == sorted(draw.key for draw in (draws[0], draws[2]))
