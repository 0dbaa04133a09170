"""Canaries: sends known queries to the retriever on a schedule, stores the results and exposes them as gauges."""

import asyncio
import secrets
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ragwatch.errors import JudgeError, RagwatchError
from ragwatch.model.sample import Sample
from ragwatch.ports import Clock, Judge, LoopContext, Oracle, Probe, RecordedEvent, Store, StoredRun
from ragwatch.statistics.canary.answer import GOLD, RETRIEVED, JudgedAnswer, gold_texts, sample_of
from ragwatch.statistics.canary.definition import Canary
from ragwatch.statistics.canary.history import (
    body_of,
    gauges_of,
    levels_of,
    report_of,
    sums_of,
    tallies_of,
    with_levels,
)
from ragwatch.statistics.canary.report import CanaryReport, SuiteReport, evaluate
from ragwatch.statistics.ranking import TAU, Similarity
from ragwatch.statistics.reference import score_by_reference
from ragwatch.statistics.scores import score_all
from ragwatch.statistics.snapshot import Gauges


class AnswerJudging:
    """Judges the answers of a suite. `oracle` says whether to make oracle runs, with probes that support them."""

    def __init__(self, judge: Judge, *, oracle: bool, clock: Clock, timeout_seconds: float = 60.0) -> None:
        self._judge = judge
        self._slots = asyncio.Semaphore(judge.concurrency)  # without it, a judge in threads would block the store
        self._timeout = timeout_seconds
        self._oracle = oracle
        self._clock = clock

    async def judge(self, suite: str, reports: Sequence[CanaryReport], probe: Probe) -> tuple[JudgedAnswer, ...]:
        """Judge the answers in these reports, and those of an oracle run."""
        reports = [report for report in reports if not report.canary.negative]
        answered = [report for report in reports if report.failure is None]
        samples = [sample_of(report.canary, report.retrieved, suite=suite, at=report.at) for report in answered]
        why = "no answer, or a context without its text"
        pairs = zip(answered, samples, strict=True)
        tasks = [self._judged(report.canary, RETRIEVED, sample, why) for report, sample in pairs]
        if self._oracle and isinstance(probe, Oracle):
            tasks += [self._judge_oracle(suite, report.canary, probe) for report in reports]
        return tuple(await asyncio.gather(*tasks))

    async def _judge_oracle(self, suite: str, canary: Canary, probe: Oracle) -> JudgedAnswer:
        texts = gold_texts(canary)
        if texts is None:
            return JudgedAnswer(canary.name, GOLD, None, None, "an expected context has an id and no text")
        retrieved = await probe.ask_with(canary.query, texts)
        sample = sample_of(canary, retrieved, suite=suite, at=self._clock(), gold=texts)
        return await self._judged(canary, GOLD, sample, str(retrieved.failure or "no answer"))

    async def _judged(self, canary: Canary, contexts: str, sample: Sample | None, why: str) -> JudgedAnswer:
        if sample is None:
            return JudgedAnswer(canary.name, contexts, None, None, why)
        if not sample.answer.strip():
            return JudgedAnswer(canary.name, contexts, sample.answer, None, "the answer is empty", abstained=True)
        try:
            async with self._slots, asyncio.timeout(self._timeout):
                evidence, _ = await self._judge.read(sample)
        except TimeoutError:
            why = f"timeout: not read within {self._timeout:g} s"
        except JudgeError as error:
            why = f"{error.reason}: {error}"
        except Exception as error:  # noqa: BLE001 - one failed reading must not discard what the retriever found
            why = f"internal: {type(error).__name__}: {error}"
        else:
            scores = {str(quantity): score for quantity, score in score_all(evidence).items()}
            if sample.reference is not None:
                scores |= {str(quantity): score for quantity, score in score_by_reference(evidence).items()}
            return JudgedAnswer(canary.name, contexts, sample.answer, scores, abstained=evidence.abstained)
        return JudgedAnswer(canary.name, contexts, sample.answer, None, why)


KIND = "canary"
CLAIM_SECONDS = 60.0  # of the right to run a suite in a fleet: how long a process that died in a run blocks the others


