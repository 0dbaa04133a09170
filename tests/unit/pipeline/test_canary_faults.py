"""Canaries across reloads and outages, and their answers: what was not judged has no score, and costs no other."""

import asyncio
import tracemalloc
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from support.canaries import ScriptedProbe, a_canary, a_canary_loop, a_failure, a_reply
from support.kit import AT, Clock, ScriptedJudge, a_judge_context
from support.patience import DEADLINE

from ragwatch.errors import JudgeError, StoreError
from ragwatch.judges.lexical import judge as lexical
from ragwatch.model.evidence import ShapeError
from ragwatch.pipeline.canaries import AnswerJudging, CanaryLoop, CanarySuite, change_of
from ragwatch.ports import Judge, StoredRun
from ragwatch.statistics.canary.answer import JudgedAnswer
from ragwatch.statistics.canary.definition import Canary, Category, Expected
from ragwatch.statistics.canary.history import body_of, report_of
from ragwatch.statistics.snapshot import Gauge
from ragwatch.stores.sqlite.store import SqliteStore

CANARIES = (a_canary("d1", name="one", query="q1"),)


def canaries(
    store: SqliteStore, probe: ScriptedProbe, *, clock: Clock | None = None, answers: AnswerJudging | None = None
) -> CanaryLoop:
    """One suite, as `build` makes it: the holder is the process."""
    suite = CanarySuite("docs", CANARIES, (1,), probe, answers=answers)
    return a_canary_loop(store, suite, holder="host/1", clock=clock)


async def test_no_probe_is_closed_beneath_a_run(store: SqliteStore) -> None:
    """What a reload breaks would be counted as a failure of the retriever."""
    gate = asyncio.Event()
    probe = ScriptedProbe(gate=gate)
    loop = canaries(store, probe)
    run = asyncio.create_task(loop.run("docs"))
    await probe.busy.wait()
    closing = asyncio.create_task(loop.close())
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(run, closing)
    assert (probe.is_closed, probe.late) == (True, 0)


@pytest.mark.parametrize("error", [ShapeError("torn"), StoreError("disk full"), ZeroDivisionError("bug")])
async def test_a_judge_that_errs_costs_its_score_alone(store: SqliteStore, error: Exception) -> None:
    """What the retriever found is kept and shown, whatever becomes of reading the answer."""
    judge = ScriptedJudge({f"canary/docs/one/{AT}": error})
    loop = canaries(store, ScriptedProbe(), answers=AnswerJudging(judge, oracle=False, clock=Clock()))
    await loop.run("docs")
    assert loop.gauges()[Gauge.CANARY_RECALL, ("docs", "1")] == 1.0


async def test_the_last_success_survives_a_long_outage_and_a_restart(store: SqliteStore) -> None:
    """17 hours of failures at a run each ten minutes, then a restart: the alert on its age must go on firing."""
    clock = Clock()
    await canaries(store, ScriptedProbe(), clock=clock).run("docs")
    down = canaries(store, ScriptedProbe({"q1": a_failure()}), clock=clock)
    down.resume()
    for _ in range(101):
        clock.now += 600.0
        await down.run("docs")
    assert down.gauges()[Gauge.CANARY_LAST_SUCCESS, ("docs",)] == AT
    restarted = canaries(store, ScriptedProbe(), clock=clock)
    restarted.resume()
    assert restarted.gauges() == down.gauges()


def test_resuming_holds_few_runs_at_a_time(store: SqliteStore) -> None:
    """472 canaries with ten hits each: 100 runs are 370 MB of JSON, 7 s of silence at every start and reload."""
    body = {"answered": False, "ks": [1], "reports": [], "answers": [], "line": {"hits": ["x" * 64] * 4000}}
    for index in range(100):
        store.record_run(StoredRun("canary", "docs", AT + index, failing=True, body=body), Counter())
    loop = canaries(store, ScriptedProbe())
    tracemalloc.start()
    loop.resume()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * 4000 * (64 + 49)


