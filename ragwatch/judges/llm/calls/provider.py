"""Provider: who is asked, and what it answers. One file per kind implements it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import orjson

from ragwatch.core.verdict import Usage
from ragwatch.judges.llm.calls.failures import CallError
from ragwatch.judges.llm.calls.limits import RateLimit
from ragwatch.judges.llm.prompt.reading import Prompt

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
"""The least that can be asked in the way of a reading."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply, as it came.

    Attributes:
        text: What the model wrote.
        usage: Tokens, not priced yet; None when the provider did not say.
        stop: Why it ended, in Anthropic's words: `end_turn`, `max_tokens`, `refusal` ...
        detail: More about that, such as the category of a refusal.
        limits: Rate limits that came with it.
    """

    text: str
    usage: Usage | None
    stop: str
    detail: str = ""
    limits: tuple[RateLimit, ...] = ()


class Provider(Protocol):
    """Makes single calls, without repeating any.

    Attributes:
        model: Name of the model that answers.
    """

    model: str

    async def call(self, ask: Prompt, *, max_tokens: int, timeout: float) -> Completion:  # noqa: ASYNC109 - for the client
        """One call.

        Raises:
            CallFailed: There is no reply.
        """
        ...

    async def probe(self) -> str:
        """What the provider can do for us, in one line for a person.

        Raises:
            CallFailed: It cannot be used; the message says why.
        """
        ...

    async def close(self) -> None:
        """Release the client."""
        ...


@dataclass(frozen=True, slots=True)
class SentBatch:
    """A message batch as the provider lists it.

    Attributes:
        id: The provider's name for it.
        created: When it was accepted, seconds since the epoch.
        entries: How many requests it holds.
    """

    id: str
    created: float
    entries: int


class BatchProvider(Protocol):
    """Takes many asks at once, for half the price, and answers within a day."""

    async def submit(self, entries: Sequence[tuple[str, Prompt]]) -> str:
        """Send asks, each with an id of ours. Returns the provider's name for the batch.

        Raises:
            CallFailed: It is not known to be accepted. With `usage` None it may have been: look at `recent`.
        """
        ...

    async def ended(self, batch: str) -> bool:
        """Whether every entry has its result.

        Raises:
            CallFailed: It cannot be told at present; `misconfigured` when there is no such batch.
        """
        ...

    def results(self, batch: str) -> AsyncIterator[tuple[str, Completion | CallError]]:
        """Results by our ids, in no particular order.

        Raises:
            CallFailed: They cannot be read (to the end) at present.
        """
        ...

    async def recent(self, since: float) -> list[SentBatch]:
        """Batches accepted since an instant, newest first.

        Raises:
            CallFailed: They cannot be listed at present.
        """
        ...
