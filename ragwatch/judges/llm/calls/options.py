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
    """Settings of an LLM judge.

    Attributes:
        model: Name of the model.
        base_url: URL of the provider's API.
        api_key: The key; it is never shown.
        reading: `joint` reads a sample in one call. `isolated` makes one call for each context and one without
            any, so that no context can influence the reading of another.
        isolated_routes: Routes on which samples are read as with `isolated`.
        second_reading: Read a sample with a suspected prompt injection again, each context alone and without the
            instructions; if a claim is then not supported, the sample is left unjudged (`prompt_injection`). Not in
            message batches.
        timeout_seconds: Timeout of a call; the worst case of a call that timed out counts as spent.
        deadline_seconds: No call for a sample starts later than this after the first.
            Together with the timeout it should stay below `judging.timeout`.
        concurrency: Maximum number of concurrent calls.
        max_contexts: A sample with more contexts is left unjudged (`too_large`).
        max_claims: An answer with more claims is left unjudged.
        max_chars: Question, history, answer, reference and contexts with more characters together are left unjudged.
        thinking_tokens: Tokens that the model may use for thinking, in addition to its reply. None: what it needs, as
            far as that is known.
        prices: US dollars per million tokens; built in for known models.
        allow_unknown_price: Run without a price: tokens are counted, dollars are not.
        urgency: `relaxed` sends samples as message batches, where the kind supports them, at half the price.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)

    model: Annotated[str, Field(min_length=1)]
    base_url: Url
    api_key: SecretStr | None = None
    reading: Literal["joint", "isolated"] = "joint"
    isolated_routes: tuple[str, ...] = ()
    second_reading: bool = True
    timeout_seconds: Seconds = 30.0
    deadline_seconds: Seconds = 25.0
    concurrency: Count = 16
    max_contexts: Count = 50
    max_claims: Count = 100
    max_chars: Count = 100_000
    thinking_tokens: Annotated[int, Field(ge=0)] | None = None
    prices: Prices | None = None
    allow_unknown_price: bool = False
    urgency: Literal["normal", "relaxed"] = "normal"

    @property
    def thinking_budget(self) -> int:
        """Tokens for thinking in a call."""
        return self.thinking_tokens or 0


def is_llm(options: object) -> bool:
    """Return whether a judge with these options is a large language model."""
    return isinstance(options, CallOptions)
