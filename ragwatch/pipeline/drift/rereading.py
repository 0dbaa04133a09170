"""Reading of sample sets: reads a set of samples with a judge, outside of the queue, to test the judge."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from ragwatch.core.sample import OTHER, Draw, Sample
from ragwatch.core.verdict import Judged, Verdict
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.reading import Deferred, DrawReader
from ragwatch.ports import Judge
from ragwatch.telemetry import Telemetry

SOURCE = "rereading"


class AnchorReading(NamedTuple):
    """The result of one sample: its scores, or the reason why there are none."""

    scores: Mapping[Quantity, float | None]
    reason: str | None


class SampleSetReading:
    """Reads sets of samples, each to its end, despite outages of the judge.

    Args:
        timeout_seconds: A reading that takes longer is cancelled.
    """

    def __init__(self, judge: Judge, *, timeout_seconds: float, telemetry: Telemetry) -> None:
        self._reader = DrawReader(judge, timeout_seconds=timeout_seconds, telemetry=telemetry)
        self._read: dict[str, AnchorReading] = {}

    async def read(self, samples: Mapping[str, Sample], at: float) -> dict[str, AnchorReading] | None:
        """Read samples. Returns the result of each by key.

        None while the judge is not available or its budget is used up: call again with the same samples later. Samples
        that were read (and paid) are not read again.
        """
        self._read = {key: reading for key, reading in self._read.items() if key in samples}
        if self._reader.judge.ready_in() > 0.0:
            return None
        missing = [(key, sample) for key, sample in samples.items() if key not in self._read]
        draws = [Draw(key, sample, SOURCE, OTHER, 1.0, at=at) for key, sample in missing]
        for draw, outcome in zip(draws, await asyncio.gather(*map(self._reader.read, draws)), strict=True):
            if not isinstance(outcome, Deferred):
                self._read[draw.key] = _result(outcome)
        if len(self._read) < len(samples):
            return None
        done, self._read = self._read, {}
        return done


def _result(verdict: Verdict) -> AnchorReading:
    return (
        AnchorReading(verdict.scores, None) if isinstance(verdict, Judged) else AnchorReading({}, str(verdict.reason))
    )
