"""Canary answers: judged from retrieved and from expected contexts; what was not judged has no score."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from support.canaries import a_canary, a_canary_loop, a_failure, a_reply
from support.kit import AT, Clock, ScriptedJudge, a_judge_context
from support.patience import DEADLINE

from ragwatch.core.canary.answer import JudgedAnswer
from ragwatch.core.canary.definition import Canary, Category, Expected, Retrieved
from ragwatch.core.canary.history import body_of, report_of
from ragwatch.core.evidence import Evidence
from ragwatch.core.sample import Sample
from ragwatch.core.snapshot import Gauge
from ragwatch.core.verdict import Usage
from ragwatch.errors import JudgeError
from ragwatch.judges.lexical import judge as lexical
from ragwatch.pipeline.canaries import AnswerJudging, CanaryLoop, CanarySuite, change_of
from ragwatch.ports import Judge
from ragwatch.stores.sqlite.store import SqliteStore

GOLD = "Refunds are paid within five days to the card that was used."
CANARIES = (
    Canary("refunds", "When are refunds paid?", (Expected("d1", GOLD),), reference="Within five days."),
    a_canary("d2", name="by id alone", query="q2"),
    a_canary(name="none", query="q3", category=Category.NEGATIVE),
)


class Service:
    """A service whose retriever brings the wrong passage, and whose generator repeats what it is given."""

    name, concurrency, answer = "docs", 4, "Refunds are paid within five days."

    def __init__(self) -> None:
        self.given: list[Sequence[str]] = []
        self.replies: dict[str, Retrieved] = {
            "When are refunds paid?": replace(a_reply("d9"), answer="Refunds are paid within five days."),
            "q2": replace(a_reply("d2"), answer=" "),
            "q3": replace(a_reply(), answer="I do not know."),
        }

    async def ask(self, query: str, k: int) -> Retrieved:  # noqa: ARG002 - the port's
        """The reply to this query."""
        return self.replies[query]

    async def ask_with(self, query: str, contexts: Sequence[str]) -> Retrieved:  # noqa: ARG002 - the same
        """An answer from these contexts."""
        self.given.append(contexts)
        return Retrieved(answer=self.answer)

    async def close(self) -> None:
        """Nothing is held."""


class RefusingJudge(ScriptedJudge):
    """A judge that reads nothing."""

    async def read(self, sample: Sample) -> tuple[Evidence, Usage]:
        """No."""
        raise JudgeError("refused", f"no {sample.id[:6]}")


def embedded() -> Judge:
    """The embedded judge."""
    return lexical.build(lexical.Options(), name="embedded", context=a_judge_context())


async def run(service: Service, judge: Judge, store: SqliteStore) -> CanaryLoop:
    """One run of the suite."""
    suite = CanarySuite("docs", CANARIES, (5,), service, answers=AnswerJudging(judge, oracle=True, clock=Clock()))
    canaries = a_canary_loop(store, suite)
    await canaries.run("docs")
    return canaries


def answers(canaries: CanaryLoop) -> Mapping[tuple[str, ...], float]:
    """Gauges of answers by (suite, quantity, contexts)."""
    return {labels: value for (gauge, labels), value in canaries.gauges().items() if gauge is Gauge.CANARY_ANSWER}


def stored(store: SqliteStore) -> tuple[JudgedAnswer, ...]:
    """The judged answers of the last run."""
    run = report_of("docs", store.runs("canary", "docs", 1)[0].body)
    assert run is not None
    return run.answers


async def test_a_run_with_wrong_answers_is_no_success_and_an_event(store: SqliteStore) -> None:
    """All canaries retrieve what they expect; the answer is wrong with the right contexts, and then is right again."""
    service = Service()
    service.replies["When are refunds paid?"] = replace(a_reply("d1"), answer="Refunds are paid within five days.")
    suite = CanarySuite(
        "docs", CANARIES[:1], (5,), service, answers=AnswerJudging(embedded(), oracle=True, clock=Clock())
    )
    canaries = a_canary_loop(store, suite)
    service.answer = "Refunds are paid within nine weeks by cheque."
    wrong = await canaries.run("docs")
    assert wrong is not None
    assert (wrong.success, len(wrong.degraded)) == (False, 0)
    service.answer = Service.answer
    right = await canaries.run("docs")
    assert right is not None
    assert right.success
    assert [event.detail for event in store.events(0.0)] == ["docs: no canary is degraded or failed any more"]
    assert change_of(wrong, body_of(right)) == "docs: 0 of 1 canaries degraded, 0 failed, 1 answered wrong"


async def test_the_oracle_run_tells_retriever_from_generator(store: SqliteStore) -> None:
    """An answer that no retrieved passage supports is supported by the right one: the generator is not to blame."""
    service = Service()
    means = answers(await run(service, embedded(), store))
    assert means["docs", "faithfulness", "retrieved"] == 0.0
    assert means["docs", "faithfulness", "gold"] == 1.0
    assert service.given == [(GOLD,)]


async def test_what_was_not_judged_is_kept_with_its_reason(store: SqliteStore) -> None:
    """Empty answers, contexts known by id alone, and a judge that fails: no score, and why."""
    canaries = await run(Service(), RefusingJudge(), store)
    assert answers(canaries) == {}
    kept = {(answer.canary, answer.contexts): answer for answer in stored(store)}
    assert set(kept) == {(name, contexts) for name in ("refunds", "by id alone") for contexts in ("retrieved", "gold")}
    assert all(answer.scores is None for answer in kept.values())
    assert kept["refunds", "retrieved"].why == "refused: no canary"
    assert kept["by id alone", "retrieved"].why == "the answer is empty"
    assert {key for key, answer in kept.items() if answer.wrong} == {("by id alone", "retrieved")}
    assert kept["by id alone", "gold"].why == "an expected context has an id and no text"


async def test_a_failed_call_has_no_answer(store: SqliteStore) -> None:
    """Nothing is judged where nothing came back, and a restart shows what was."""
    service = Service()
    service.replies |= {"When are refunds paid?": a_failure("timeout")}
    canaries = await run(service, embedded(), store)
    means = answers(canaries)
    assert {labels[2] for labels in means} == {"gold"}
    again = a_canary_loop(store, *canaries.suites.values(), clock=Clock(AT + 9))
    again.resume()
    assert answers(again) == means


def test_what_another_version_kept_is_no_answer() -> None:
    """Records that are not ours are passed over; those of a version without `abstained` are read."""
    old = {"canary": "x", "contexts": "gold", "answer": "No.", "scores": {"correctness": 0.0}, "why": ""}
    for records, names in ((None, []), ([{"canary": "x"}], []), ([old], ["x"])):
        run = report_of("docs", {"ks": [5], "reports": [], "answers": records})
        assert run is not None
        assert [answer.canary for answer in run.answers] == names


class SlowJudge(ScriptedJudge):
    """A judge that never ends with one answer, and counts how many it reads side by side."""

    def __init__(self, stuck: str) -> None:
        super().__init__(concurrency=1)
        self.stuck, self.at_once, self.most = stuck, 0, 0

    async def read(self, sample: Sample) -> tuple[Evidence, Usage]:
        """In its time."""
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await (asyncio.Event().wait() if sample.id.startswith(self.stuck) else asyncio.sleep(0))
            return await super().read(sample)
        finally:
            self.at_once -= 1


async def test_a_judge_is_given_as_many_as_it_reads_at_a_time(store: SqliteStore) -> None:
    """More would fill the threads that the store works in; one that never ends does not hold the suite up for ever."""
    judge, service = SlowJudge("canary/docs/refunds"), Service()
    limited = AnswerJudging(judge, oracle=True, clock=Clock(), timeout_seconds=0.05)
    suite = CanarySuite("docs", CANARIES[:1], (5,), service, answers=limited)
    canaries = a_canary_loop(store, suite)
    assert await asyncio.wait_for(canaries.run("docs"), DEADLINE) is not None
    kept = {answer.contexts: answer for answer in stored(store)}
    assert (kept["retrieved"].scores, kept["retrieved"].why) == (None, "timeout: not read within 0.05 s")
    assert kept["gold"].scores is not None
    assert judge.most == 1
