"""Rejudging: reads stored answers with another judge, outside of the queues, within its budget.

What could not be read is not stored: it stays open, so that a later run reads it.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ragwatch.model.sample import Draw
from ragwatch.pipeline.reading import Deferred, DrawReader
from ragwatch.ports import Judge, RejudgeStore
from ragwatch.statistics.verdict import Judged, Unjudged, Verdict
from ragwatch.telemetry import Telemetry

MAX_ANSWERS = 100
"""Read at a time."""
_Outcome = Verdict | Deferred


@dataclass(frozen=True, slots=True)
class RejudgeRequest:
    """Answers to read again.

    Attributes:
        of: The judge whose answers they are: see `RejudgeStore.draws_of`.
        share: Share of these answers that was chosen at random to be read again.
        keys: The answers, at most `MAX_ANSWERS`.
        charted_before: See `RejudgeStore.add_rejudged`.
    """

    of: str
    share: float
    keys: tuple[str, ...]
    charted_before: float = math.inf


@dataclass(slots=True)
class RejudgeOutcome:
    """What became of the answers of a request.

    Attributes:
        stored: Number of verdicts that were stored.
        skipped: Number of answers that the judge has read meanwhile, or whose texts were deleted.
        failed: Number of answers that could not be read, by reason.
        deferred: Number of answers that cannot be read at present, by reason.
        left: Keys of those.
        why: What happened last to one that failed or is left, for a person.
        wait_seconds: After which the judge may be able to read them.
    """

    stored: int = 0
    skipped: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    deferred: Counter[str] = field(default_factory=Counter)
    left: tuple[str, ...] = ()
    why: str = ""
    wait_seconds: float = 0.0

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
    """Reads stored answers with one judge, and stores each verdict as soon as there is one.

    Args:
        timeout_seconds: A reading that takes longer is cancelled.
    """

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
