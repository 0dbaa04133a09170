"""Reading: one judge reads one draw, and whatever happens becomes a verdict."""

from __future__ import annotations

import asyncio
from time import perf_counter

from ragwatch.core.evidence import ShapeError
from ragwatch.core.sample import Draw
from ragwatch.core.verdict import Reading, Unjudged, UnjudgedReason, Usage, Verdict, judged
from ragwatch.errors import JudgeError
from ragwatch.ports import Judge
from ragwatch.telemetry import Telemetry


class Reader:
    """A judge with its limits around it. A failure is an outcome with a reason, never a number.

    Args:
        timeout_seconds: A reading that takes longer is given up.
    """

    def __init__(self, judge: Judge, *, timeout_seconds: float, telemetry: Telemetry) -> None:
        self.judge = judge
        self._timeout = timeout_seconds
        self._telemetry = telemetry
        self._nothing = Reading(judge.name, judge.kind, judge.version)
        self._places = asyncio.Semaphore(judge.concurrency)

    async def read(self, draw: Draw) -> Verdict:
        """The verdict on one draw, whatever happens to the judge."""
        if not draw.sample.answer.strip():  # nothing to ask: no call is made, counted or paid
            return Unjudged(draw, self._nothing, UnjudgedReason.EMPTY_ANSWER, "the answer is empty")
        async with self._places:
            start = perf_counter()
            verdict = await self._outcome(draw, start)
        self._telemetry.judge_called(self.judge.name, self.judge.version, verdict.reading.seconds)
        return verdict

    async def _outcome(self, draw: Draw, start: float) -> Verdict:
        try:
            async with asyncio.timeout(self._timeout):
                evidence, usage = await self.judge.read(draw.sample)
            return judged(draw, self._reading(start, usage), evidence)
        except JudgeError as error:
            return self._failed(draw, start, _reason(error), str(error))
        except TimeoutError:
            return self._failed(draw, start, UnjudgedReason.TIMEOUT, f"no answer within {self._timeout:g} s")
        except ShapeError as error:
            return self._failed(draw, start, UnjudgedReason.UNREADABLE, str(error))
        except Exception as error:  # noqa: BLE001 - one sample must not stop the queue; the bug is logged and counted
            self._telemetry.step_failed(f"judge {self.judge.name}", error)
            return self._failed(draw, start, UnjudgedReason.INTERNAL, type(error).__name__)

    def _reading(self, start: float, usage: Usage) -> Reading:
        judge = self.judge
        tokens = (("input", usage.input_tokens), ("output", usage.output_tokens))
        self._telemetry.judge_spent(judge.name, judge.version, tokens, usage.cost_usd)
        return Reading(judge.name, judge.kind, judge.version, perf_counter() - start, usage)

    def _failed(self, draw: Draw, start: float, reason: UnjudgedReason, why: str) -> Unjudged:
        judge = self.judge
        self._telemetry.judge_failed(judge.name, judge.version, reason, why)
        return Unjudged(draw, Reading(judge.name, judge.kind, judge.version, perf_counter() - start), reason, why)


def _reason(error: JudgeError) -> UnjudgedReason:
    """The reason a judge gave; a word we do not know is the judge's bug, and must not stop the queue."""
    return UnjudgedReason(error.reason) if error.reason in set(UnjudgedReason) else UnjudgedReason.INTERNAL
