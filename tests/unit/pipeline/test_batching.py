"""Batch judging: half the price, nothing paid twice, nothing lost, at whatever instant the process is killed."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from structlog.testing import LogCapture
from support.batched import FULLY, PRICE, Life, Provider, names
from support.callers import PRICES, ScriptedProvider, failed, said
from support.kit import AT, JUDGE, Clock, a_draw, an_admission, an_evidence

from ragwatch.errors import ConfigError
from ragwatch.judges.llm.batch_judge import BatchLLMJudge
from ragwatch.judges.llm.judge import LLMJudge
from ragwatch.judges.llm.options import CallOptions
from ragwatch.judges.llm.prompt import Prompt
from ragwatch.model.budget import Cost, SpendingCap
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.batching import LISTING_GRACE_SECONDS, MAX_OPEN_BATCHES, MAX_UNKNOWN_SECONDS, MAX_WAIT_SECONDS
from ragwatch.pipeline.reading import JudgeSelfTests
from ragwatch.pipeline.sampling_control import StoredBudgetAccount
from ragwatch.ports import Erasure, JudgeContext, Query
from ragwatch.ports.judging import Collected
from ragwatch.statistics.tally import Tally
from ragwatch.statistics.verdict import NO_USAGE
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

Start = Callable[..., Life]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a process on the state directory; it is ended with the test."""
    with ExitStack() as ends:
        yield lambda **parts: ends.enter_context(closing(Life(tmp_path / "state", Provider(), **parts)))


@pytest.fixture
def life(start: Start, telemetry: Telemetry) -> Life:
    """The first life."""
    return start(telemetry=telemetry)


async def test_all_are_read_for_half_the_price(life: Life) -> None:
    """Ten draws go out together; when the batch has ended each has its scores and its reply, and the price is half."""
    life.admit(*names(10))
    assert await life.loop.step() is True
    assert [len(entries) for entries in life.provider.taken.values()] == [10]
    assert (life.reasons(), life.store.pending()) == ({}, {JUDGE: 10})
    worst = life.spent().usd
    await life.work()
    assert life.reasons() == dict.fromkeys(names(10))
    assert (life.store.pending(), life.store.batches(JUDGE)) == ({}, [])
    assert life.spent().usd == pytest.approx(10 * PRICE)
    assert worst > life.spent().usd
    verdict = life.store.find(Query(limit=1))[0].verdict
    assert verdict.scores[Quantity.ANSWER_RELEVANCY] == 1.0
    assert {life.store.replies(entry.seq) for entry in life.store.entries(Query())} == {('{"address":"fully"}',)}


async def test_few_draws_wait_a_while_for_others(life: Life) -> None:
    """Fewer than make a batch are sent when one of them has waited for five minutes, and not before."""
    life.clock.now = AT + 1
    life.admit("a", "b")
    assert await life.loop.step() is False
    assert life.provider.taken == {}
    life.clock.now = AT + MAX_WAIT_SECONDS + 1
    assert await life.loop.step() is True
    assert life.provider.entries == 2


@pytest.mark.costly
async def test_no_more_than_some_batches_are_out(life: Life) -> None:
    """While many are out, draws gather for a larger one."""
    for number in range(MAX_OPEN_BATCHES + 4):
        life.admit(*(f"{number}-{letter}" for letter in "abcd"))
        await life.loop.step()
    assert len(life.provider.taken) == MAX_OPEN_BATCHES
    await life.work(6)
    assert len(life.provider.taken) == MAX_OPEN_BATCHES + 1
    assert len(life.reasons()) == 4 * (MAX_OPEN_BATCHES + 4)


