"""Prices: what tokens cost, the worst that a call can cost, and the refusal to guess."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.errors import ConfigError
from ragwatch.judges.llm.options import LONG_PROMPT_TOKENS, Prices, Rates, known_models, prices_of, worst_case
from ragwatch.model.budget import Cost
from ragwatch.statistics.verdict import Usage

HAIKU = known_models()["claude-haiku-5-5"].prices
COUNTS = st.integers(0, 200_000)


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
    million = {"input_tokens": 1_000_000, "output_tokens": 0}
    for prompt in (LONG_PROMPT_TOKENS, LONG_PROMPT_TOKENS + 1):
        mixed = {
            "input_tokens": prompt,
            "output_tokens": 77_777,
            "cache_read_tokens": 30_000,
            "cache_write_tokens": 7_000,
        }
        for counts in (mixed, mixed | {"cache_read_tokens": 0}, mixed | {"cache_write_tokens": 0}, million):
            theirs = genai_prices.Usage(**counts)
            read, written = counts.get("cache_read_tokens", 0), counts.get("cache_write_tokens", 0)
            usage = Usage(
                counts["input_tokens"] - read - written,
                counts["output_tokens"],
                cache_read_tokens=read,
                cache_write_tokens=written,
            )
            expected = genai_prices.calc_price(theirs, model, provider_id="anthropic").total_price
            assert prices.dollars(usage) == pytest.approx(float(expected))
            batched = genai_prices.calc_price(
                theirs, model, provider_id="anthropic", price_context={"processing": "batch"}
            ).total_price
            assert prices.dollars(usage, batched=True) == pytest.approx(float(batched))


def test_given_prices_go_before_shipped_ones_and_a_snapshot_costs_what_its_model_does() -> None:
    """The configuration has the last word; `claude-haiku-5-5-20261007` is `claude-haiku-5-5`."""
    mine = Prices(input=1.0, output=2.0)
    assert prices_of("claude-haiku-5-5", mine, allow_unknown=False, where="judges.a") is mine
    assert prices_of("claude-haiku-5-5-20261007", None, allow_unknown=False, where="judges.a") is HAIKU


def test_an_unknown_price_is_refused_unless_allowed() -> None:
    """The refusal names the key and what to write there; allowed, there is no price, and none is made up."""
    with pytest.raises(
        ConfigError, match=r"judges\.mine\.prices: the price of 'qwen' is not known; give \{input, output"
    ):
        prices_of("qwen", None, allow_unknown=False, where="judges.mine")
    assert prices_of("qwen", None, allow_unknown=True, where="judges.mine") is None
    assert worst_case(None, 1_000, 50) == Cost(0.0, 1_050)


def test_a_retired_model_is_called_retired() -> None:
    """With the day, and another model; whoever gives a price, or allows none, may know a server that has it."""
    with pytest.raises(ConfigError, match=r"judges\.mine\.model: 'claude-3-sonnet-20240229' is retired: .* 2025-07-21"):
        prices_of("claude-3-sonnet-20240229", None, allow_unknown=False, where="judges.mine")
    assert prices_of("claude-sonnet-4-20250514", None, allow_unknown=True, where="judges.mine") is None
    assert prices_of("claude-sonnet-4-20250514", HAIKU, allow_unknown=False, where="judges.mine") is HAIKU


@given(st.builds(Usage, COUNTS, COUNTS, cache_read_tokens=COUNTS, cache_write_tokens=COUNTS), COUNTS)
def test_no_call_costs_more_than_its_worst_case(usage: Usage, spare: int) -> None:
    """Whatever part of a prompt was cached or written: no more tokens than bytes, so no more money than set aside."""
    sent = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    for prices in (
        HAIKU,
        known_models()["claude-opus-5-5"].prices,
        Prices(input=3.0, output=1.0, over_100k=Rates(input=1, output=9)),
    ):
        worst = worst_case(prices, sent + spare, usage.output_tokens)
        assert prices.dollars(usage) <= worst.usd * (1 + 1e-12)
        assert usage.tokens <= worst.tokens
