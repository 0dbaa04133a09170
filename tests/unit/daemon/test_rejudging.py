"""Stored answers are read again: what was read is stored at once. The action of the daemon, and prompts."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.callers import PRICES, HandClock, ScriptedProvider
from support.kit import AT, JUDGE, ScriptedJudge, a_draw, a_judge_context, a_verdict, an_admission, an_evidence
from support.patience import DEADLINE

from ragwatch.config import load
from ragwatch.daemon import Daemon
from ragwatch.daemon.actions import rebuilt_prompts, rejudge_with
from ragwatch.errors import ConfigError, JudgeError
from ragwatch.judges.llm.judge import LLMJudge
from ragwatch.judges.llm.options import CallOptions
from ragwatch.model.budget import Cost, SpendingCap
from ragwatch.model.evidence import Evidence
from ragwatch.model.sample import Role, Turn
from ragwatch.pipeline.reading import RejudgeOutcome, RejudgeRequest, Rejudging, outcome_of
from ragwatch.pipeline.sampling_control import JudgePlan, SamplingControl
from ragwatch.ports import Query
from ragwatch.statistics.tally import Tallies, Tally
from ragwatch.statistics.verdict import UnjudgedReason
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry
from ragwatch.web import ParameterError

NAMES = ("a", "b", "c", "d")
KEYS = tuple(a_draw(name).key for name in NAMES)
REQUEST = RejudgeRequest(JUDGE, 0.5, KEYS)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """Four answers, drawn with probability 0.5 and read by the first judge."""
    opened = SqliteStore(tmp_path / "state")
    draws = [a_draw(name, probability=0.5) for name in NAMES]
    opened.admit(an_admission(*draws))
    opened.settle([a_verdict(draw) for draw in draws])
    yield opened
    opened.close()


def rejudging(judge: ScriptedJudge, store: SqliteStore) -> Rejudging:
    """Reading with a judge."""
    return Rejudging(judge, store=store, timeout_seconds=DEADLINE, telemetry=Telemetry())


def read_by(store: SqliteStore, judge: str = "second") -> dict[str, float]:
    """Probability of each stored verdict of a judge, by id."""
    return {row.verdict.id: row.verdict.probability for row in store.find(Query(judge=judge))}


async def test_what_cannot_be_read_stays_open(store: SqliteStore) -> None:
    """A failure is counted with its reason, one of the moment comes back, and the next run reads both."""
    broken = JudgeError(UnjudgedReason.REFUSED, "not this one")
    later = JudgeError(UnjudgedReason.OVER_BUDGET, "no budget for it", permanent=False)
    judge = ScriptedJudge(name="second", script={"b": broken, "c": later})
    outcome = await rejudging(judge, store).read(REQUEST)
    assert (outcome.stored, outcome.skipped, outcome.failed, outcome.deferred) == (
        2,
        0,
        {"refused": 1},
        {"over_budget": 1},
    )
    assert outcome.left == (KEYS[2],)
    assert read_by(store) == {"a": 0.25, "d": 0.25}
    assert outcome_of(outcome.to_dict()) == outcome
    again = await rejudging(ScriptedJudge(name="second"), store).read(REQUEST)
    assert (again.stored, again.skipped) == (2, 2)
    assert set(read_by(store).values()) == {0.25}
    assert len(read_by(store)) == 4


async def test_what_was_read_is_stored_when_it_is_cancelled(store: SqliteStore) -> None:
    """Readings may have cost money; those under way end, and nothing else is stored."""
    waits, last = asyncio.Event(), asyncio.Event()

    async def forever() -> Evidence:
        last.set()
        await waits.wait()
        return an_evidence((1, 0))

    outcome = RejudgeOutcome()
    task = asyncio.create_task(
        rejudging(ScriptedJudge(name="second", script={"d": forever}), store).read(REQUEST, outcome)
    )
    await asyncio.wait_for(last.wait(), DEADLINE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert set(read_by(store)) == {"a", "b", "c"}
    assert outcome.stored == 3


async def test_unknown_answers_are_left_out(store: SqliteStore) -> None:
    """They are counted as skipped; without any answer, nothing is read."""
    judge = ScriptedJudge(name="second")
    outcome = await rejudging(judge, store).read(RejudgeRequest("nobody", 1.0, KEYS))
    assert (outcome, judge.asked) == (RejudgeOutcome(skipped=4), [])


def test_its_cost_does_not_make_live_readings_look_dear(store: SqliteStore) -> None:
    """The price of a reading is what all readings cost by their number: live draws fall by the budget that is left."""
    cap = SpendingCap(86400.0, usd=1.0)

    def factor(readings: Tallies) -> float:
        control = SamplingControl({"second": JudgePlan(1.0, (cap,))}, store, 1000)
        arrived: Tallies = Counter({(Tally.ASSIGNED, ("second",)): 100})
        control.update(Counter(), {}, AT - 100.0)
        control.update(arrived + readings, {}, AT)
        return control.factor("second")

    for _ in range(100):
        reservation = store.reserve("second", Cost(0.001), [cap], now=AT - 50.0)
        assert reservation is not None
    judged, rejudged = (Tally.JUDGED, ("search", "second")), (Tally.REJUDGED, ("second",))
    mixed = factor(Counter({judged: 25, rejudged: 75}))
    assert mixed == factor(Counter({judged: 100})) > factor(Counter({judged: 25}))
    assert mixed < 1.0


FIELDS: dict[str, Any] = {
    "judge": "second",
    "of": "embedded",
    "share": 0.5,
    "keys": (a_draw("a").key, a_draw("b").key),
    "charted_before": 0.0,
}


def a_daemon(folder: Path, texts: str = "all") -> Daemon:
    """A daemon with two judges, which does not run, and with one answer that the first one has read."""
    path = folder / "ragwatch.yaml"
    path.write_text(
        f"state: {folder}/state\nweb: {{listen: '127.0.0.1:0'}}\nstore: {{kind: sqlite, texts: {texts}}}\n"
        f"sources: [{{kind: tail, name: app, path: '{folder}/*.jsonl'}}]\n"
        "judges: [{name: embedded, kind: lexical}, {name: second, kind: lexical, probability: 0.1}]\n"
    )
    daemon = Daemon(load(path), path=path)
    daemon.store.admit(an_admission(a_draw("a")))
    daemon.store.settle([a_verdict(a_draw("a"))])
    return daemon


async def test_the_judge_in_force_reads(tmp_path: Path) -> None:
    """The share is part of the stored probability; what is not there is left out; only judges in force are asked."""
    daemon = a_daemon(tmp_path)
    rejudge = rejudge_with(daemon.in_force, daemon.store, daemon.telemetry)
    outcome = outcome_of(await rejudge(FIELDS))
    assert (outcome.stored, outcome.skipped, outcome.left) == (1, 1, ())
    (row,) = daemon.store.find(Query(judge="second"))
    assert row.verdict.probability == 0.5
    with pytest.raises(ParameterError, match="judge: 'third' is not configured; use one of: embedded, second"):
        await rejudge({**FIELDS, "judge": "third"})
    await daemon.runtime.close()
    daemon.store.close()


async def test_texts_must_be_kept(tmp_path: Path) -> None:
    """As for the command."""
    daemon = a_daemon(tmp_path, "failing")
    with pytest.raises(ConfigError, match="is failing, and rejudging needs"):
        await rejudge_with(daemon.in_force, daemon.store, daemon.telemetry)(FIELDS)
    await daemon.runtime.close()
    daemon.store.close()


DRAW = a_draw("a", history=(Turn(Role.USER, "I have a cat."),))


def a_judge(**options: object) -> LLMJudge:
    """A judge whose provider is never called."""
    given = CallOptions.model_validate({"model": "m", "base_url": "http://127.0.0.1:9", "prices": PRICES, **options})
    return LLMJudge(
        "mine", "claude", ScriptedProvider(), given, a_judge_context(), clock=HandClock(), rng=random.Random(1)
    )


def test_the_prompt_is_that_of_the_judge_but_for_its_ids() -> None:
    """Rubric and texts are those of a request; two samples have other ids, one sample the same each time."""
    judge = a_judge()
    built = rebuilt_prompts([judge], "mine", DRAW.sample.to_record())
    assert built is not None
    (prompt,) = built["prompts"]
    (sent,) = judge.start_reading(DRAW.sample, "seed").prompts()
    assert (prompt["system"], built["version"], built["error"]) == (sent.system, judge.version, None)
    lines = [line.partition("| ")[2] for line in prompt["user"].splitlines()]
    assert lines == [line.partition("| ")[2] for line in sent.user.splitlines()]
    assert "I have a cat." in prompt["user"]
    assert rebuilt_prompts([judge], "mine", DRAW.sample.to_record()) == built


def test_a_judge_that_asks_nobody_has_no_prompt() -> None:
    """A judge that is not configured, or that is no model, has none; one that would refuse the sample says why."""

    class Embedded:
        name = "embedded"

    assert rebuilt_prompts([a_judge()], "other", DRAW.sample.to_record()) is None
    assert rebuilt_prompts([Embedded()], "embedded", DRAW.sample.to_record()) is None  # type: ignore[list-item]
    built = rebuilt_prompts([a_judge(max_contexts=1)], "mine", DRAW.sample.to_record())
    assert built is not None
    assert (built["prompts"], built["error"]) == ([], "2 contexts, more than the 1 allowed")
