"""The caller: money before and after every try, what is asked again and what is not, and what tokens cost."""

import asyncio
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import LogCapture
from support.callers import USAGE, Bench, an_ask, failed, refused, said

from ragwatch.errors import ConfigError, JudgeError
from ragwatch.judges.llm.caller import MAX_TRIES, ReadingCost
from ragwatch.judges.llm.failures import CallError, CallFailure
from ragwatch.judges.llm.options import LONG_PROMPT_TOKENS, Prices, Rates, known_models, prices_of, worst_case
from ragwatch.model.budget import Cost
from ragwatch.statistics.verdict import Usage
from ragwatch.telemetry import Telemetry

PAID = (100 * 1.0 + 10 * 10.0) / 1e6
HAIKU = known_models()["claude-haiku-5-5"].prices
COUNTS = st.integers(0, 200_000)


async def make(bench: Bench, bill: ReadingCost | None = None, deadline: float = 25.0, **parts: int) -> object:
    """One ask through the caller."""
    return await bench.caller.call(an_ask(**parts), bill or ReadingCost(), bench.clock.now() + deadline)


async def test_a_reply_is_paid_as_used() -> None:
    """The worst case gives way to the price of what was used; the bill and the counts say the same."""
    bench, bill = Bench(), ReadingCost()
    assert await make(bench, bill) == "understood"
    assert bench.purse.spent() == Cost(pytest.approx(PAID), 110)
    assert bill.usage == Usage(100, 10, pytest.approx(PAID))
    assert bench.counts("judge_tokens") == {("input",): 100, ("output",): 10, ("cache_read",): 0, ("cache_write",): 0}
    assert bench.counts("judge_cost_dollars") == {(): pytest.approx(PAID)}
    unpriced = Bench(prices=None)
    await make(unpriced)
    assert unpriced.purse.spent() == Cost(0.0, 110)


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


async def test_no_try_begins_behind_the_deadline() -> None:
    """A wait that would pass the deadline is not begun: the sample goes back to the queue."""
    bench = Bench(*[failed(wait=10.0)] * 9)
    assert await refused(make(bench, deadline=25.0)) == ("unavailable", False)
    assert len(bench.provider.asked) == 3
    assert sum(bench.clock.slept) == 20.0
    bench = Bench()
    assert await refused(make(bench, deadline=-1.0)) == ("unavailable", False)
    assert bench.provider.asked == []


async def test_each_flaw_is_mended_once() -> None:
    """A cut reply gets twice the room, an invalid one a note; after both, the next flaw is the last word."""
    bench = Bench(said("", stop="max_tokens"), said("no"), said("", stop="max_tokens"))
    assert await refused(make(bench)) == ("truncated", True)
    assert [most for _, most in bench.provider.asked] == [50, 100, 100]
    page, _, note = bench.provider.asked[2][0].partition("\n\n")
    assert page == "the page"
    assert "claims[0].id" in note
    withheld = Bench(said("no"))  # and no repeat is left: the sample goes back to the queue
    while withheld.pool.take_retry():
        pass
    assert await refused(make(withheld)) == ("unreadable", False)


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


@pytest.mark.parametrize(
    ("prices", "usage", "dollars"),
    [
        (HAIKU, Usage(6_000, 1_000), 0.0011),
        (HAIKU, Usage(0, 0, cache_read_tokens=100_000), 0.001),  # a tenth
        (HAIKU, Usage(0, 0, cache_write_tokens=100_000), 0.0125),  # 1.25 times
        # Above 100,000 tokens of prompt, cached or not, every token of the call costs the long prompt's rates.
        (HAIKU, Usage(100_000, 1_000), 0.0105),
        (HAIKU, Usage(60_000, 1_000, cache_read_tokens=40_001), (60_000 * 0.5 + 40_001 * 0.05 + 1_000 * 2.5) / 1e6),
        # Not knowing a discount is no reason to grant one.
        (Prices(input=1.0, output=2.0), Usage(1, 1, cache_read_tokens=1, cache_write_tokens=1), 5e-6),
    ],
)
def test_a_call_costs_what_the_price_list_says(prices: Prices, usage: Usage, dollars: float) -> None:
    """Tokens in and out, from the cache and into it, for short and long prompts; in batches half of it."""
    assert prices.dollars(usage) == pytest.approx(dollars)
    assert HAIKU.dollars(Usage(6_000, 1_000), batched=True) == pytest.approx(0.00055)