@dataclass(frozen=True, slots=True)
class CanarySuite:
    """Canaries that run together."""

    name: str  # the label `suite`
    canaries: tuple[Canary, ...]
    ks: tuple[int, ...]  # cutoffs of recall and similar figures; the largest one is the number of passages to retrieve
    probe: Probe
    similar: Similarity | None = None  # compares texts, where canaries expect contexts by text
    tau: float = TAU  # similarity from which two texts are the same context
    answers: AnswerJudging | None = None  # judges the answers of the service; None where only the retriever is tested

    async def ask(self, clock: Clock) -> SuiteReport:
        """Run all canaries once, concurrently as far as the probe allows, and judge the answers if that is configured.

        A failure has a reason and no score. Where no query could be sent, no oracle run is made either.
        """
        cutoff = max(self.ks)

        async def run(canary: Canary) -> CanaryReport:
            at = clock()
            retrieved = await self.probe.ask(canary.query, cutoff)
            return evaluate(canary, retrieved, cutoff, at=at, similar=self.similar, tau=self.tau)

        report = SuiteReport(self.name, self.ks, tuple(await asyncio.gather(*map(run, self.canaries))))
        if self.answers is None or report.unreachable:
            return report
        return replace(report, answers=await self.answers.judge(self.name, report.reports, self.probe))


def levels_name(suite: str) -> str:
    """Name under which the usual scores of a suite are stored."""
    return f"{KIND} {suite} scores"


