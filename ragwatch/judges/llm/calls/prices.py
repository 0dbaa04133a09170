"""Prices of tokens, and the worst case of a call."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ragwatch.core.budget import Cost
from ragwatch.core.verdict import Usage

Dollars = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]

LONG_PROMPT_TOKENS = 100_000  # a call with a longer prompt is charged at the rates for long prompts
BATCH_DISCOUNT = 0.5  # factor on the price of calls in a message batch
_MILLION = 1_000_000


class Rates(BaseModel):
    """Prices in US dollars per million tokens.

    Attributes:
        input: Tokens sent.
        output: Tokens received.
        cache_read: Tokens sent that the provider had cached; by default the price of `input`.
        cache_write: Tokens sent that the provider caches; by default the price of `input`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None

    def of(self, usage: Usage) -> float:
        """US dollars for these tokens."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        sent = usage.input_tokens * self.input + usage.cache_read_tokens * read + usage.cache_write_tokens * write
        return (sent + usage.output_tokens * self.output) / _MILLION

    @property
    def max_input(self) -> float:
        """Highest price of a token sent."""
        return max(self.input, self.cache_read or 0.0, self.cache_write or 0.0)


class Prices(Rates):
    """Rates, with different ones for calls whose prompt is longer than 100,000 tokens where there are any."""

    over_100k: Rates | None = None

    def dollars(self, usage: Usage, *, batched: bool = False) -> float:
        """US dollars for one call; half of it in a message batch."""
        prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        rates = self.over_100k if self.over_100k and prompt > LONG_PROMPT_TOKENS else self
        return rates.of(usage) * (BATCH_DISCOUNT if batched else 1.0)


def worst_case(prices: Prices | None, prompt_bytes: int, max_tokens: int) -> Cost:
    """Upper bound on the cost of a call.

    A token of a byte-level vocabulary is one byte at least, so a prompt has no more tokens than bytes. For English that
    is about four times too many, which matters only until the call is settled.
    """
    tokens = prompt_bytes + max_tokens
    if prices is None:
        return Cost(0.0, tokens)
    tiers = [prices] if prices.over_100k is None or prompt_bytes <= LONG_PROMPT_TOKENS else [prices, prices.over_100k]
    dollars = max(prompt_bytes * tier.max_input + max_tokens * tier.output for tier in tiers) / _MILLION
    return Cost(dollars, tokens)
