"""Self-tests of a judge, and the peaks of what is read at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from support.kit import AT, ScriptedJudge, a_draw, an_evidence

from ragwatch.core.evidence import Evidence
from ragwatch.core.sample import Sample
from ragwatch.core.snapshot import Gauge
from ragwatch.core.tally import Tally
from ragwatch.core.trends import SPANS, TrendKind, start_of
from ragwatch.core.verdict import Judged, Usage
from ragwatch.errors import StoreError
from ragwatch.pipeline.digest import PeakRecorder
from ragwatch.pipeline.reading import DrawReader, JudgeSelfTests
from ragwatch.ports import Peak
from ragwatch.telemetry import Telemetry


class LengthJudge(ScriptedJudge):
    """A judge that accepts every answer of more than some characters, and fails beyond a second number."""

    def __init__(self, accepts: int, fails: int = 1_000_000) -> None:
        super().__init__()
        self.accepts, self.fails = accepts, fails

    async def read(self, sample: Sample) -> tuple[Evidence, Usage]:
        """Supported if it is long."""
        if len(sample.answer) > self.fails:
            raise ValueError("too long")
        return an_evidence((int(len(sample.answer) > self.accepts), 0)), Usage(1, 1, 0.0)


async def counted(judge: LengthJudge) -> dict[Tally, float]:
    """The tallies of the known-bad test of one answer."""
    reader = DrawReader(judge, timeout_seconds=5.0, telemetry=Telemetry())
    verdict = await reader.read(a_draw())
    assert isinstance(verdict, Judged)
    tallies = await JudgeSelfTests(known_bad=1.0).run(verdict, reader)
    return {tally: count for (tally, _), count in tallies.items()}


async def test_a_padded_answer_that_scores_higher_is_counted() -> None:
    """A judge that accepts long answers prefers padding; one that accepts all, or none, does not."""
    found = await counted(LengthJudge(150))
    assert (found[Tally.PADDED], found[Tally.PADDING_PREFERRED], found[Tally.FOOLED]) == (1, 1, 0)
    for length in (0, 1_000_000):
        found = await counted(LengthJudge(length))
        assert (found[Tally.PADDED], found[Tally.PADDING_PREFERRED]) == (1, 0)


async def test_a_failed_reading_counts_nothing() -> None:
    """If only the padded answer fails, the known-bad answer still counts."""
    assert set(await counted(LengthJudge(0, fails=150))) == {Tally.KNOWN_BAD, Tally.FOOLED}
    assert await counted(LengthJudge(0, fails=12)) == {}


START = start_of(AT, 3600)


class Kept:
    """A store that keeps peaks in memory, or fails."""

    def __init__(self) -> None:
        self.peaks: list[Peak] = []
        self.is_full = False

    def add_peaks(self, peaks: Sequence[Peak]) -> None:
        """Keep them."""
        if self.is_full:
            raise StoreError("state: the disk is full")
        self.peaks += peaks


def evidence(value: float, **others: Any) -> dict[Any, float]:
    """Gauges of one detector."""
    labels = ("faithfulness", "search")
    return {(Gauge.DRIFT_EVIDENCE, labels): value, (Gauge.DRIFT_THRESHOLD, labels): 270.0, **others}


def test_a_bucket_begins_with_a_peak_and_few_steps_write_more() -> None:
    """Evidence that falls, hardly rises, or stays below 1 writes nothing; the next bucket begins anew."""
    store = Kept()
    recorder: Any = PeakRecorder(store)  # type: ignore[arg-type]
    for seconds, value in ((0, 1e-5), (5, 0.5), (10, 2.0), (15, 2.1), (20, 3.0), (25, 0.1), (300, 0.1)):
        recorder.take(START + seconds, evidence(value))
    fine = [(peak.start - START, peak.value) for peak in store.peaks if peak.span == SPANS[0]]
    assert fine == [(0, 1e-5), (0, 2.0), (0, 3.0), (300, 0.1)]
    assert [peak.value for peak in store.peaks if peak.span == SPANS[1]] == [1e-5, 2.0, 3.0]
    assert {peak.threshold for peak in store.peaks} == {270.0}


def test_a_store_that_cannot_be_written_is_tried_again() -> None:
    """A chart may have a gap, but the digest goes on."""
    store = Kept()
    store.is_full = True
    recorder: Any = PeakRecorder(store)  # type: ignore[arg-type]
    recorder.take(START, evidence(5.0))
    store.is_full = False
    recorder.take(START + 5, evidence(4.0))
    assert [peak.value for peak in store.peaks] == [4.0, 4.0]


def test_other_gauges_are_no_evidence() -> None:
    """Traffic has its own kind; a threshold that is not known is None."""
    store = Kept()
    recorder: Any = PeakRecorder(store)  # type: ignore[arg-type]
    recorder.take(START, {(Gauge.TRAFFIC_DRIFT_EVIDENCE, ("contexts", "search")): 2.0, (Gauge.STATE_FREE, ()): 9.0})
    assert {(peak.series.kind, peak.threshold) for peak in store.peaks} == {(TrendKind.TRAFFIC_DRIFT, None)}