class CanaryLoop:
    """The loop of canaries.

    Args:
        holder: Name of this process in a fleet.
        claim_seconds: How long the right to run a suite holds; it is renewed during a run.

    Attributes:
        reached: Suites whose service could be reached by now.
    """

    def __init__(
        self, suites: Sequence[CanarySuite], context: LoopContext, *, holder: str, claim_seconds: float = CLAIM_SECONDS
    ) -> None:
        self._store, self._telemetry, self._clock = context.store, context.telemetry, context.clock
        self._claim_seconds = claim_seconds
        self.suites = {suite.name: suite for suite in suites}
        self._holder = f"{holder}/{secrets.token_hex(4)}"  # a reload makes another loop in the same process
        self._locks = {name: asyncio.Lock() for name in self.suites}
        self._gauges: dict[str, Gauges] = {}
        self._last_success: dict[str, float] = {}
        self._running: set[asyncio.Task[SuiteReport]] = set()
        self._closed = asyncio.Event()
        self.reached: set[str] = set()

    def resume(self) -> None:
        """Expose the last run of each suite until the next one, so that a restart hides nothing.

        Canaries that were removed or changed in the configuration are left out: their series would stay until the suite
        runs again.
        """
        for name in self.suites:
            runs = self._store.runs(KIND, name, 1)
            success = self._store.recall(f"{KIND} {name} answered")
            if success is not None:
                self._last_success[name] = float(success["at"])
            if runs and (suite_report := report_of(name, runs[0].body)) is not None:
                self._show(self._in_force(suite_report), runs[0].at)

    def gauges(self) -> Gauges:
        """Values of the last runs."""
        return {cell: value for gauges in list(self._gauges.values()) for cell, value in gauges.items()}

    async def run(self, name: str, *, again: bool = False, store: Store | None = None) -> SuiteReport | None:
        """Run one suite. None when it runs already, here or in another process of the fleet, or when closing.

        Args:
            name: The suite.
            again: A retry after the service could not be reached: if it still cannot, the run is not stored again.
            store: Keeps the run; by default the store of this loop.
        """
        lock = self._locks[name]
        if lock.locked() or self._closed.is_set():
            return None
        async with lock:
            started = self._clock()
            if not await asyncio.to_thread(self._claim, name, self._claim_seconds):
                return None
            try:
                if self._closed.is_set():
                    return None
                return await self._run(name, self._ask(name, started, again=again, store=store or self._store))
            finally:
                await asyncio.to_thread(self._claim, name, 0.0)

    async def _run(self, name: str, asking: Coroutine[None, None, SuiteReport]) -> SuiteReport | None:
        """Run a suite with a claim on it; None when the run was cancelled by `close`."""
        task = asyncio.create_task(asking)
        ended = asyncio.Event()
        renewal = asyncio.create_task(self._renew(name, ended))
        self._running.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if not self._closed.is_set():
                raise
            return None
        finally:
            self._running.discard(task)
            ended.set()
            await renewal

    async def _renew(self, name: str, ended: asyncio.Event) -> None:
        """Renew the right to run a suite until its run has ended.

        It is not cancelled: a renewal that is under way in a thread would go on, and come after the release.
        """
        while not ended.is_set():
            try:
                await asyncio.wait_for(ended.wait(), self._claim_seconds / 3)
            except TimeoutError:
                with suppress(RagwatchError):  # there are two more attempts before it expires
                    await asyncio.to_thread(self._claim, name, self._claim_seconds)

    async def _ask(self, name: str, started: float, *, again: bool, store: Store) -> SuiteReport:
        suite = self.suites[name]
        result = await suite.ask(self._clock)
        if not result.unreachable:
            self.reached.add(name)
        elif again:
            return result
        result = await asyncio.to_thread(self._record, result, started, store)
        self._telemetry.canaries_ran(name, len(result.reports), len(result.degraded), sum(result.failures.values()))
        return result

    async def run_all(self) -> dict[str, SuiteReport | None]:
        """Run all suites concurrently. None for one that was running already."""
        names = list(self.suites)
        return dict(zip(names, await asyncio.gather(*map(self.run, names)), strict=True))

    async def close(self) -> None:
        """Cancel the runs under way, without a result, and close the probes."""
        self._closed.set()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        for lock in self._locks.values():
            async with lock:  # until the right to run is released: the loop of a reload may need it at once
                pass
        for suite in self.suites.values():
            await suite.probe.close()

    def _claim(self, name: str, seconds: float) -> bool:
        return self._store.claim(f"{KIND} {name}", self._holder, now=self._clock(), seconds=seconds)

    def _record(self, result: SuiteReport, at: float, store: Store) -> SuiteReport:
        answered = not result.failures
        result, levels = with_levels(result, levels_of(store.recall(levels_name(result.suite))))
        before, last = self._gauges.get(result.suite, {}), self._last_success.get(result.suite)
        if answered:
            self._last_success[result.suite] = at
        self._show(result, at)  # before the run is counted, so that no scrape has the count without its gauges
        try:
            run = StoredRun(KIND, result.suite, at, not result.success, body_of(result))
            before_this = self._store.runs(KIND, result.suite, 1)
            store.record_run(run, tallies_of(result), sums_of(result, at))
        except RagwatchError:
            self._gauges[result.suite] = before
            if last is None:
                self._last_success.pop(result.suite, None)
            else:
                self._last_success[result.suite] = last
            raise
        store.remember(levels_name(result.suite), {key: list(level) for key, level in levels.items()})
        if answered:
            store.remember(f"{KIND} {result.suite} answered", {"at": at})
        detail = change_of(result, before_this[0].body if before_this else None)
        if detail is not None:
            store.record(RecordedEvent(at, KIND, detail))
        return result

    def last_run(self, name: str) -> float | None:
        """Time of the last run of a suite, in any process of the fleet; None before the first."""
        runs = self._store.runs(KIND, name, 1)
        return runs[0].at if runs else None

    def _in_force(self, result: SuiteReport) -> SuiteReport:
        """The part of an earlier run whose canaries are still configured as they were then."""
        suite = self.suites[result.suite]
        canaries = {canary.name: canary for canary in suite.canaries}
        reports = tuple(old for old in result.reports if canaries.get(old.canary.name) == old.canary)
        names = {old.canary.name for old in reports} if suite.answers is not None else frozenset()
        return replace(result, reports=reports, answers=tuple(old for old in result.answers if old.canary in names))

    def _show(self, result: SuiteReport, at: float) -> None:
        last_success, ks = self._last_success.get(result.suite), self.suites[result.suite].ks
        self._gauges[result.suite] = gauges_of(result, at=at, last_success=last_success, ks=ks)


def change_of(result: SuiteReport, before: Mapping[str, Any] | None) -> str | None:
    """What a run says about canaries that the one before did not: that some are degraded, failed or wrong, or none.

    Without a stored body of the run before there is no change.
    """
    line = (before or {}).get("line")
    if not isinstance(line, Mapping):
        return None
    answers = line.get("answers")
    was_wrong = isinstance(answers, Mapping) and answers.get("faults")
    was_bad = bool(line.get("degraded") or line.get("failures") or was_wrong)
    failed, wrong = sum(result.failures.values()), len(result.faults)
    if was_bad is bool(result.degraded or failed or wrong):
        return None
    if was_bad:
        return f"{result.suite}: no canary is degraded or failed any more"
    more = f", {wrong} answered wrong" if wrong else ""
    return f"{result.suite}: {len(result.degraded)} of {len(result.reports)} canaries degraded, {failed} failed{more}"
