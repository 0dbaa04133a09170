"""Anchors and version bridges: detect that a judge has drifted, and measure the offset of a new version."""

from typing import Any

import pytest
from structlog.testing import LogCapture
from support.kit import AT, JUDGE, Clock, ScriptedJudge, a_claim, a_draw, a_sample, an_evidence
from support.watched import BAD, GOOD, settle

from ragwatch.errors import JudgeError
from ragwatch.model.sample import Role, Sample, Turn
from ragwatch.pipeline.drift.judge_drift import ANCHOR, Anchor, AnchorLoop, AnchorRules, VersionBridge
from ragwatch.ports import LoopContext, Query, Retention
from ragwatch.statistics.snapshot import Gauge
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

DAY = 86400.0
FLIPS, ALARM = (Gauge.JUDGE_DRIFT_FLIPS, (JUDGE,)), (Gauge.JUDGE_DRIFT_ALARM, (JUDGE,))
SET = [Anchor(a_sample(f"a{index}", answer=f"Cats purr {index}."), index < 30) for index in range(40)]


def a_judge(*harsh: int, version: str = "scripted-1") -> ScriptedJudge:
    """A judge that accepts the first thirty answers of the set, but for those it is harsh on."""
    script = {f"a{index}": GOOD if index < 30 and index not in harsh else BAD for index in range(40)}
    judge = ScriptedJudge(script)
    judge.version = version
    return judge


def the_anchors(
    store: SqliteStore,
    clock: Clock,
    judge: ScriptedJudge,
    some: list[Anchor] = SET,
    telemetry: Telemetry | None = None,
    **rules: Any,
) -> AnchorLoop:
    """A process that has begun."""
    loop = AnchorLoop(
        AnchorRules(**rules), some, LoopContext(store, telemetry or Telemetry(), clock), judge=judge, holder="me"
    )
    loop.resume()
    return loop


async def test_a_steady_judge_has_not_moved(store: SqliteStore) -> None:
    """The first reading says nothing; the next is a day later, and agrees with it; both are kept."""
    clock, judge = Clock(), a_judge()
    anchors = the_anchors(store, clock, judge)
    assert await anchors.renew() is False
    assert [await anchors.step(), await anchors.step()] == [True, False]
    assert (anchors.gauges(), anchors.moved(), len(judge.asked)) == ({}, False, 40)
    assert the_anchors(store, clock, judge).gauges() == {}
    clock.now += DAY
    assert await anchors.step() is True
    assert anchors.gauges() == the_anchors(store, clock, judge).gauges() == {FLIPS: 0.0, ALARM: 0.0}
    runs = store.runs(ANCHOR, JUDGE, 5)
    assert [(run.failing, run.body["read"], run.body["unread"]) for run in runs] == [(False, 40, {})] * 2
    assert runs[0].body["agreement"]["value"] == 1.0
    assert runs[0].body["offsets"]["faithfulness"]["value"] == 0.0


async def test_a_harsher_version_is_read_at_once_and_has_moved(
    store: SqliteStore, telemetry: Telemetry, log: LogCapture
) -> None:
    """Ten verdicts more are no: the alarm stands, through restarts, until the new judge is taken for granted."""
    clock = Clock()
    await the_anchors(store, clock, a_judge()).step()
    harsh = a_judge(*range(10), version="scripted-2")
    anchors = the_anchors(store, clock, harsh, telemetry=telemetry)
    clock.now += 1.0
    assert await anchors.step() is True
    assert anchors.gauges() == the_anchors(store, clock, harsh).gauges() == {FLIPS: 0.25, ALARM: 1.0}
    body = store.runs(ANCHOR, JUDGE, 5, failing=True)[0].body
    assert (body["since"], body["version"]) == ("scripted-1", "scripted-2")
    assert body["flips"]["p"] == pytest.approx(2 / 2**10)
    assert body["offsets"]["faithfulness"]["value"] == pytest.approx(-0.25)
    assert body["offsets"]["faithfulness"]["high"] < 0.0
    assert body["agreement"]["value"] == 0.75
    assert [(entry["event"], entry["changed"], entry["moved"]) for entry in log.entries] == [("anchors read", 10, True)]
    assert await anchors.renew() is True
    assert the_anchors(store, clock, harsh).moved() is False


async def test_a_clock_that_was_a_year_ahead_keeps_nobody_waiting(store: SqliteStore) -> None:
    """Set right again, the next reading is not a year away; a clock that runs a second behind changes nothing."""
    clock, judge = Clock(AT + 365 * DAY), a_judge()
    await the_anchors(store, clock, judge).step()
    clock.now -= 1.0
    anchors = the_anchors(store, clock, judge)
    assert anchors.due() is False
    clock.now = AT
    assert anchors.due() is True
    assert await anchors.step() is True
    assert anchors.due() is False


async def test_another_set_is_not_compared(store: SqliteStore) -> None:
    """One anchor more makes another set, whose first reading says nothing; the order of a set is no matter."""
    clock = Clock()
    await the_anchors(store, clock, a_judge()).step()
    assert the_anchors(store, clock, a_judge(), SET[::-1]).due() is False
    anchors = the_anchors(store, clock, a_judge(*range(10)), [*SET, Anchor(a_sample("new"))])
    assert await anchors.step() is True
    assert anchors.gauges() == {}


