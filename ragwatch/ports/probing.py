"""Protocols of probes, which send canary queries to a retriever or to the whole service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ragwatch.core.canary.definition import Retrieved


class Probe(Protocol):
    """Sends queries to a retriever. Results are compared and counted in `core.canary`.

    Attributes:
        name: Configured name, usually that of the suite.
        concurrency: Maximum number of concurrent queries; further ones wait inside `ask`.
    """

    name: str
    concurrency: int

    async def ask(self, query: str, k: int) -> Retrieved:
        """Send a query for the top k passages.

        Does not raise: any error is returned as `Retrieved.failure`, so that one canary cannot affect another.
        """

    async def close(self) -> None:
        """Close connections."""


@runtime_checkable
class Oracle(Probe, Protocol):
    """A probe that can also send the contexts to answer from, to tell generator faults from retriever faults."""

    async def ask_with(self, query: str, contexts: Sequence[str]) -> Retrieved:
        """Return the service's answer to a query from these contexts, without retrieval. Does not raise."""
