"""Options that all LLM judges have in common, and the prices of tokens, by which the worst case of a call is reserved.

What is known of Claude models is in a dated table: their prices, how their thinking is turned off, which are retired.
"""

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from ragwatch.errors import ConfigError
from ragwatch.judges.text_classifier import table_text
from ragwatch.model.budget import Cost
from ragwatch.outgoing.addresses import checked_url
from ragwatch.statistics.verdict import Usage

Dollars = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]

LONG_PROMPT_TOKENS = 100_000  # a call with a longer prompt is charged at the rates for long prompts
BATCH_DISCOUNT = 0.5  # factor on the price of calls in a message batch
_MILLION = 1_000_000


class Rates(BaseModel):
    """Prices in US dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: Dollars = Field(description="Tokens sent.")
    output: Dollars = Field(description="Tokens received.")
    cache_read: Dollars | None = Field(
        None, description="Tokens sent that the provider had cached; by default the price of `input`."
    )
    cache_write: Dollars | None = Field(
        None, description="Tokens sent that the provider caches; by default the price of `input`."
    )

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


TABLE = "claude_models.json"
_SNAPSHOT = re.compile(r"[-@]20\d{6}$")  # the date of a model snapshot


class Thinking(StrEnum):
    """How the thinking of a model is turned off."""

    DISABLED = "disabled"  # by this value of `thinking.type`, at efforts up to `high`
    BETWEEN_TOOLS = "between_tools"  # by this value, at efforts up to `high`; without tools nothing is thought
    ALWAYS = "always"  # not at all
    ON_REQUEST = "on_request"  # it is off unless requested


class KnownModel(NamedTuple):
    """What is known of a model."""

    thinking: Thinking
    prices: Prices


@cache
def known_models() -> Mapping[str, KnownModel]:
    """The models of the table, by name without the date of a snapshot."""
    return MappingProxyType(
        {
            name: KnownModel(Thinking(facts["thinking"]), Prices.model_validate(facts["prices"]))
            for name, facts in json.loads(table_text(TABLE))["models"].items()
        }
    )


def retired_on(name: str) -> str | None:
    """Day (YYYY-MM-DD) from which a model answers no more, as its maker announced; None for any other model.

    >>> retired_on("claude-3-sonnet-20240229")
    '2025-07-21'
    """
    retired: Mapping[str, str] = json.loads(table_text(TABLE))["retired"]
    return retired.get(name)


def known_model(name: str) -> KnownModel | None:
    """What is known of a model, or of the model that a dated snapshot is of; None for an unknown one."""
    return known_models().get(_SNAPSHOT.sub("", name))


def prices_of(model: str, configured: Prices | None, *, allow_unknown: bool, where: str) -> Prices | None:
    """Prices of a model: the configured ones, else those of the table; None when an unknown price is allowed.

    Raises:
        ConfigError: The price is unknown and must not be, or the model is retired.
    """
    if configured is not None:
        return configured
    known = known_model(model)
    if known is None and not allow_unknown and (day := retired_on(model)) is not None:
        raise ConfigError(
            f"{where}.model: {model!r} is retired: its maker ended it on {day}; name another one such as "
            f"{next(iter(known_models()))}, or give `prices` if somebody else still serves it"
        )
    if known is None and not allow_unknown:
        raise ConfigError(
            f"{where}.prices: the price of {model!r} is not known; give {{input, output}} in US dollars per million "
            "tokens (0 for a model of your own), or `allow_unknown_price: true` to count tokens only"
        )
    return None if known is None else known.prices


Count = Annotated[int, Field(ge=1)]
Url = Annotated[str, Field(pattern=r"^https?://"), AfterValidator(checked_url)]
Seconds = Annotated[float, Field(gt=0.0, le=3600.0)]


class CallOptions(BaseModel):
    """Settings of an LLM judge."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)

    model: Annotated[str, Field(min_length=1)] = Field(description="Name of the model.")
    base_url: Url = Field(description="URL of the provider's API.")
    api_key: SecretStr | None = Field(None, description="The key; it is never shown.")
    reading: Literal["joint", "isolated"] = Field(
        "joint",
        description=(
            "`joint` reads a sample in one call. `isolated` makes one call for each context and one without any, "
            "so that no context can influence the reading of another."
        ),
    )
    isolated_routes: tuple[str, ...] = Field((), description="Routes on which samples are read as with `isolated`.")
    second_reading: bool = Field(
        default=True,
        description=(
            "Read a sample with a suspected prompt injection again, each context alone and without the "
            "instructions; if a claim is then not supported, the sample is left unjudged (`prompt_injection`). "
            "Not in message batches."
        ),
    )
    timeout_seconds: Seconds = Field(
        30.0, description="Timeout of a call; the worst case of a call that timed out counts as spent."
    )
    deadline_seconds: Seconds = Field(
        25.0,
        description=(
            "No call for a sample starts later than this after the first. Together with the timeout it should "
            "stay below `judging.timeout`."
        ),
    )
    concurrency: Count = Field(16, description="Maximum number of concurrent calls.")
    max_contexts: Count = Field(50, description="A sample with more contexts is left unjudged (`too_large`).")
    max_claims: Count = Field(100, description="An answer with more claims is left unjudged.")
    max_chars: Count = Field(
        100_000,
        description=(
            "Question, history, answer, reference and contexts with more characters together are left unjudged."
        ),
    )
    thinking_tokens: Annotated[int, Field(ge=0)] | None = Field(
        None,
        description=(
            "Tokens that the model may use for thinking, in addition to its reply; null for what it needs, as far as "
            "that is known (4,000 where Claude may think)."
        ),
    )
    prices: Prices | None = Field(None, description="US dollars per million tokens; built in for known models.")
    allow_unknown_price: bool = Field(
        default=False, description="Run without a price: tokens are counted, dollars are not."
    )
    urgency: Literal["normal", "relaxed"] = Field(
        "normal",
        description="`relaxed` sends samples as message batches, where the kind supports them, at half the price.",
    )

    @property
    def thinking_budget(self) -> int:
        """Tokens for thinking in a call."""
        return self.thinking_tokens or 0


def is_llm(options: object) -> bool:
    """Return whether a judge with these options is a large language model."""
    return isinstance(options, CallOptions)