async def test_what_cannot_be_read_is_left_out_and_counted(store: SqliteStore) -> None:
    """Refused anchors, and ones without a claim, are in no pair; people's word is asked where there is one."""
    clock, judge = Clock(), a_judge()
    judge.script |= {"a0": JudgeError("refused", "no"), "a1": an_evidence()}
    anchors = the_anchors(store, clock, judge, [*SET, Anchor(a_sample("unlabelled"))])
    await anchors.step()
    clock.now += DAY
    await anchors.step()
    body = store.runs(ANCHOR, JUDGE, 1)[0].body
    assert (body["read"], body["unread"], body["flips"]["rate"]["n"]) == (40, {"refused": 1}, 39)
    assert body["agreement"]["n"] == 38


async def test_a_set_is_read_to_its_end_across_outages(store: SqliteStore) -> None:
    """While the judge has no money nothing is concluded, and what was paid for is not asked again."""
    clock, judge = Clock(), a_judge()
    judge.script["a39"] = JudgeError("over_budget", "later", permanent=False)
    anchors = the_anchors(store, clock, judge)
    assert await anchors.step() is False
    judge.tired = 5.0
    assert await anchors.step() is False
    assert len(judge.asked) == 40
    judge.tired, judge.script["a39"] = 0.0, BAD
    assert await anchors.step() is True
    assert judge.asked[40:] == ["a39"]


async def test_one_process_of_a_fleet_reads(store: SqliteStore) -> None:
    """Whoever comes second leaves it."""
    assert store.claim(f"{ANCHOR} {JUDGE}", "another", now=AT, seconds=DAY)
    assert await the_anchors(store, Clock(), a_judge()).step() is False


def a_bridge(
    store: SqliteStore, judge: ScriptedJudge, telemetry: Telemetry | None = None, most: int = 30
) -> VersionBridge:
    """A process that has begun."""
    bridge = VersionBridge(
        judge, most, LoopContext(store, telemetry or Telemetry(), Clock(AT + DAY)), timeout_seconds=5.0
    )
    bridge.resume()
    return bridge


async def test_a_bridge_finds_the_offset(store: SqliteStore) -> None:
    """A judge that accepts half of what its forerunner accepted: the offset is -.5, from the same answers.

    An answer whose text is damaged is passed over.
    """
    settle(store, [True] * 41)
    damaged = a_draw("search-scripted-1-40").key
    store.engine._writer.execute("UPDATE samples SET body = X'00ff' WHERE key = ?", (damaged,))
    assert await a_bridge(store, ScriptedJudge()).step() is False
    settle(store, [False] * 5, 41, version="scripted-2")
    half = an_evidence(a_claim((1, 0)), a_claim((0, 0)))
    judge = ScriptedJudge({f"search-scripted-1-{index}": half for index in range(40)})
    judge.version = "scripted-2"
    bridge = a_bridge(store, judge)
    judge.tired = 1.0
    assert await bridge.step() is False
    judge.tired = 0.0
    assert [await bridge.step(), await bridge.step()] == [True, False]
    assert judge.asked == [f"search-scripted-1-{index}" for index in range(39, 9, -1)]
    run = store.runs("bridge", JUDGE, 1)[0]
    assert (run.body["before"], run.body["after"], run.body["answers"]) == ("scripted-1", "scripted-2", 30)
    offset = run.body["offsets"]["faithfulness"]
    assert (offset["value"], offset["n"]) == (-0.5, 30)
    assert offset["low"] < -0.5 < offset["high"] < 0.0
    assert "faithfulness -0.500" in store.events(0.0)[0].detail
    assert await a_bridge(store, judge).step() is False


async def test_a_bridge_does_not_rest_on_failures_that_outlived_the_rest(store: SqliteStore) -> None:
    """A judge looks more lenient on what another one refused; the bridge begins where retention has taken nothing."""
    settle(store, [index % 2 == 0 for index in range(40)])
    a_bridge(store, ScriptedJudge())
    store.prune(Retention((DAY - 1800.0) / DAY, 90.0, 1 << 40), now=AT + DAY)
    assert len(store.find(Query(limit=100))) == 25
    await a_bridge(store, a_judge(version="scripted-2")).step()
    assert store.runs("bridge", JUDGE, 1)[0].body["answers"] == 11


async def test_a_bridge_from_nothing_says_so(store: SqliteStore) -> None:
    """Without answers in common there is no offset, and none is made up."""
    a_bridge(store, ScriptedJudge())
    judge = a_judge(version="scripted-2")
    assert await a_bridge(store, judge, most=0).step() is True
    assert (store.runs("bridge", JUDGE, 1)[0].body["offsets"], judge.asked) == ({}, [])
    assert store.events(0.0)[0].detail.endswith("no answers in common")


def test_the_conversation_is_a_part_of_an_anchor() -> None:
    """The same words in another conversation are another anchor; without one, the key is what it was."""
    plain = Sample("a", "And why?", (), "Yes.")
    keys = {
        Anchor(plain._replace(history=turns)).key for turns in ((), (Turn(Role.USER, "a"),), (Turn(Role.USER, "b"),))
    }
    assert len(keys) == 3
    assert Anchor(plain).key == "6474df2e98a451492a3a49e4f9e63007"
