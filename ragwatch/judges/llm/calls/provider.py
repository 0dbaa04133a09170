"""Protocols of a provider of a large language model, and the values that it returns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import orjson

from ragwatch.core.verdict import Usage
from ragwatch.judges.llm.calls.failures import CallError
from ragwatch.judges.llm.calls.limits import RateLimit
from ragwatch.judges.llm.prompt.prompt import Prompt

PROBE = Prompt(
    system="Reply with JSON.",
    user='Reply with {"ready": "yes"}.',
    schema={
        "type": "object",
        "properties": {"ready": {"type": "string", "enum": ["yes"]}},
        "required": ["ready"],
        "additionalProperties": False,
    },
    max_tokens=64,
    check=orjson.loads,
)
"""A minimal prompt with a JSON schema, to check a provider."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply of a model.

    Attributes:
        text: Text of the reply.
        usage: Tokens without cost; None when the provider does not report them.
        stop: Stop reason in Anthropic's terms: `end_turn`, `max_tokens`, `refusal` ...
        detail: Detail of the stop reason, such as the category of a refusal.
        limits: Rate limits in the headers of the reply.
    """

    text: str
    usage: Usage | None
    stop: str
    detail: str = ""
    limits: tuple[RateLimit, ...] = ()


class Provider(Protocol):
    """Makes single calls, without retries.

    Attributes:
        model: Name of the model.
    """

    model: str

    async def call(self, prompt: Prompt, *, max_tokens: int, timeout: float) -> Completion:  # noqa: ASYNC109 - for the client
        """Make one call.

        Raises:
            CallError: There is no reply.
        """
        ...

    async def probe(self) -> str:
        """Check the key, the model and the settings. Returns one line for a person.

        Raises:
            CallError: The provider cannot be used; the message says why.
        """
        ...

    async def close(self) -> None:
        """Close the client."""
        ...


@runtime_checkable
class TokenCounter(Protocol):
    """Counts the tokens of a prompt, free of charge."""

    async def count(self, prompt: Prompt) -> int:
        """Return the number of tokens that a call with this prompt sends.

        Raises:
            CallError: The provider cannot count at present.
        """
        ...


@dataclass(frozen=True, slots=True)
class SentBatch:
    """A message batch in the list of the provider.

    Attributes:
        id: Id of the batch at the provider.
        created: Time of creation, seconds since the epoch.
        entries: Number of requests.
    """

    id: str
    created: float
    entries: int


@runtime_checkable
class BatchProvider(Protocol):
    """Takes message batches, at half the price, with results within a day."""

    async def submit(self, entries: Sequence[tuple[str, Prompt]]) -> str:
        """Send prompts, each with a custom id, as one batch. Returns the id of the batch at the provider.

        Raises:
            CallError: The batch may not have been accepted. With `usage` None it may have been: see `recent`.
        """
        ...

    async def ended(self, batch: str) -> bool:
        """Whether every entry of a batch has its result.

        Raises:
            CallError: The provider cannot say at present; `misconfigured` when there is no such batch.
        """
        ...

    def results(self, batch: str) -> AsyncIterator[tuple[str, Completion | CallError]]:
        """Results by custom id, in no particular order.

        Raises:
            CallError: They cannot be read (to the end) at present.
        """
        ...

    async def recent(self, since: float) -> list[SentBatch]:
        """Batches created since an instant, newest first.

        Raises:
            CallError: They cannot be listed at present.
        """
        ...
