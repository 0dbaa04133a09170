"""Prices: what tokens cost. Unknown is not zero: without a price there is no judge, unless somebody insists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ragwatch.core.budget import Cost
from ragwatch.core.verdict import Usage
from ragwatch.errors import ConfigError

Dollars = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]

LONG_PROMPT = 100_000  # tokens above which a whole call costs the long prompt's rates
BATCH_SHARE = 0.5  # of the price, for calls within a message batch
_MILLION = 1_000_000
_SNAPSHOT = re.compile(r"[-@]20\d{6}$")  # a dated name costs what the model costs


class Rates(BaseModel):
    """Prices in US dollars per million tokens.

    Attributes:
        input: Tokens sent.
        output: Tokens received.
        cache_read: Tokens sent that the provider had cached; by default as dear as others.
        cache_write: Tokens sent that the provider caches; by default as dear as others.
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
    def dearest_input(self) -> float:
        """The most that a token sent can cost."""
        return max(self.input, self.cache_read or 0.0, self.cache_write or 0.0)


class Prices(Rates):
    """Rates, and those of calls whose prompt is longer than 100,000 tokens where these differ."""

    over_100k: Rates | None = None

    def dollars(self, usage: Usage, *, batched: bool = False) -> float:
        """US dollars for one call; in a message batch it costs half."""
        prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        rates = self.over_100k if self.over_100k and prompt > LONG_PROMPT else self
        return rates.of(usage) * (BATCH_SHARE if batched else 1.0)


# As published in October 2026 (platform.claude.com, models/overview); cached tokens cost 0.1 and 1.25 times the rest.
SHIPPED: Mapping[str, Prices] = MappingProxyType(
    {
        "claude-haiku-5-5": Prices(
            input=0.10,
            output=0.50,
            cache_read=0.01,
            cache_write=0.125,
            over_100k=Rates(input=0.50, output=2.50, cache_read=0.05, cache_write=0.625),
        ),
        "claude-sonnet-5-5": Prices(input=2.0, output=10.0, cache_read=0.2, cache_write=2.5),
        "claude-opus-5-5": Prices(input=4.0, output=20.0, cache_read=0.4, cache_write=5.0),
    }
)


def prices_of(model: str, given: Prices | None, *, allow_unknown: bool, where: str) -> Prices | None:
    """The prices of a model: those given, else those shipped; None when it may go unpriced.

    Args:
        model: Its name.
        given: Prices in the configuration.
        allow_unknown: Whether it may go unpriced.
        where: Path of the judge in the configuration, for the message.

    Raises:
        ConfigError: Nobody knows what the model costs.
    """
    found = given or SHIPPED.get(_SNAPSHOT.sub("", model))
    if found is None and not allow_unknown:
        raise ConfigError(
            f"{where}.prices: what {model!r} costs is not known; give {{input, output}} in US dollars per million "
            "tokens (0 for a model of your own), or `allow_unknown_price: true` to count tokens only"
        )
    return found


def worst_case(prices: Prices | None, prompt_bytes: int, max_tokens: int) -> Cost:
    """The most that a call can cost.

    A token of a byte-level vocabulary is one byte at least, so a prompt has no more tokens than bytes. That is about
    four times what English takes, which matters only while a call is under way.
    """
    tokens = prompt_bytes + max_tokens
    if prices is None:
        return Cost(0.0, tokens)
    tiers = [prices] if prices.over_100k is None or prompt_bytes <= LONG_PROMPT else [prices, prices.over_100k]
    dollars = max(prompt_bytes * tier.dearest_input + max_tokens * tier.output for tier in tiers) / _MILLION
    return Cost(dollars, tokens)
