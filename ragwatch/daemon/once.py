"""Runs the components of the daemon once, until nothing is left to do (`ragwatch run --once`)."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ragwatch import stores
from ragwatch.board import Board
from ragwatch.config import Config, JudgeConfig
from ragwatch.daemon.process import SharedState, limit_malloc_arenas, state_secret
from ragwatch.daemon.runtime import Runtime, build
from ragwatch.pipeline.intake import IntakeLoop
from ragwatch.ports import Query, Rejection, Store
from ragwatch.ports.capabilities import Finishes, uses_batches
from ragwatch.statistics.tally import PartOutcome, Tally
from ragwatch.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """Records read from one source."""

    source: str
    seen: float  # number of records, including rejected ones, of all runs with this state directory
    rejected: Mapping[str, float]  # number of rejected records, by reason
    skipped: Mapping[str, float]  # number of lines that are in no record, by reason
    parts: Mapping[str, float]  # number of parts of requests, by outcome
    fields_lost: Mapping[str, float]  # number of optional fields that could not be read, by name and reason
    example: Rejection | None  # the first record that this run rejected
    problems: tuple[str, ...]  # why the source, or some of its files, could not be read

    @property
    def left_out(self) -> Mapping[str, float]:
        """Number of lines that are in no record, by reason: skipped ones, and parts without the others."""
        lost = {outcome: number for outcome, number in self.parts.items() if outcome != PartOutcome.JOINED}
        return {**self.skipped, **lost}

    @property
    def is_unreadable(self) -> bool:
        """Whether there were lines, but no record that could be read: all were rejected or left out."""
        return self.seen <= sum(self.rejected.values()) and self.seen + sum(self.left_out.values()) > 0


class OneShotRun:
    """Reads the current records of the sources, judges the draws, and ends.

    Windows end at the newest answer in the store, not at the current time, because the log is usually an old one.

    Attributes:
        read: Progress of each source; set when `run` returns.
        drawn: Number of sampled answers, of all runs with this state directory; set when `run` returns.
        waiting: Number of sampled answers that each judge could not read yet; set when `run` returns.

    Raises:
        SourceError: A source cannot be read.
        StoreError: The state directory cannot be used.
    """

    def __init__(self, config: Config) -> None:
        limit_malloc_arenas()
        self._store: Store = stores.KINDS[config.store.kind].build(config.store.options, config.settings.state)
        self._now = time.time()
        self.read: tuple[SourceProgress, ...] = ()
        self.drawn = 0.0
        self.waiting: Mapping[str, int] = {}
        self._config = replace(config, judges=tuple(self._without_batches(judge) for judge in config.judges))

    async def run(self, notify: Callable[[str], None] = lambda _: None) -> str:
        """Read, judge and estimate. Returns the text of `/metrics`. Progress is reported as text for people."""
        try:
            secret = state_secret(self._config.settings.state)
            shared = SharedState(self._store, Board(), Telemetry(), self._clock, secret)
            runtime = build(self._config, shared, lambda: (), patience=-math.inf)
            try:
                runtime.resume(self._store)
                await runtime.give_up(self._store, self._clock)
                for intake in runtime.intakes:
                    if isinstance(intake.source, Finishes):
                        intake.source.finish()
                await self._work(runtime, notify)
                self.read = tuple(map(self._progress, runtime.intakes))
                self.waiting = {judge: count for judge, count in self._store.pending().items() if count}
                self.drawn = sum(count for (tally, _), count in self._store.tallies().items() if tally is Tally.DRAWN)
            finally:
                await runtime.close()
            return runtime.exporter.text()
        finally:
            self._store.close()

    def _without_batches(self, judge: JudgeConfig) -> JudgeConfig:
        """Disable message batches, which take up to a day.

        A judge with open batches is left as configured: they are paid for, and the next daemon collects the results.
        """
        if not uses_batches(judge.options) or self._store.batches(judge.place.name):
            return judge
        return replace(judge, options=judge.options.model_copy(update={"urgency": "normal"}))

    def _progress(self, intake: IntakeLoop) -> SourceProgress:
        name, tallies = intake.source.name, self._store.tallies()
        rejected, skipped, parts = (
            {labels[1]: n for (tally, labels), n in tallies.items() if tally is kind and labels[0] == name and n}
            for kind in (Tally.REJECTED, Tally.SKIPPED, Tally.PARTS)
        )
        return SourceProgress(
            name,
            seen=tallies.get((Tally.SEEN, (name,)), 0.0),
            rejected=rejected,
            skipped=skipped,
            parts=parts,
            fields_lost={
                " ".join(labels[1:]): n
                for (tally, labels), n in tallies.items()
                if tally is Tally.FIELDS_LOST and labels[0] == name
            },
            example=intake.first_rejected,
            problems=() if intake.lag is None else intake.lag.problems,
        )

    def _clock(self) -> float:
        return self._now

    async def _work(self, runtime: Runtime, notify: Callable[[str], None]) -> None:
        steps = [*(intake.step for intake in runtime.intakes), *(judging.step for judging in runtime.judgings)]
        while any([await step() for step in steps]):  # until nothing more can be read, or judged at present
            notify(", ".join(f"{count} pending for {judge}" for judge, count in self._store.pending().items()))
        newest = self._store.find(Query(limit=1))
        if newest:
            self._now = newest[0].verdict.at
        await runtime.watchers.detect()
        await runtime.sampling.step()
        await runtime.digest.step()
