"""Base class of probes: limits concurrency, measures time, and returns errors as values."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from time import perf_counter
from typing import Generic, TypeVar

from ragwatch.probes.endpoint import EndpointOptions, RetrieverOptions
from ragwatch.probes.expression import ExchangeError
from ragwatch.statistics.canary.definition import Retrieved

Chosen = TypeVar("Chosen", bound=RetrieverOptions)


class QueryRunner(Generic[Chosen]):
    """Base class of probes.

    Args:
        options: Options of the endpoint that is asked; its `concurrency` limits concurrent queries.
        other: Options of a second endpoint, if there is one.
        name: Name of the suite.
        mark: Returns the mark that requests carry (see `statistics.canary.mark`); by default the name.

    Raises:
        ConfigError: A `ca_file` cannot be read.
    """

    def __init__(
        self, options: Chosen, other: EndpointOptions | None, *, name: str, mark: Callable[[], str] | None
    ) -> None:
        from ragwatch.probes.exchange import HttpExchange  # noqa: PLC0415 - httpx is slow to import

        mark = mark or (lambda: name)
        self.name = name
        self.concurrency = options.concurrency
        self._options = options
        self._semaphore = asyncio.Semaphore(options.concurrency)
        self._exchange = HttpExchange(options, mark=mark)
        self._other = None if other is None else HttpExchange(other, mark=mark)

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
        await self._exchange.close()
        if self._other is not None:
            await self._other.close()