async def test_what_becomes_of_entries_that_failed(life: Life, log: LogCapture) -> None:
    """What lies in the sample is unjudged for good; what expired or met an outage is free, waits, and is read later."""
    life.provider.outcomes = {
        "r00x": [failed("server", "the entry expired"), said(FULLY)],
        "r01x": [failed("overloaded"), said(FULLY)],
        "r02x": [said("", stop="refusal")],
        "r03x": [said("prose")],
        "r04x": [failed("rejected")],
    }
    life.admit(*names(6))
    await life.work(1)
    final = {"r02x": "refused", "r03x": "unreadable", "r04x": "rejected"}
    assert life.reasons() == {**dict.fromkeys(names(6)), **final}
    assert life.provider.entries == 8
    assert life.spent().usd == pytest.approx(5 * PRICE)
    counts = {
        labels[-1]: value for (kind, labels), value in life.telemetry.counts().items() if kind == "judge_call_failures"
    }
    assert counts == {"server": 1, "overloaded": 1, "refusal": 1, "invalid_output": 1, "rejected": 1}
    assert sum(each["event"] == "draw deferred" for each in log.entries) == 2


async def test_what_needs_no_model_is_not_sent(life: Life) -> None:
    """Empty answers, too large ones, and ones with nothing to be asked about cost nothing, and alone make no batch."""
    life.store.admit(
        an_admission(
            a_draw("empty", answer=" "),
            a_draw("large", answer="word " * 30_000),
            a_draw("nothing to address", question=None),
            a_draw("plain"),
        )
    )
    await life.work(1)
    assert life.provider.entries == 1
    settled = {"empty": "empty_answer", "large": "too_large", "nothing to address": None, "plain": None}
    assert life.reasons() == settled
    life.store.admit(an_admission(*(a_draw(name, answer=" ") for name in names(4))))
    await life.work(1)
    assert (life.provider.entries, life.store.batches(JUDGE)) == (1, [])
    assert life.reasons() == settled | dict.fromkeys(names(4), "empty_answer")


async def test_what_nobody_knows_the_price_of_stays_set_aside(life: Life) -> None:
    """A result without usage counts at its worst for ever, and the draw is read again."""
    life.provider.outcomes = {"r00x": [failed("protocol", usage=None), said(FULLY)]}
    life.admit(*names(4))
    await life.loop.step()
    worst = life.spent().usd / 4
    await life.work(1)
    assert life.reasons() == dict.fromkeys(names(4))
    assert life.spent().usd == pytest.approx(4 * PRICE + worst, rel=0.01)


async def test_some_are_read_twice_by_a_call(start: Start) -> None:
    """Trials of the judge are made of what came back, by calls like any other's, and counted."""
    life = start(trials=JudgeSelfTests(repeat=1.0))
    life.provider.script = [said(FULLY) for _ in range(5)]
    life.admit(*names(5))
    await life.work(1)
    assert (life.reasons(), len(life.provider.asked)) == (dict.fromkeys(names(5)), 5)
    assert life.store.tallies()[Tally.REPEATED_ALIKE, (JUDGE, life.judge.version, "answer_relevancy")] == 5


async def test_evidence_about_something_else_is_unreadable(life: Life) -> None:
    """A reading that does not fit its sample is a bug of ours, and becomes no number."""
    life.admit(*names(4))
    await life.loop.step()
    result = Collected(an_evidence((), relevant=()), NO_USAGE)
    assert await life.loop._take(a_draw(names(1)[0]), result, 1.0) is True
    await life.work(1)
    assert life.reasons() == {**dict.fromkeys(names(4)), "r00x": "unreadable"}


async def test_without_money_draws_wait(start: Start) -> None:
    """What fits the budget is sent, the rest waits; the cap is never passed, and later there is room again."""
    life = start(caps=[SpendingCap(3600.0, usd=0.02)])
    life.admit(*names(12))
    await life.loop.step()
    assert 0 < life.provider.entries < 12
    assert life.spent().usd <= 0.02
    await life.work(8)
    assert life.reasons() == dict.fromkeys(names(12))


