"""Leadership: of several workers that share a store, one does what must be done once for all.

A worker leads within a numbered term, which it renews, and whatever it writes as the leader is refused by the store
once that term is over. So a worker that was stopped for long, and wakes, changes nothing. Each term starts from what is
stored, not from what an earlier term of the same process has in memory.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from time import monotonic

from ragwatch.errors import NotLeadingError, StoreError
from ragwatch.ports import Store
from ragwatch.ports.capabilities import SharedStore
from ragwatch.telemetry import Telemetry

TERM_SECONDS = 15.0  # of a term that is not renewed
RENEW_SECONDS = 4.0
_MARGIN_SECONDS = 1.0  # this process takes its term for over so long before the server does

Step = Callable[[], Awaitable[bool]]


class Leadership:
    """Tells whether this worker leads. A store that one process has for itself is always led by it.

    Args:
        timer: Seconds of a clock that nobody sets.

    Attributes:
        store: The store for what only the leader writes.
        begin: Called when a term begins: loads what is stored.
    """

    def __init__(self, store: Store, *, telemetry: Telemetry, timer: Callable[[], float] = monotonic) -> None:
        self._elections = store if isinstance(store, SharedStore) else None
        self._telemetry = telemetry
        self._timer = timer
        self._term: int | None = None
        self._until = 0.0
        self._steps = 0
        self._electing = asyncio.Lock()
        self.store = store if self._elections is None else self._elections.fenced(lambda: self._term)
        self.begin: Callable[[], Awaitable[None]] | None = None
        telemetry.leads(leads=self._elections is None)

    @property
    def is_shared(self) -> bool:
        """Whether other workers may lead."""
        return self._elections is not None

    @property
    def leads(self) -> bool:
        """Whether this worker leads."""
        return self._elections is None or (self._term is not None and self._timer() < self._until)

    async def step(self) -> bool:
        """Renew the term, or begin one if no other worker leads. Always False: no more work is waiting.

        Raises:
            StoreError: The store cannot be written, or not read for the beginning of a term.
        """
        if self._elections is not None:
            async with self._electing:
                await self._elect(self._elections)
        return False

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Lead from now on, in place of another worker: for a change by a person, which is made where the state is.

        Raises:
            StoreError: That was not possible.
        """
        if self._elections is not None:
            async with self._electing:
                if not self.leads:
                    await self._elect(self._elections, force=True)
            if not self.leads:
                raise StoreError("store: another worker leads and could not be replaced; try again")
        self._steps += 1
        try:
            yield
        finally:
            self._steps -= 1

    async def run(self, step: Step) -> bool:
        """Run a step of the leader; nothing, and False, in other workers, and where the term ends meanwhile."""
        if not self.leads:
            if self._until:  # else there is no term, or one that begins: what is stored is being loaded
                self._end()
            return False
        self._steps += 1
        try:
            return await step()
        except NotLeadingError:
            self._end()
            return False
        finally:
            self._steps -= 1

    def led(self, step: Step) -> Step:
        """Return a step that runs in the leader only."""
        return partial(self.run, step)

    async def close(self) -> None:
        """Let another worker lead at once."""
        if self._elections is not None and (term := self._term) is not None:
            self._end()
            with suppress(StoreError):  # the term ends by itself
                await asyncio.to_thread(self._elections.resign, term)

    async def _elect(self, elections: SharedStore, *, force: bool = False) -> None:
        if not self.leads:
            self._end()
            if self._steps:  # of an earlier term: they must have failed before another one begins here
                return
        asked = self._timer()
        term = await asyncio.to_thread(elections.lead, TERM_SECONDS, force=force)
        if term is None or (term != self._term and self._steps):  # steps of an earlier term, as above
            self._end()
            return
        if term != self._term:
            await self._begin(term)
        self._until = asked + TERM_SECONDS - _MARGIN_SECONDS

    async def _begin(self, term: int) -> None:
        self._end()
        self._term = term
        try:
            if self.begin is not None:
                await self.begin()
        except BaseException:
            await self.close()
            raise
        self._telemetry.leads(leads=True)

    def _end(self) -> None:
        led = self._term is not None
        self._term, self._until = None, 0.0
        if led:
            self._telemetry.leads(leads=False)
