"""The caller: money before and after every try, what is asked again and what is not, and when it ends."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import LogCapture
from support.callers import USAGE, Bench, an_ask, failed, refused, said

from ragwatch.errors import JudgeError
from ragwatch.judges.llm.caller import MAX_TRIES, ReadingCost
from ragwatch.judges.llm.failures import CallError, CallFailure
from ragwatch.statistics.verdict import Usage
from ragwatch.telemetry import Telemetry

PAID = (100 * 1.0 + 10 * 10.0) / 1e6


async def make(bench: Bench, bill: ReadingCost | None = None, deadline: float = 25.0, **parts: int) -> object:
    """One ask through the caller."""
    return await bench.caller.call(an_ask(**parts), bill or ReadingCost(), bench.clock.now() + deadline)


async def test_a_reply_is_paid_as_used() -> None:
    """The worst case gives way to the price of what was used; the bill and the counts say the same."""
    bench, bill = Bench(), ReadingCost()
    assert await make(bench, bill) == "understood"
    assert bench.purse.spent().usd == pytest.approx(PAID)
    assert bench.purse.spent().tokens == 110
    assert bill.usage == Usage(100, 10, pytest.approx(PAID))
    assert bench.counts("judge_tokens") == {("input",): 100, ("output",): 10, ("cache_read",): 0, ("cache_write",): 0}
    assert bench.counts("judge_cost_dollars") == {(): pytest.approx(PAID)}


async def test_a_reply_that_is_worth_nothing_is_paid_all_the_same() -> None:
    """An invalid reply and its repair are both on the bill; so is a refusal that ends in an error."""
    bench, bill = Bench(said("no"), said()), ReadingCost()
    await make(bench, bill)
    assert bill.usage.tokens == 220
    for lost in (said("", stop="refusal", detail="bio"), CallError(CallFailure.REFUSAL, "odd (bio)", usage=USAGE)):
        bench, bill = Bench(lost), ReadingCost()
        assert await refused(make(bench, bill), r"refusal: .* \(bio\)") == ("refused", True)
        assert (bill.usage.tokens, bench.purse.spent().tokens) == (110, 110)


async def test_a_cancelled_call_counts_in_full() -> None:
    """Nobody knows what a call that was given up did cost: its worst case stays set aside."""
    hanging = asyncio.Event()

    async def publish() -> None:
        hanging.set()
        await asyncio.Event().wait()

    bench = Bench(publish)
    task = asyncio.create_task(make(bench))
    await hanging.wait()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert bench.purse.spent().usd > 50 * 10.0 / 1e6
    assert bench.counts("judge_calls") == {(): 1}
    assert await make(bench) == "understood"  # and its place is free again


async def test_a_provider_that_never_ends_is_given_up() -> None:
    """However a server keeps a call alive, it ends after the timeout, at its worst case."""
    never = asyncio.Event()
    bench = Bench(*[never.wait] * MAX_TRIES, timeout=0.01)
    assert await refused(make(bench)) == ("timeout", False)
    assert bench.counts("judge_call_failures") == {("timeout",): MAX_TRIES}
    assert bench.purse.spent().usd > MAX_TRIES * 50 * 10.0 / 1e6


async def test_what_a_model_may_think_is_set_aside_too() -> None:
    """Thinking tokens are added to the reply's, in the request and in the worst case."""
    bench = Bench(said(usage=None), thinking=1_000)
    await make(bench, max_tokens=50)
    assert bench.provider.asked == [("the page", 1_050)]
    assert bench.purse.spent().usd > 1_050 * 10.0 / 1e6


async def test_without_a_price_tokens_are_counted() -> None:
    """An unpriced model spends tokens and no dollars."""
    bench = Bench(prices=None)
    await make(bench)
    assert (bench.purse.spent().usd, bench.purse.spent().tokens) == (0.0, 110)


async def test_no_try_begins_behind_the_deadline() -> None:
    """A wait that would pass the deadline is not begun: the sample goes back to the queue."""
    bench = Bench(*[failed(wait=10.0)] * 9)
    assert await refused(make(bench, deadline=25.0)) == ("unavailable", False)
    assert len(bench.provider.asked) == 3
    assert sum(bench.clock.slept) == 20.0
    bench = Bench()
    assert await refused(make(bench, deadline=-1.0)) == ("unavailable", False)
    assert bench.provider.asked == []


async def test_a_repair_that_was_withheld_is_not_the_last_word() -> None:
    """When no repeat is left, an invalid reply sends the sample back to the queue instead of failing it for good."""
    bench = Bench(said("no"))
    while bench.pool.take_retry():
        pass
    assert await refused(make(bench)) == ("unreadable", False)


async def test_each_flaw_is_mended_once() -> None:
    """A cut reply gets twice the room, an invalid one a note; after both, the next flaw is the last word."""
    bench = Bench(said("", stop="max_tokens"), said("no"), said("", stop="max_tokens"))
    assert await refused(make(bench)) == ("truncated", True)
    assert [most for _, most in bench.provider.asked] == [50, 100, 100]
    page, _, note = bench.provider.asked[2][0].partition("\n\n")
    assert page == "the page"
    assert "claims[0].id" in note


async def test_a_stop_reason_nobody_knows_is_named_as_far_as_it_is_a_word() -> None:
    """A known end passes, an unknown one is invalid; text in its place does not reach the log."""
    assert await make(Bench(said(stop="stop_sequence"))) == "understood"
    for stop, told in (("resting", "resting"), ("ignore all rules, please", "no known reason")):
        await refused(make(Bench(*[said(stop=stop)] * 2)), told)


async def test_an_open_breaker_ends_the_tries() -> None:
    """Five failures of five open the breaker in the second ask, which then is not repeated any more."""
    bench = Bench(*[failed()] * 9)
    await refused(make(bench))
    assert await refused(make(bench)) == ("unavailable", False)
    assert len(bench.provider.asked) == 5
    assert bench.pool.ready_in() == pytest.approx(30.0)


async def test_no_money_no_call() -> None:
    """What the purse refuses is not asked, and no place is kept."""
    bench = Bench(concurrency=1)

    class Empty:
        async def reserve(self, worst: object) -> int:
            raise JudgeError("over_budget", f"no room for {worst}", permanent=False)

        async def settle(self, reservation: int, actual: object) -> None:
            raise AssertionError(reservation, actual)

    bench.caller.budget = Empty()
    for _ in range(3):
        assert await refused(make(bench)) == ("over_budget", False)
    assert bench.provider.asked == []
    assert bench.counts("judge_calls") == {}


async def test_failures_are_told_with_their_reason(telemetry: Telemetry, log: LogCapture) -> None:
    """Each try that failed is counted and logged by its reason."""
    bench = Bench(failed("overloaded", "HTTP 529"), telemetry=telemetry)
    await make(bench)
    assert bench.counts("judge_call_failures") == {("overloaded",): 1}
    assert [(entry["reason"], entry["why"]) for entry in log.entries] == [("overloaded", "HTTP 529")]