async def test_the_next_rooms_run_at_once(store: SqliteStore) -> None:
    """When closed rooms gave a run up, its right is free again: `at_start` of the next ones is not lost."""
    old, new = ScriptedProbe(gate=asyncio.Event()), ScriptedProbe()
    before, after = canaries(store, old), canaries(store, new)
    given_up = asyncio.create_task(before.run("docs"))
    await old.busy.wait()
    await before.close()
    assert await after.run("docs") is not None
    assert await given_up is None


async def test_closed_rooms_ask_nothing(store: SqliteStore) -> None:
    """A job that comes due while the configuration is swapped begins no run with a probe that is closed."""
    probe = ScriptedProbe()
    loop = canaries(store, probe)
    await loop.close()
    assert await loop.run("docs") is None
    assert (probe.asked, store.runs("canary", "docs", 1)) == ([], [])


async def test_what_is_no_longer_configured_is_not_shown(store: SqliteStore) -> None:
    """A canary that was taken out or edited, a k that is gone, answers nobody judges: a reload takes their series."""
    kept, gone = CANARIES[0], a_canary("d9", name="gone", query="q9")
    edited, anew = (a_canary(name, name="edited", query="q2") for name in ("d8", "d1"))
    answers = AnswerJudging(ScriptedJudge(), oracle=False, clock=Clock())
    suite = CanarySuite("docs", (kept, gone, edited), (1, 5), ScriptedProbe(), answers=answers)
    first = a_canary_loop(store, suite)
    await first.run("docs")
    assert first.gauges()[Gauge.CANARY_DEGRADED, ("docs",)] == 2.0
    fewer = replace(suite, canaries=(kept, anew), ks=(5,), answers=None)
    second = a_canary_loop(store, fewer)
    second.resume()
    gauges = second.gauges()
    assert gauges[Gauge.CANARY_DEGRADED, ("docs",)] == 0.0
    assert gauges[Gauge.CANARY_RECALL, ("docs", "5")] == 1.0
    assert (Gauge.CANARY_RECALL, ("docs", "1")) not in gauges
    assert {labels[1] for gauge, labels in gauges if gauge is Gauge.CANARY_SUCCESS} == {"one"}
    assert not [labels for gauge, labels in gauges if gauge is Gauge.CANARY_ANSWER]


GOLD = "Refunds are paid within five days to the card that was used."
ANSWERED = (
    Canary("refunds", "When are refunds paid?", (Expected("d1", GOLD),), reference="Within five days."),
    a_canary("d2", name="by id alone", query="q2"),
    a_canary(name="none", query="q3", category=Category.NEGATIVE),
)


def a_service() -> ScriptedProbe:
    """A service whose retriever brings the wrong passage, and whose generator repeats what it is given."""
    return ScriptedProbe(
        {
            "When are refunds paid?": a_reply("d9", answer=ScriptedProbe.answer),
            "q2": a_reply("d2", answer=" "),
            "q3": a_reply(answer="I do not know."),
        }
    )


def embedded() -> Judge:
    """The embedded judge."""
    return lexical.build(lexical.Options(), name="embedded", context=a_judge_context())


def answering(
    service: ScriptedProbe, judge: Judge, store: SqliteStore, some: Sequence[Canary] = ANSWERED, **parts: Any
) -> CanaryLoop:
    """The loop of a suite whose answers are judged, from what is retrieved and from the right contexts."""
    judging = AnswerJudging(judge, oracle=True, clock=Clock(), **parts)
    return a_canary_loop(store, CanarySuite("docs", tuple(some), (5,), service, answers=judging))


def answers(loop: CanaryLoop) -> Mapping[tuple[str, ...], float]:
    """Gauges of answers by (suite, quantity, contexts)."""
    return {labels: value for (gauge, labels), value in loop.gauges().items() if gauge is Gauge.CANARY_ANSWER}


def stored(store: SqliteStore) -> tuple[JudgedAnswer, ...]:
    """The judged answers of the last run."""
    run = report_of("docs", store.runs("canary", "docs", 1)[0].body)
    assert run is not None
    return run.answers