@pytest.mark.parametrize("model", sorted(known_models()))
def test_known_prices_are_those_of_the_price_list_that_others_keep(model: str) -> None:
    """The package genai-prices has the same: every kind of token, on both sides of 100,000, and in batches."""
    genai_prices = pytest.importorskip("genai_prices", reason="genai-prices is not installed")
    prices = known_models()[model].prices
    plain = {"input_tokens": 1_000_000, "output_tokens": 0, "cache_read_tokens": 0, "cache_write_tokens": 0}
    for prompt in (LONG_PROMPT_TOKENS, LONG_PROMPT_TOKENS + 1):
        cached = {"cache_read_tokens": 30_000, "cache_write_tokens": 7_000}
        mixed = {"input_tokens": prompt, "output_tokens": 77_777} | cached
        for counts in (mixed, mixed | {"cache_read_tokens": 0}, mixed | {"cache_write_tokens": 0}, plain):
            read, written = counts["cache_read_tokens"], counts["cache_write_tokens"]
            new = counts["input_tokens"] - read - written
            usage = Usage(new, counts["output_tokens"], cache_read_tokens=read, cache_write_tokens=written)
            theirs = partial(genai_prices.calc_price, genai_prices.Usage(**counts), model, provider_id="anthropic")
            batched = theirs(price_context={"processing": "batch"})
            assert prices.dollars(usage) == pytest.approx(float(theirs().total_price))
            assert prices.dollars(usage, batched=True) == pytest.approx(float(batched.total_price))


def test_the_price_of_a_model() -> None:
    """What is given goes before what is known; a snapshot costs what its model does; none is made up where it is not.

    The refusal of an unknown price names the key and what to write there, that of a retired model the day; whoever
    gives a price, or allows none, may know a server that has it.
    """
    find = partial(prices_of, where="judges.mine")
    mine = Prices(input=1.0, output=2.0)
    assert find("claude-haiku-5-5", mine, allow_unknown=False) is mine
    assert find("claude-haiku-5-5-20261007", None, allow_unknown=False) is HAIKU
    unknown = r"judges\.mine\.prices: the price of 'qwen' is not known; give \{input, output"
    retired = r"judges\.mine\.model: 'claude-3-sonnet-20240229' is retired: .* 2025-07-21"
    for model, why in (("qwen", unknown), ("claude-3-sonnet-20240229", retired)):
        with pytest.raises(ConfigError, match=why):
            find(model, None, allow_unknown=False)
        assert find(model, None, allow_unknown=True) is None
        assert find(model, HAIKU, allow_unknown=False) is HAIKU
    assert worst_case(None, 1_000, 50) == Cost(0.0, 1_050)


@given(st.builds(Usage, COUNTS, COUNTS, cache_read_tokens=COUNTS, cache_write_tokens=COUNTS), COUNTS)
def test_no_call_costs_more_than_its_worst_case(usage: Usage, spare: int) -> None:
    """Whatever part of a prompt was cached or written: no more tokens than bytes, so no more money than set aside."""
    sent = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    cheaper_when_long = Prices(input=3.0, output=1.0, over_100k=Rates(input=1, output=9))
    for prices in (HAIKU, known_models()["claude-opus-5-5"].prices, cheaper_when_long):
        worst = worst_case(prices, sent + spare, usage.output_tokens)
        assert prices.dollars(usage) <= worst.usd * (1 + 1e-12)
        assert usage.tokens <= worst.tokens
