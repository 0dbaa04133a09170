"""Base class of probes: limits concurrency, measures time, and returns errors as values."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

from ragwatch.core.canary.definition import Retrieved
from ragwatch.probes.endpoint import EndpointOptions, RetrieverOptions
from ragwatch.probes.expression import ExchangeError

if TYPE_CHECKING:
    from ragwatch.probes.exchange import HttpExchange


class QueryRunner:
    """Base class of probes.

    Args:
        options: Its `concurrency` limits concurrent queries.
    """

    def __init__(self, options: RetrieverOptions, exchanges: Sequence[HttpExchange], *, name: str) -> None:
        self.name = name
        self.concurrency = options.concurrency
        self._semaphore = asyncio.Semaphore(options.concurrency)
        self._exchanges = exchanges

    async def timed(self, query: Callable[[], Awaitable[Retrieved]]) -> Retrieved:
        """Run a query and return its result or failure, with the time it took without waiting for the semaphore."""
        async with self._semaphore:
            start = perf_counter()
            try:
                result = await query()
            except ExchangeError as error:
                result = Retrieved(failure=error.reason, detail=str(error))
            return replace(result, seconds=perf_counter() - start)

    async def close(self) -> None:
        """See `Probe.close`."""
        for exchange in self._exchanges:
            await exchange.close()


def build_exchange(endpoint: EndpointOptions, mark: Callable[[], str]) -> HttpExchange:
    """Build the HTTP client of an endpoint, whose requests carry a mark.

    Raises:
        ConfigError: `ca_file` cannot be read.
    """
    from ragwatch.probes.exchange import HttpExchange  # noqa: PLC0415 - httpx is slow to import

    return HttpExchange(endpoint, mark=mark)