async def test_a_run_with_wrong_answers_is_no_success_and_an_event(store: SqliteStore) -> None:
    """All canaries retrieve what they expect; the answer is wrong with the right contexts, and then is right again."""
    service = a_service()
    service.replies["When are refunds paid?"] = a_reply("d1", answer=ScriptedProbe.answer)
    loop = answering(service, embedded(), store, ANSWERED[:1])
    service.answer = "Refunds are paid within nine weeks by cheque."
    wrong = await loop.run("docs")
    assert wrong is not None
    assert (wrong.success, len(wrong.degraded)) == (False, 0)
    service.answer = ScriptedProbe.answer
    right = await loop.run("docs")
    assert right is not None
    assert right.success
    assert [event.detail for event in store.events(0.0)] == ["docs: no canary is degraded or failed any more"]
    assert change_of(wrong, body_of(right)) == "docs: 0 of 1 canaries degraded, 0 failed, 1 answered wrong"


async def test_the_oracle_run_tells_retriever_from_generator(store: SqliteStore) -> None:
    """An answer that no retrieved passage supports is supported by the right one: the generator is not to blame."""
    service = a_service()
    loop = answering(service, embedded(), store)
    await loop.run("docs")
    means = answers(loop)
    assert means["docs", "faithfulness", "retrieved"] == 0.0
    assert means["docs", "faithfulness", "gold"] == 1.0
    assert service.given == [(GOLD,)]


async def test_what_was_not_judged_is_kept_with_its_reason(store: SqliteStore) -> None:
    """Empty answers, contexts known by id alone, and a judge that fails: no score, and why."""
    judge = ScriptedJudge({f"{run}/docs/refunds/{AT}": JudgeError("refused", run) for run in ("canary", "oracle")})
    loop = answering(a_service(), judge, store)
    await loop.run("docs")
    assert answers(loop) == {}
    kept = {(answer.canary, answer.contexts): answer for answer in stored(store)}
    assert set(kept) == {(name, contexts) for name in ("refunds", "by id alone") for contexts in ("retrieved", "gold")}
    assert all(answer.scores is None for answer in kept.values())
    assert kept["refunds", "retrieved"].why == "refused: canary"
    assert kept["by id alone", "retrieved"].why == "the answer is empty"
    assert {key for key, answer in kept.items() if answer.wrong} == {("by id alone", "retrieved")}
    assert kept["by id alone", "gold"].why == "an expected context has an id and no text"


async def test_a_failed_call_has_no_answer(store: SqliteStore) -> None:
    """Nothing is judged where nothing came back, and a restart shows what was."""
    service = a_service()
    service.replies |= {"When are refunds paid?": a_failure("timeout")}
    loop = answering(service, embedded(), store)
    await loop.run("docs")
    means = answers(loop)
    assert {labels[2] for labels in means} == {"gold"}
    again = a_canary_loop(store, *loop.suites.values(), clock=Clock(AT + 9))
    again.resume()
    assert answers(again) == means


def test_what_another_version_kept_is_no_answer() -> None:
    """Records that are not ours are passed over; those of a version without `abstained` are read."""
    old = {"canary": "x", "contexts": "gold", "answer": "No.", "scores": {"correctness": 0.0}, "why": ""}
    for records, names in ((None, []), ([{"canary": "x"}], []), ([old], ["x"])):
        run = report_of("docs", {"ks": [5], "reports": [], "answers": records})
        assert run is not None
        assert [answer.canary for answer in run.answers] == names


async def test_a_judge_is_given_as_many_as_it_reads_at_a_time(store: SqliteStore) -> None:
    """More would fill the threads that the store works in; one that never ends does not hold the suite up for ever."""
    stuck, beside = asyncio.Event(), list[bool]()

    async def never() -> None:
        stuck.set()
        try:
            await asyncio.Event().wait()
        finally:
            stuck.clear()

    async def other() -> None:
        beside.append(stuck.is_set())

    script = {f"canary/docs/refunds/{AT}": never, f"oracle/docs/refunds/{AT}": other}
    judge = ScriptedJudge(script, concurrency=1)
    loop = answering(a_service(), judge, store, ANSWERED[:1], timeout_seconds=0.05)
    assert await asyncio.wait_for(loop.run("docs"), DEADLINE) is not None
    kept = {answer.contexts: answer for answer in stored(store)}
    assert (kept["retrieved"].scores, kept["retrieved"].why) == (None, "timeout: not read within 0.05 s")
    assert kept["gold"].scores is not None
    assert beside == [False]
