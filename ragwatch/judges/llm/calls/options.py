"""Options that every judge behind a network has."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from ragwatch.judges.llm.calls.prices import Prices


def _no_credentials(value: str) -> str:
    if "@" in value.partition("://")[2].partition("/")[0]:
        raise ValueError("holds a user or a password, which would be shown; give the key as api_key")
    return value


Count = Annotated[int, Field(ge=1)]
Url = Annotated[str, Field(pattern=r"^https?://"), AfterValidator(_no_credentials)]
Seconds = Annotated[float, Field(gt=0.0, le=3600.0)]


class CallOptions(BaseModel):
    """Settings of a judge that is asked over a network.

    Attributes:
        model: Name of the model.
        base_url: Where the provider answers.
        api_key: The key; shown nowhere.
        reading: `joint` asks about a sample in one call. `isolated` makes one call for each context and one without
            any, so that no context can speak for another.
        timeout_seconds: A call that takes longer is given up; its worst case counts as spent.
        deadline_seconds: No call for a sample begins later than this after the first; nobody waits for longer.
            Together with the timeout it should stay below `judging.timeout`.
        concurrency: Calls at a time.
        max_contexts: A sample with more contexts is left unjudged (`too_large`).
        max_claims: An answer with more claims is left unjudged.
        max_chars: Question, answer, reference and contexts with more characters together are left unjudged.
        thinking_tokens: Tokens that the model may use for thinking, beside its reply.
        prices: US dollars per million tokens; shipped for known models.
        allow_unknown_price: Run without knowing the price: tokens are counted, dollars are not.
        urgency: `relaxed` sends samples as message batches, where the kind has them, at half the price.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)

    model: Annotated[str, Field(min_length=1)]
    base_url: Url
    api_key: SecretStr | None = None
    reading: Literal["joint", "isolated"] = "joint"
    timeout_seconds: Seconds = 30.0
    deadline_seconds: Seconds = 25.0
    concurrency: Count = 16
    max_contexts: Count = 50
    max_claims: Count = 100
    max_chars: Count = 100_000
    thinking_tokens: Annotated[int, Field(ge=0)] = 0
    prices: Prices | None = None
    allow_unknown_price: bool = False
    urgency: Literal["normal", "relaxed"] = "normal"
