"""Rereading: a set of samples is read by a judge, outside of the queue, to learn about the judge."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from ragwatch.core.sample import OTHER, Draw, Sample
from ragwatch.core.scores import Quantity
from ragwatch.core.verdict import Judged, Verdict
from ragwatch.pipeline.reading import Deferred, DrawReader
from ragwatch.ports import Judge
from ragwatch.telemetry import Telemetry

SOURCE = "rereading"


class AnchorReading(NamedTuple):
    """What became of one sample: its scores, or the reason why there are none."""

    scores: Mapping[Quantity, float | None]
    reason: str | None


class SampleSetReading:
    """Reads sets of samples, each to its end, however often the judge is out of order on the way.

    Args:
        timeout_seconds: A reading that takes longer is given up.
    """

    def __init__(self, judge: Judge, *, timeout_seconds: float, telemetry: Telemetry) -> None:
        self._reader = DrawReader(judge, timeout_seconds=timeout_seconds, telemetry=telemetry)
        self._read: dict[str, AnchorReading] = {}

    async def read(self, samples: Mapping[str, Sample], at: float) -> dict[str, AnchorReading] | None:
        """What becomes of every sample, by key.

        None while the judge is out of order or has no money: call again with the same samples later, and what was read
        (and paid) is not read again.
        """
        self._read = {key: found for key, found in self._read.items() if key in samples}
        if self._reader.judge.ready_in() > 0.0:
            return None
        missing = [(key, sample) for key, sample in samples.items() if key not in self._read]
        draws = [Draw(key, sample, SOURCE, OTHER, 1.0, at) for key, sample in missing]
        for draw, outcome in zip(draws, await asyncio.gather(*map(self._reader.read, draws)), strict=True):
            if not isinstance(outcome, Deferred):
                self._read[draw.key] = _reread(outcome)
        if len(self._read) < len(samples):
            return None
        done, self._read = self._read, {}
        return done


def _reread(verdict: Verdict) -> AnchorReading:
    return (
        AnchorReading(verdict.scores, None) if isinstance(verdict, Judged) else AnchorReading({}, str(verdict.reason))
    )