@pytest.mark.costly
async def test_a_provider_that_takes_nothing_is_left_alone(life: Life) -> None:
    """A batch that is surely not accepted costs nothing; it is tried again later and later, and not every second."""
    life.provider.refuses = [failed("overloaded") for _ in range(50)]
    life.admit(*names(8))
    await life.work(6)
    assert 20 < 50 - len(life.provider.refuses) < 50
    assert (life.spent(), life.reasons()) == (Cost(), {})
    life.provider.refuses = []
    await life.work(6)
    assert life.reasons() == dict.fromkeys(names(8))


async def test_a_batch_whose_acceptance_was_not_heard_is_found(life: Life) -> None:
    """The line dies behind the submission, and the list is late: nothing is sent again, all results are collected."""
    life.provider.silent = True
    life.provider.listed_after = LISTING_GRACE_SECONDS - 1
    life.provider.lists_fail = 2
    life.admit(*names(5))
    await life.work(4)
    assert life.provider.entries == 5
    assert life.reasons() == dict.fromkeys(names(5))


async def test_results_that_break_off_are_read_on(life: Life) -> None:
    """What came before is settled and counted once; the rest is read the next time."""
    life.provider.breaks_at = 3
    life.admit(*names(5))
    await life.work(1)
    assert (life.provider.entries, life.reasons()) == (5, dict.fromkeys(names(5)))
    tokens = [value for (kind, _), value in life.telemetry.counts().items() if kind == "judge_tokens"]
    assert sum(tokens) == 5 * 110


async def test_a_result_that_is_told_twice_counts_once(start: Start, telemetry: Telemetry, log: LogCapture) -> None:
    """All draws are judged; the repeated ones are tested, paid and counted once, the first result holds; logged."""
    life = start(trials=JudgeSelfTests(repeat=1.0), telemetry=telemetry)
    life.provider.script = [said(FULLY) for _ in range(5)]
    life.admit(*names(5))
    await life.loop.step()
    results = life.provider.told["batch-0"]
    results[:0] = [(name, said("prose")) for name, _ in results[:2]]  # told last, as results come in reverse
    await life.work(1)
    assert (life.reasons(), life.store.batches(JUDGE)) == (dict.fromkeys(names(5)), [])
    assert (life.provider.entries, len(life.provider.asked)) == (5, 5)
    tokens = [value for (kind, _), value in telemetry.counts().items() if kind == "judge_tokens"]
    assert sum(tokens) == 10 * 110  # five entries and five self-tests
    (told,) = [each for each in log.entries if each["event"] == "judge call failed"]
    assert (told["reason"], told["why"].partition(":")[0]) == ("protocol", "batch batch-0")


def forget(life: Life, *names: str) -> None:
    """Erase these answers."""
    assert len(life.store.forget(Erasure(ids=frozenset(names))).keys) == len(names)


async def test_unheard_batches_are_not_taken_for_each_other(life: Life) -> None:
    """One from which an answer was forgotten has as many draws left as the other was sent with: ids decide."""
    for few in (names(9)[:5], names(9)[5:]):
        life.provider.silent = True
        life.admit(*few)
        await life.loop.step()
    forget(life, "r00x")
    await life.work(4)
    assert life.provider.entries == 9
    assert life.reasons() == {**dict.fromkeys(names(9)[1:]), a_draw("r00x").key: "erased"}
    assert life.spent().usd >= 9 * PRICE


async def test_an_unheard_batch_without_answers_is_closed(life: Life) -> None:
    """All are forgotten: nothing is left to be collected, and what was set aside may have been paid."""
    life.provider.silent = True
    life.admit(*names(4))
    await life.loop.step()
    held = life.spent()
    life.provider.looks["batch-0"] = -1_000_000  # it runs on
    forget(life, *names(4))
    await life.work(1)
    assert (life.store.batches(JUDGE), life.store.pending(), life.spent()) == ([], {}, held)


def foreign(life: Life, name: str, size: int, at: float) -> None:
    """A batch that somebody else has sent with the same key."""
    entries = [(f"theirs-{index}", Prompt("", "", {}, 1, str)) for index in range(size)]
    life.provider.taken[name], life.provider.created[name] = entries, at
    life.provider.told[name] = [(custom_id, said(FULLY)) for custom_id, _ in entries]


