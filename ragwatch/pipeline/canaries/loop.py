"""Canaries: known questions are put to the retriever on a schedule, and what comes back is kept and shown."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ragwatch.core.canary.definition import Canary
from ragwatch.core.canary.history import report_of, to_record
from ragwatch.core.canary.report import CanaryReport, SuiteReport, evaluate, gauges_of, suite_line, tallies_of
from ragwatch.core.ranking import TAU, Similarity
from ragwatch.core.snapshot import Gauges
from ragwatch.errors import RagwatchError
from ragwatch.pipeline.canaries.answers import AnswerJudging, JudgedAnswer, from_records, means, to_records
from ragwatch.ports import NoteStore, Probe, StoredRun
from ragwatch.telemetry import Telemetry

KIND = "canary"
CLAIMED_SECONDS = 300.0  # the right to run a suite in a fleet: how long a runner that died holds the others up


@dataclass(frozen=True, slots=True)
class CanarySuite:
    """Questions that are asked together.

    Attributes:
        name: The label `suite`.
        canaries: The questions.
        ks: Where recall and the like are cut off; the largest is how many passages are asked for.
        probe: Asks them.
        similar: Compares texts, where canaries expect texts.
        tau: Similarity from which two texts are the same context.
        answers: Has what the service answered judged; None where only the retriever is asked.
    """

    name: str
    canaries: tuple[Canary, ...]
    ks: tuple[int, ...]
    probe: Probe
    similar: Similarity | None = None
    tau: float = TAU
    answers: AnswerJudging | None = None

    async def ask(self, clock: Callable[[], float]) -> SuiteReport:
        """Ask everything once, side by side as far as the probe allows. Whatever fails is a reason, never a score."""
        cutoff = max(self.ks)

        async def one(canary: Canary) -> CanaryReport:
            at = clock()
            retrieved = await self.probe.ask(canary.query, cutoff)
            return evaluate(canary, retrieved, cutoff, at=at, similar=self.similar, tau=self.tau)

        return SuiteReport(self.name, self.ks, tuple(await asyncio.gather(*map(one, self.canaries))))


class CanaryLoop:
    """The loop of canaries.

    Args:
        suites: What to ask.
        store: Keeps the runs.
        holder: Name of this process in a fleet.
        clock: Seconds since the epoch.
        claimed_seconds: How long the right to run a suite holds; it is renewed while the run goes on.

    Attributes:
        reached: Suites of which something could be asked by now.
    """

    def __init__(
        self,
        suites: Sequence[CanarySuite],
        *,
        store: NoteStore,
        telemetry: Telemetry,
        holder: str,
        clock: Callable[[], float],
        claimed_seconds: float = CLAIMED_SECONDS,
    ) -> None:
        self._claimed_seconds = claimed_seconds
        self.suites = {each.name: each for each in suites}
        self._store = store
        self._telemetry = telemetry
        self._holder = f"{holder}/{secrets.token_hex(4)}"  # a reload brings another one into the same process
        self._clock = clock
        self._turns = {name: asyncio.Lock() for name in self.suites}
        self._gauges: dict[str, Gauges] = {}
        self._last_success: dict[str, float] = {}
        self._running: set[asyncio.Task[SuiteReport]] = set()
        self._closed = asyncio.Event()
        self.reached: set[str] = set()

    def resume(self) -> None:
        """Show the last run of each suite until the next one, so that a restart hides nothing.

        What is configured no longer, or otherwise, is left out: its series would stand until the suite runs again.
        """
        for name in self.suites:
            runs = self._store.runs(KIND, name, 1)
            good = self._store.recall(f"{KIND} {name} answered")
            if good is not None:
                self._last_success[name] = float(good["at"])
            if runs and (found := report_of(name, runs[0].body)) is not None:
                self._show(*self._in_force(found, from_records(runs[0].body.get("answers"))), runs[0].at)

    def gauges(self) -> Gauges:
        """What the last runs show."""
        return {cell: value for gauges in list(self._gauges.values()) for cell, value in gauges.items()}

    async def run(self, name: str, *, again: bool = False) -> SuiteReport | None:
        """Run one suite. None when it runs already, another process of the fleet does it, or we are being closed.

        Args:
            name: The suite.
            again: Tried again because nobody could be reached: where that is still so, it is told once, not each time.

        Raises:
            StoreError: The run could not be written.
        """
        turn = self._turns[name]
        if turn.locked() or self._closed.is_set():
            return None
        async with turn:
            started = self._clock()
            if not await asyncio.to_thread(self._claim, name, self._claimed_seconds):
                return None
            try:
                return None if self._closed.is_set() else await self._worked(name, started, again=again)
            finally:
                await asyncio.to_thread(self._claim, name, 0.0)

    async def _worked(self, name: str, started: float, *, again: bool) -> SuiteReport | None:
        """The run itself; None when it is given up because we are being closed."""
        work = asyncio.create_task(self._ask(name, started, again=again))
        renewal = asyncio.create_task(self._renew(name))
        self._running.add(work)
        try:
            return await work
        except asyncio.CancelledError:
            if not self._closed.is_set():
                raise
            return None
        finally:
            self._running.discard(work)
            renewal.cancel()
            await asyncio.gather(renewal, return_exceptions=True)

    async def _renew(self, name: str) -> None:
        """Keep the right to run a suite, however long its run takes."""
        while True:
            await asyncio.sleep(self._claimed_seconds / 3)
            with suppress(RagwatchError):  # there are two more turns before it ends
                await asyncio.to_thread(self._claim, name, self._claimed_seconds)

    async def _ask(self, name: str, started: float, *, again: bool) -> SuiteReport:
        suite = self.suites[name]
        found = await suite.ask(self._clock)
        if not found.unreachable:
            self.reached.add(name)
        elif again:
            return found
        answers = [] if suite.answers is None else await suite.answers.of(name, found.reports, suite.probe)
        await asyncio.to_thread(self._keep, found, answers, started)
        self._telemetry.canaries_ran(name, len(found.reports), len(found.degraded), sum(found.failures.values()))
        return found

    async def run_all(self) -> dict[str, SuiteReport | None]:
        """Run every suite, side by side. None for one that was running already."""
        names = list(self.suites)
        return dict(zip(names, await asyncio.gather(*map(self.run, names)), strict=True))

    async def close(self) -> None:
        """Give up the runs under way, which says nothing of the retriever, and release the probes."""
        self._closed.set()
        for work in self._running:
            work.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        for turn in self._turns.values():
            async with turn:  # until the right to run it is given back: rooms that come after these may want it at once
                pass
        for suite in self.suites.values():
            await suite.probe.close()

    def _claim(self, name: str, seconds: float) -> bool:
        return self._store.claim(f"{KIND} {name}", self._holder, now=self._clock(), seconds=seconds)

    def _keep(self, found: SuiteReport, answers: Sequence[JudgedAnswer], at: float) -> None:
        answered = not found.failures
        body: dict[str, Any] = {
            "answered": answered,
            "line": suite_line(found),
            "ks": list(found.ks),
            "reports": [to_record(each) for each in found.reports],
            "answers": to_records(answers),
        }
        before, last = self._gauges.get(found.suite, {}), self._last_success.get(found.suite)
        if answered:
            self._last_success[found.suite] = at
        self._show(found, answers, at)  # before the run is counted: who sees it counted is to see its figures
        try:
            self._store.record_run(StoredRun(KIND, found.suite, at, not found.success, body), tallies_of(found))
        except RagwatchError:
            self._gauges[found.suite] = before
            if last is None:
                self._last_success.pop(found.suite, None)
            else:
                self._last_success[found.suite] = last
            raise
        if answered:
            self._store.remember(f"{KIND} {found.suite} answered", {"at": at})

    def _in_force(self, found: SuiteReport, answers: Sequence[JudgedAnswer]) -> tuple[SuiteReport, list[JudgedAnswer]]:
        """Of an earlier run, what is still asked as it was then."""
        suite = self.suites[found.suite]
        now = {each.name: each for each in suite.canaries}
        reports = tuple(each for each in found.reports if now.get(each.canary.name) == each.canary)
        names = {each.canary.name for each in reports} if suite.answers is not None else frozenset()
        return replace(found, reports=reports), [each for each in answers if each.canary in names]

    def _show(self, found: SuiteReport, answers: Sequence[JudgedAnswer], at: float) -> None:
        last_success, ks = self._last_success.get(found.suite), self.suites[found.suite].ks
        shown = gauges_of(found, at=at, last_success=last_success, ks=ks)
        self._gauges[found.suite] = {**shown, **means(found.suite, answers)}
