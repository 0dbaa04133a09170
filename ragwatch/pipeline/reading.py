"""Reading: one judge reads one draw, and whatever happens becomes a verdict, or the draw goes back to the queue."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from time import perf_counter

from ragwatch.core.evidence import ShapeError
from ragwatch.core.sample import Draw
from ragwatch.core.verdict import Judged, Reading, Unjudged, UnjudgedReason, Usage, Verdict, judged
from ragwatch.errors import JudgeError, StoreError
from ragwatch.ports import Judge
from ragwatch.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class Deferred:
    """A draw that could not be read at present: an outage, or no money. It stays pending."""

    draw: Draw
    reason: str


class DrawReader:
    """A judge with its limits around it. A failure is an outcome with a reason, never a number.

    Args:
        timeout_seconds: A reading that takes longer is given up.
    """

    def __init__(self, judge: Judge, *, timeout_seconds: float, telemetry: Telemetry) -> None:
        self.judge = judge
        self._timeout = timeout_seconds
        self._telemetry = telemetry
        self._places = asyncio.Semaphore(judge.concurrency)
        self._stopped = False

    @property
    def nothing(self) -> Reading:
        """The reading of a draw that the judge was not asked about."""
        return Reading(self.judge.name, self.judge.kind, self.judge.version)

    def stop(self) -> None:
        """Begin no reading any more: draws that wait for their place are put back."""
        self._stopped = True

    async def read(self, draw: Draw) -> Verdict | Deferred:
        """What becomes of one draw, whatever happens to the judge."""
        if draw.damage is not None:  # it would be as damaged the next time, and must not stop those behind it
            return self.damaged(draw)
        if not draw.sample.answer.strip():  # nothing to ask: no call is made, counted or paid
            return Unjudged(draw, self.nothing, UnjudgedReason.EMPTY_ANSWER, "the answer is empty")
        async with self._places:
            if self._stopped:
                return Deferred(draw, "ragwatch is stopping, or reads its configuration again")
            return await self._outcome(draw, perf_counter())

    def damaged(self, draw: Draw) -> Unjudged:
        """What becomes of a draw whose stored text cannot be read."""
        why = draw.damage or ""
        self._telemetry.draw_failed(self.judge.name, UnjudgedReason.DAMAGED, f"sample {draw.key}: {why}")
        return Unjudged(draw, self.nothing, UnjudgedReason.DAMAGED, why)

    async def again(self, draw: Draw) -> Judged | None:
        """A reading that only tells about the judge; None where it failed, which then says nothing."""
        async with self._places:
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
        except StoreError as error:  # no room to note what a call costs: nothing lies in the sample
            return self._put_back(draw, UnjudgedReason.UNAVAILABLE, error)
        except JudgeError as error:
            if not error.permanent:
                return self._put_back(draw, error.reason, error)
            reason, why = _reason(error), str(error)
        except TimeoutError:
            reason, why = UnjudgedReason.TIMEOUT, f"no answer within {self._timeout:g} s"
        except ShapeError as error:
            reason, why = UnjudgedReason.UNREADABLE, str(error)
        except Exception as error:  # noqa: BLE001 - one sample must not stop the queue; the bug is logged and counted
            self._telemetry.step_failed(f"judge {self.judge.name}", error)
            reason, why = UnjudgedReason.INTERNAL, type(error).__name__
        return self._failed(draw, start, reason, why)

    def _put_back(self, draw: Draw, reason: str, error: Exception) -> Deferred:
        self._telemetry.draw_put_back(self.judge.name, reason, str(error))
        return Deferred(draw, reason)

    def _reading(self, start: float, usage: Usage) -> Reading:
        judge = self.judge
        return Reading(judge.name, judge.kind, judge.version, perf_counter() - start, usage)

    def _failed(self, draw: Draw, start: float, reason: UnjudgedReason, why: str) -> Unjudged:
        self._telemetry.draw_failed(self.judge.name, reason, why)
        return Unjudged(draw, self._reading(start, Usage()), reason, why)


def _reason(error: JudgeError) -> UnjudgedReason:
    """The reason a judge gave; a word we do not know is the judge's bug, and must not stop the queue."""
    return UnjudgedReason(error.reason) if error.reason in set(UnjudgedReason) else UnjudgedReason.INTERNAL
