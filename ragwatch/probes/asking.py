"""Asking: what every probe does alike: so many questions at a time, each timed, each failure a value."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

from ragwatch.core.canary.definition import Retrieved
from ragwatch.errors import ConfigError
from ragwatch.probes.endpoint import EndpointOptions, RetrieverOptions
from ragwatch.probes.failure import ExchangeError

if TYPE_CHECKING:
    from ragwatch.probes.exchange import HttpExchange


class QueryRunner:
    """A probe's outside.

    Args:
        options: Their `concurrency` counts.
        exchanges: What `close` closes.
        name: Configured name.
    """

    def __init__(self, options: RetrieverOptions, exchanges: Sequence[HttpExchange], *, name: str) -> None:
        self.name = name
        self.concurrency = options.concurrency
        self._turns = asyncio.Semaphore(options.concurrency)
        self._exchanges = exchanges

    async def timed(self, deed: Callable[[], Awaitable[Retrieved]]) -> Retrieved:
        """What the deed brings, or its failure, with its seconds; waiting for a turn does not count."""
        async with self._turns:
            begun = perf_counter()
            try:
                found = await deed()
            except ExchangeError as error:
                found = Retrieved(failure=error.reason, detail=str(error))
            return replace(found, seconds=perf_counter() - begun)

    async def close(self) -> None:
        """Release connections."""
        for exchange in self._exchanges:
            await exchange.close()


def exchange_with(endpoint: EndpointOptions, name: str) -> HttpExchange:
    """The exchange with an endpoint, on behalf of the probe of that name.

    Raises:
        ConfigError: The extra `probes` is not installed, or `ca_file` cannot be read.
    """
    try:
        from ragwatch.probes.exchange import HttpExchange  # noqa: PLC0415 - httpx is an extra
    except ImportError as error:
        raise ConfigError("probe: needs httpx; install ragwatch-exporter[probes]") from error
    return HttpExchange(endpoint, name=name)
