"""Options that all LLM judges have in common."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from ragwatch.judges.llm.calls.prices import Prices
from ragwatch.outgoing.addresses import checked_url

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
