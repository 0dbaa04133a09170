"""Reads one draw with one judge: the outcome is a verdict, or the draw is deferred.

Self-tests of a judge read a small share of the answers again that it has read. They produce no scores. Rejudging reads
stored answers with another judge, outside of the queues. What it could not read is not stored: it stays open, so that a
later run reads it.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from time import perf_counter
from typing import Any

from ragwatch.errors import JudgeError, StoreError
from ragwatch.model.evidence import ShapeError
from ragwatch.model.sample import Draw
from ragwatch.ports import Judge, RejudgeStore
from ragwatch.statistics.sampling import is_drawn, key_of
from ragwatch.statistics.self_tests import fooled, known_bad, padded, repeats, scores_higher
from ragwatch.statistics.tally import Tallies, Tally
from ragwatch.statistics.verdict import Judged, Reading, Unjudged, UnjudgedReason, Usage, Verdict, judged
from ragwatch.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class Deferred:
    """A draw that cannot be read at present, because of an outage or the budget. It stays pending."""

    draw: Draw
    reason: str  # why: a reason of `UnjudgedReason`, or text
    message: str = ""  # what happened, for a person; empty when `reason` says it


class DrawReader:
    """A judge with a limit on concurrency and a timeout. A failure is an outcome with a reason, never a score.

    Args:
        timeout_seconds: A reading that takes longer is cancelled.
        prepared: Readings beyond the concurrency of the judge. They are prepared and wait for a free call slot of the
            judge, so that no slot stays empty while an answer is prepared or scored.
    """

    def __init__(self, judge: Judge, *, timeout_seconds: float, telemetry: Telemetry, prepared: int = 0) -> None:
        self.judge = judge
        self._timeout = timeout_seconds
        self._telemetry = telemetry
        self.concurrency = judge.concurrency + prepared
        self._slots = asyncio.Semaphore(self.concurrency)
        self._stopped = False

    @property
    def no_reading(self) -> Reading:
        """The reading of a draw for which the judge was not called."""
        return Reading(self.judge.name, self.judge.kind, self.judge.version)

    def stop(self) -> None:
        """Start no more readings: draws that wait for a slot are deferred."""
        self._stopped = True

    async def read(self, draw: Draw) -> Verdict | Deferred:
        """Read one draw. Every exception of the judge becomes an outcome."""
        if draw.damage is not None:  # a retry would not help, and it must not block other draws
            return self.damaged(draw)
        if not draw.sample.answer.strip():  # no call is made, counted or paid
            return Unjudged(draw, self.no_reading, UnjudgedReason.EMPTY_ANSWER, "the answer is empty")
        async with self._slots:
            if self._stopped:
                return Deferred(draw, "ragwatch is stopping, or reads its configuration again")
            return await self._outcome(draw, perf_counter())

    def damaged(self, draw: Draw) -> Unjudged:
        """The outcome of a draw whose stored text cannot be read."""
        why = draw.damage or ""
        self._telemetry.draw_failed(self.judge.name, UnjudgedReason.DAMAGED, f"sample {draw.key}: {why}")
        return Unjudged(draw, self.no_reading, UnjudgedReason.DAMAGED, why)

    async def test(self, draw: Draw) -> Judged | None:
        """Read a draw to test the judge; None where that failed."""
        async with self._slots:
            try:
                async with asyncio.timeout(self._timeout):
                    evidence, usage = await self.judge.read(draw.sample)
                return judged(draw, self._reading(perf_counter(), usage), evidence)
            except (JudgeError, TimeoutError, ShapeError):
                return None
            except Exception as error:  # noqa: BLE001 - as in `_outcome`
                self._telemetry.step_failed(f"judge {self.judge.name}", error)
                return None

    async def _outcome(self, draw: Draw, start: float) -> Verdict | Deferred:
        try:
            async with asyncio.timeout(self._timeout):
                evidence, usage = await self.judge.read(draw.sample)
            return judged(draw, self._reading(start, usage), evidence)
        except StoreError as error:  # the cost of a call cannot be stored; the sample is not at fault
            return self._deferred(draw, UnjudgedReason.UNAVAILABLE, error)
        except JudgeError as error:
            if not error.permanent:
                return self._deferred(draw, error.reason, error)
            # A reason that is not defined is a bug of the judge, and must not block the queue.
            known = error.reason in set(UnjudgedReason)
            reason, why = UnjudgedReason(error.reason) if known else UnjudgedReason.INTERNAL, str(error)
        except TimeoutError:
            reason, why = UnjudgedReason.TIMEOUT, f"no answer within {self._timeout:g} s"
        except ShapeError as error:
            reason, why = UnjudgedReason.UNREADABLE, str(error)
        except Exception as error:  # noqa: BLE001 - one sample must not block the queue; the bug is logged and counted
            self._telemetry.step_failed(f"judge {self.judge.name}", error)
            reason, why = UnjudgedReason.INTERNAL, type(error).__name__
        self._telemetry.draw_failed(self.judge.name, reason, why)
        return Unjudged(draw, self._reading(start, Usage()), reason, why)

    def _deferred(self, draw: Draw, reason: str, error: Exception) -> Deferred:
        self._telemetry.draw_deferred(self.judge.name, reason, str(error))
        return Deferred(draw, reason, str(error))

    def _reading(self, start: float, usage: Usage) -> Reading:
        judge = self.judge
        return Reading(judge.name, judge.kind, judge.version, perf_counter() - start, usage)


class JudgeSelfTests:
    """Selects answers to read again, and counts the results in tallies.

    Args:
        repeat: Share of judged answers that are read a second time.
        known_bad: Share of judged answers from which a known-bad answer is made and read, as it is and padded.
    """

    def __init__(self, repeat: float = 0.0, known_bad: float = 0.0) -> None:
        self._repeat, self._known_bad = repeat, known_bad

    async def run(self, verdict: Judged, reader: DrawReader) -> Tallies:
        """Test the judge on this answer, if it is selected. Returns tallies; none where a reading fails."""
        tallies: Tallies = Counter()
        if self._is_selected("repeat", self._repeat, verdict):
            await self._read_twice(verdict, reader, tallies)
        if verdict.draw.sample.contexts and self._is_selected("known bad", self._known_bad, verdict):
            await self._test_known_bad(verdict, reader, tallies)
        return tallies

    @staticmethod
    def _is_selected(test: str, share: float, verdict: Judged) -> bool:
        return share > 0.0 and is_drawn(key_of(f"{test} {verdict.reading.judge}", verdict.draw.key), share)

    @staticmethod
    async def _read_twice(verdict: Judged, reader: DrawReader, tallies: Tallies) -> None:
        second = await reader.test(verdict.draw)
        if second is None:
            return
        version = verdict.reading.version
        for quantity, same in repeats(verdict.scores, second.scores).items():
            labels = (verdict.reading.judge, version, str(quantity))
            tallies[Tally.REPEATED, labels] += 1
            tallies[Tally.REPEATED_ALIKE, labels] += same

    @staticmethod
    async def _test_known_bad(verdict: Judged, reader: DrawReader, tallies: Tallies) -> None:
        bad = known_bad(verdict.draw.sample, verdict.draw.key)
        reading = await reader.test(replace(verdict.draw, sample=bad))
        if reading is None:
            return
        labels = (verdict.reading.judge, verdict.reading.version)
        tallies[Tally.KNOWN_BAD, labels] += 1
        tallies[Tally.FOOLED, labels] += fooled(reading.evidence)
        longer = await reader.test(replace(verdict.draw, sample=padded(bad, verdict.draw.key)))
        higher = None if longer is None else scores_higher(reading.scores, longer.scores)
        if higher is not None:
            tallies[Tally.PADDED, labels] += 1
            tallies[Tally.PADDING_PREFERRED, labels] += higher


MAX_ANSWERS = 100  # read at a time
_Outcome = Verdict | Deferred


@dataclass(frozen=True, slots=True)
class RejudgeRequest:
    """Answers to read again."""

    of: str  # the judge whose answers they are: see `RejudgeStore.draws_of`
    share: float  # share of these answers that was chosen at random to be read again
    keys: tuple[str, ...]  # the answers, at most `MAX_ANSWERS`
    charted_before: float = math.inf  # see `RejudgeStore.add_rejudged`


@dataclass(slots=True)
class RejudgeOutcome:
    """What became of the answers of a request."""

    stored: int = 0  # number of verdicts that were stored
    skipped: int = 0  # number of answers that the judge has read meanwhile, or whose texts were deleted
    failed: Counter[str] = field(default_factory=Counter)  # number of answers that could not be read, by reason
    # number of answers that cannot be read at present, by reason
    deferred: Counter[str] = field(default_factory=Counter)
    left: tuple[str, ...] = ()  # keys of those
    why: str = ""  # what happened last to one that failed or is left, for a person
    wait_seconds: float = 0.0  # after which the judge may be able to read them

    def to_dict(self) -> dict[str, object]:
        """JSON values, which `outcome_of` reads."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def outcome_of(values: Mapping[str, Any]) -> RejudgeOutcome:
    """Read what `RejudgeOutcome.to_dict` has returned.

    Raises:
        LookupError, TypeError, ValueError: It is something else.
    """
    return RejudgeOutcome(
        stored=int(values["stored"]),
        skipped=int(values["skipped"]),
        failed=Counter({str(reason): int(number) for reason, number in values["failed"].items()}),
        deferred=Counter({str(reason): int(number) for reason, number in values["deferred"].items()}),
        left=tuple(map(str, values["left"])),
        why=str(values["why"]),
        wait_seconds=float(values["wait_seconds"]),
    )