async def test_later_batches_of_others_do_not_hold_ours_up(life: Life) -> None:
    """Whether a batch was received is decided though somebody else has ones under way all the time."""
    life.provider.refuses = [failed("timeout", usage=None)]
    life.admit(*names(5))
    await life.loop.step()
    foreign(life, "later", 8, life.clock.now + 2 * 3600)
    life.provider.looks["later"] = -1_000_000  # it never ends
    life.clock.now += 3 * 3600
    await life.work(1)
    assert life.reasons() == dict.fromkeys(names(5))
    assert life.spent().usd == pytest.approx(5 * PRICE)


@pytest.mark.parametrize("size", [5, 8])
async def test_another_ones_batch_is_not_taken_for_ours(life: Life, size: int) -> None:
    """A batch of the same size or a larger one, sent by somebody else at the same time, is left alone."""
    foreign(life, "foreign", size, AT)
    life.provider.refuses = [failed("timeout", usage=None)]
    life.admit(*names(5))
    await life.loop.step()
    assert life.spent().usd > 0.0  # it may have been accepted
    life.clock.now += LISTING_GRACE_SECONDS / 2
    await life.loop.step()
    assert life.reasons() == {}
    await life.work(4)
    assert life.reasons() == dict.fromkeys(names(5))
    assert life.spent().usd == pytest.approx(5 * PRICE)


async def test_a_batch_that_nobody_knows_is_given_up_after_two_days(life: Life) -> None:
    """Its draws go back to the queue; what was set aside stays so, for it may have been paid."""
    life.admit(*names(4))
    await life.loop.step()
    held = life.spent()
    life.provider.taken.clear()
    await life.work(MAX_UNKNOWN_SECONDS / 3600 - 1)
    assert (life.reasons(), life.spent()) == ({}, held)
    await life.work(4)
    assert life.reasons() == dict.fromkeys(names(4))
    assert life.spent().usd == pytest.approx(held.usd + 4 * PRICE)


async def test_replies_to_another_version_are_not_read(life: Life) -> None:
    """A batch asked with another prompt is paid, and its draws are read anew: means hold one version each."""
    life.admit(*names(4))
    await life.loop.step()
    life.judge.version = "claude-scripted-new"
    await life.work(4)
    assert life.provider.entries == 8
    assert life.spent().usd == pytest.approx(8 * PRICE)
    assert {row.verdict.judge_version for row in life.store.find(Query())} == {"claude-scripted-new"}


async def test_each_page_has_ids_of_its_own(life: Life) -> None:
    """Ids of one page tell nothing about those of another, and custom ids nothing about the draws."""
    life.admit(*names(4))
    await life.loop.step()
    (entries,) = life.provider.taken.values()
    fences = {ask.user.splitlines()[0] for _, ask in entries}
    assert len(fences) == 4
    assert not {custom_id for custom_id, _ in entries} & {a_draw(name).key for name in names(4)}


def test_what_cannot_be_asked_in_batches_is_told() -> None:
    """Isolated reading takes several calls a sample; a provider without batches has none."""
    context = JudgeContext(Telemetry(), StoredBudgetAccount(JUDGE, (), SqliteStore, Clock()), Clock())  # type: ignore[arg-type]  # not used
    whole = {"model": "m", "base_url": "http://127.0.0.1:9", "prices": PRICES, "urgency": "relaxed"}
    given = CallOptions.model_validate(whole)
    with pytest.raises(ConfigError, match=r"judges\.mine\.urgency: openai has no message batches"):
        LLMJudge("mine", "openai", ScriptedProvider(), given, context)
    with pytest.raises(ConfigError, match=r"judges\.mine\.urgency: relaxed reads each sample in one call"):
        BatchLLMJudge("mine", "claude", Provider(), given.model_copy(update={"reading": "isolated"}), context)
    assert BatchLLMJudge("mine", "claude", Provider(), given, context).name == "mine"
