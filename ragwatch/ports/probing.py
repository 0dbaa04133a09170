"""Probing: the door of probes, which ask a retriever, or the whole service, on a canary's behalf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ragwatch.core.canary.definition import Retrieved


class Probe(Protocol):
    """Asks a retriever. It compares nothing and counts nothing: that is `core.canary_report`'s.

    Attributes:
        name: Configured name; a suite's, as a rule.
        concurrency: Questions it has under way at a time; more wait their turn inside `ask`.
    """

    name: str
    concurrency: int

    async def ask(self, query: str, k: int) -> Retrieved:
        """What comes back for a query, of which k passages are wanted.

        It raises nothing: whatever goes wrong is `Retrieved.failure`, so that one canary cannot spoil another.
        """
        ...

    async def close(self) -> None:
        """Release connections."""
        ...


@runtime_checkable
class Oracle(Probe, Protocol):
    """A probe that can also hand the generator its contexts, so that a bad answer is the generator's own."""

    async def ask_with(self, query: str, contexts: Sequence[str]) -> Retrieved:
        """The service's answer to a query from these contexts, and nothing retrieved. It raises nothing."""
        ...
