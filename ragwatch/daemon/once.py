"""Once: the daemon's rooms, stepped until nothing is left to do."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ragwatch import stores
from ragwatch.board import Board
from ragwatch.config import Config, JudgeConfig
from ragwatch.core.tally import Tally
from ragwatch.daemon.process import limit_malloc_arenas
from ragwatch.daemon.runtime import Runtime, build
from ragwatch.daemon.shared import Shared
from ragwatch.pipeline.intake import IntakeLoop
from ragwatch.ports import Query, Rejection, Store
from ragwatch.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """What was read of one source.

    Attributes:
        source: Its name.
        seen: Records, rejected ones included, of all runs on this state.
        rejected: How many of them could not be read, by reason.
        example: The first one that this run could not read.
        problems: Why the source, or a part of it, could not be read.
    """

    source: str
    seen: float
    rejected: Mapping[str, float]
    example: Rejection | None
    problems: tuple[str, ...]

    @property
    def is_unreadable(self) -> bool:
        """Whether records came and none of them could be read."""
        return 0 < self.seen <= sum(self.rejected.values())


class OneShotRun:
    """Reads what the sources hold now, judges what was drawn, and ends.

    Windows end at the newest answer in the store instead of at this moment, because a log that is read once is
    usually a log of the past.

    Attributes:
        read: What was read of each source, once `run` has returned.

    Raises:
        SourceError: A source cannot be read.
        StoreError: The state directory cannot be used.
    """

    def __init__(self, config: Config) -> None:
        limit_malloc_arenas()
        self._store: Store = stores.KINDS[config.store.kind].build(config.store.options, config.settings.state)
        self._reached = time.time()
        self.read: tuple[SourceProgress, ...] = ()
        self._config = replace(config, judges=tuple(self._at_once(each) for each in config.judges))

    async def run(self, tell: Callable[[str], None] = lambda _: None) -> str:
        """Do it all; returns the text of `/metrics`."""
        try:
            rooms = build(
                self._config, Shared(self._store, Board(), Telemetry(), self._clock), lambda: (), patience=-math.inf
            )
            try:
                rooms.resume(self._store)
                await rooms.give_up(self._store, self._clock)
                await self._work(rooms, tell)
                self.read = tuple(map(self._read, rooms.intakes))
            finally:
                await rooms.close()
            return rooms.exporter.text()
        finally:
            self._store.close()

    def _at_once(self, judge: JudgeConfig) -> JudgeConfig:
        """A judge that does not send message batches, which take up to a day, longer than this lives.

        What a daemon has sent already stays as it is: it is paid for, and the next daemon collects it.
        """
        relaxed = getattr(judge.options, "urgency", "normal") == "relaxed"
        if not relaxed or self._store.batches(judge.place.name):
            return judge
        return replace(judge, options=judge.options.model_copy(update={"urgency": "normal"}))

    def _read(self, intake: IntakeLoop) -> SourceProgress:
        name, tallies = intake.source.name, self._store.tallies()
        rejected = {
            labels[1]: count
            for (tally, labels), count in tallies.items()
            if tally is Tally.REJECTED and labels[0] == name and count
        }
        problems = () if intake.lag is None else intake.lag.problems
        return SourceProgress(name, tallies.get((Tally.SEEN, (name,)), 0.0), rejected, intake.first_rejected, problems)

    def _clock(self) -> float:
        return self._reached

    async def _work(self, rooms: Runtime, tell: Callable[[str], None]) -> None:
        steps = [*(each.step for each in rooms.intakes), *(each.step for each in rooms.judgings)]
        while any([await step() for step in steps]):  # until nothing can be read, or judged at present
            tell(", ".join(f"{count} pending for {judge}" for judge, count in self._store.pending().items()))
        newest = self._store.find(Query(limit=1))
        if newest:
            self._reached = float(newest[0].verdict["at"])
        await rooms.watchers.look()
        await rooms.sampling.step()
        await rooms.digest.step()