class Rejudging:
    """Reads stored answers with one judge, and stores each verdict as soon as there is one."""

    def __init__(self, judge: Judge, *, store: RejudgeStore, timeout_seconds: float, telemetry: Telemetry) -> None:
        self._judge = judge
        self._store = store
        self._reader = DrawReader(judge, timeout_seconds=timeout_seconds, telemetry=telemetry)

    async def read(self, request: RejudgeRequest, outcome: RejudgeOutcome | None = None) -> RejudgeOutcome:
        """Read answers. If it is cancelled, those that were read are stored nevertheless: they may have cost money.

        Args:
            request: The answers.
            outcome: Is added to and returned, also where this is cancelled; None for a new one.
        """
        draws = await asyncio.to_thread(self._store.draws_of, request.of, request.keys)
        outcome = RejudgeOutcome() if outcome is None else outcome
        outcome.skipped += len(set(request.keys)) - len(draws)
        tasks = {asyncio.create_task(self._read(draw, request.share)) for draw in draws}
        try:
            while tasks:
                done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                results = [task.result() for task in done]
                await _to_its_end(asyncio.to_thread(self._take, results, request, outcome))
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            self._take([result for result in ended if not isinstance(result, BaseException)], request, outcome)
        outcome.wait_seconds = self._judge.ready_in()
        return outcome

    async def _read(self, draw: Draw, share: float) -> _Outcome:
        return await self._reader.read(replace(draw, probability=draw.probability * share))

    def _take(self, results: Sequence[_Outcome], request: RejudgeRequest, outcome: RejudgeOutcome) -> None:
        """Store the verdicts, and count the rest."""
        judged = [result for result in results if isinstance(result, Judged)]
        if judged:
            new = self._store.add_rejudged(judged, charted_before=request.charted_before)
            outcome.stored += new
            outcome.skipped += len(judged) - new
        for result in results:
            if isinstance(result, Unjudged):
                outcome.failed[str(result.reason)] += 1
                outcome.why = result.detail
            elif isinstance(result, Deferred):
                outcome.deferred[result.reason] += 1
                outcome.left += (result.draw.key,)
                outcome.why = result.message or result.reason


async def _to_its_end(work: Awaitable[None]) -> None:
    """Wait for work to end also when this is cancelled: the store is not closed while a thread writes."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    finally:
        await task
