"""Trends: sums of scores by bucket of time, merged to the points of a chart, with the estimator of the gauges.

A bucket holds `Addends`, which add up: a point over several buckets equals the estimate over all their scores, and the
point over a window equals the gauge of that window. A point without a score has no estimate; it is a gap, never 0.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

from ragwatch.model.enumerations import Described
from ragwatch.model.estimate import Addends, Estimate
from ragwatch.statistics.compare import Difference, change
from ragwatch.statistics.estimators import hajek
from ragwatch.statistics.verdict import Judged, Verdict

MINUTE, HOUR, DAY = 60, 3600, 86400
FINE, COARSE = 5 * MINUTE, HOUR
SPANS = (FINE, COARSE)
"""Lengths of the stored buckets in seconds."""
FINE_SECONDS = 2 * DAY
"""How long the fine buckets are stored."""


class TrendKind(StrEnum):
    """What a series is about."""

    SCORE = "score"
    CANARY = "canary"
    DRIFT = "drift"
    TRAFFIC_DRIFT = "traffic_drift"


class TrendKey(NamedTuple):
    """Identity of a series."""

    kind: TrendKind
    place: str  # route, or canary suite
    name: str  # quantity, canary metric or traffic signal
    judge: str = ""
    version: str = ""  # version of the judge; empty for none. Scores of two versions are not comparable


class BucketKey(NamedTuple):
    """A bucket of a series: its length and its start, in seconds since the epoch."""

    series: TrendKey
    span: int
    start: int


class Range(NamedTuple):
    """A range of time of a chart: its length, that of a point, and that of the stored buckets, in seconds."""

    seconds: int
    step: int
    span: int


RANGES: Mapping[str, Range] = MappingProxyType(
    {
        "1h": Range(HOUR, FINE, FINE),
        "6h": Range(6 * HOUR, 2 * FINE, FINE),
        "1d": Range(DAY, 30 * MINUTE, FINE),
        "7d": Range(7 * DAY, 4 * HOUR, COARSE),
        "30d": Range(30 * DAY, DAY, COARSE),
        "90d": Range(90 * DAY, 3 * DAY, COARSE),
    }
)
"""Ranges by name, each with at most 48 points: intervals are the largest part of what a page costs."""


def start_of(at: float, span: int) -> int:
    """Return when the bucket of an instant begins."""
    return math.floor(at / span) * span


def steps_of(shown: Range, now: float) -> range:
    """Return the starts of the points of a range; the last one contains the present."""
    last = start_of(now, shown.step)
    return range(last - shown.seconds + shown.step, last + 1, shown.step)


def score_sums(verdicts: Iterable[Verdict]) -> dict[BucketKey, Addends]:
    """Return what verdicts add to the stored buckets."""
    sums: dict[BucketKey, Addends] = {}
    for verdict in verdicts:
        if not isinstance(verdict, Judged):
            continue
        draw, reading = verdict.draw, verdict.reading
        for quantity, score in verdict.scores.items():
            if score is not None:
                series = TrendKey(TrendKind.SCORE, draw.route, str(quantity), reading.judge, reading.version)
                add_to(sums, series, draw.at, Addends.one(score, draw.probability))
    return sums


def add_to(sums: dict[BucketKey, Addends], series: TrendKey, at: float, addends: Addends) -> None:
    """Add sums to the buckets of an instant."""
    for span in SPANS:
        key = BucketKey(series, span, start_of(at, span))
        sums[key] = sums.get(key, Addends()) + addends


def merged(buckets: Iterable[tuple[int, Addends]], step: int) -> dict[int, Addends]:
    """Merge buckets, given by their start, into those of `step` seconds. Starts without a score are absent."""
    parts: dict[int, list[Addends]] = {}
    for start, addends in buckets:
        if addends.n:
            parts.setdefault(start_of(start, step), []).append(addends)
    return {start: Addends.total(several) for start, several in parts.items()}


@lru_cache(1 << 13)  # points of the past do not change, and an interval takes a tenth of a millisecond
def estimate_of(addends: Addends, confidence: float) -> Estimate | None:
    """Return the estimate of a point; None for a gap."""
    return hajek.estimate(addends, confidence=confidence)


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a chart that begins at `start`; None for a gap."""

    start: int
    estimate: Estimate | None


def mean_of(addends: Addends) -> Estimate:
    """Return the mean without an interval, which is cheap: figures of canaries are not a sample of anything."""
    mean, n = addends.wx / addends.w, addends.n
    return Estimate(mean, mean, mean, n, float(n), coverage=1.0, bound_low=mean, bound_high=mean, interval="none")


def points(sums: Mapping[int, Addends], starts: Iterable[int], confidence: float | None) -> list[Point]:
    """Return a point for every start, in order; without intervals if `confidence` is None."""

    def estimated(addends: Addends) -> Estimate | None:
        return mean_of(addends) if confidence is None else estimate_of(addends, confidence)

    return [Point(start, estimated(sums[start]) if start in sums else None) for start in starts]


def stretches(filled: Sequence[bool]) -> Iterator[range]:
    """Yield the index ranges without a gap: a line is interrupted where there is no data."""
    for is_filled, group in groupby(range(len(filled)), filled.__getitem__):
        if is_filled:
            places = list(group)
            yield range(places[0], places[-1] + 1)


def log_height(value: float, low: float, high: float) -> float:
    """Return the height of a value between two limits on a log scale, in [0, 1]; 0 and less are at the bottom."""
    if value <= low:
        return 0.0
    return min(1.0, math.log(value / low) / math.log(high / low))


class EvidenceLevel(Described):
    """How far evidence for a change is from the alarm."""

    NONE = ("none", "no sign of a change")
    WEAK = ("weak", "weak signs of a change, as chance alone gives now and then")
    STRONG = ("strong", "strong signs of a change")
    ALARM = ("alarm", "the alarm is raised")


def evidence_level(evidence: float, threshold: float) -> EvidenceLevel:
    """Return the level of evidence: none up to 1, weak up to the square root of the threshold, strong up to it.

    Up to 1, betting against the baseline has won nothing; the square root is half of the way, as evidence grows by
    factors.
    """
    if evidence >= threshold:
        return EvidenceLevel.ALARM
    if evidence <= 1.0:
        return EvidenceLevel.NONE
    return EvidenceLevel.WEAK if evidence <= math.sqrt(threshold) else EvidenceLevel.STRONG


def evidence_words(evidence: float, threshold: float) -> str:
    """Say in words what evidence for a change means."""
    level = evidence_level(evidence, threshold)
    limit = f"{threshold:,.3g}" if threshold < 1000 else f"{threshold:,.0f}"
    if level is EvidenceLevel.ALARM:
        shown = f"{evidence:,.0f}" if evidence < 1e6 else "far above"
        return f"{level.text}: it needs {limit}, and the evidence is {shown}"
    if level is EvidenceLevel.NONE:
        return f"{level.text} (the alarm needs {limit})"
    return f"{level.text}: the alarm needs {threshold / evidence:,.3g} times as much ({limit})"


class Sides(NamedTuple):
    """Two stretches of time of whole buckets of length `span`, `before` to `end` and `start` to `after`, in seconds."""

    span: int
    before: int
    end: float
    start: float
    after: int

    def split(self, buckets: Iterable[tuple[int, Addends]]) -> tuple[Addends, Addends]:
        """Return the sums of both sides, of buckets given by their start."""
        before, after = [], []
        for start, sums in sorted(buckets, key=lambda bucket: bucket[0]):
            if self.before <= start < self.end:
                before.append(sums)
            elif self.start <= start < self.after:
                after.append(sums)
        return Addends.total(before), Addends.total(after)


def sides_of(at: float, seconds: int, *, now: float) -> Sides:
    """Return the sides of an instant; a bucket that contains it belongs to neither, because it mixes both.

    >>> sides_of(7200.0, 3600, now=8000.0)
    Sides(span=300, before=3600, end=7200, start=7200, after=10800)
    >>> sides_of(7201.0, 3600, now=1e6)
    Sides(span=3600, before=3600, end=7200, start=10800, after=14400)
    """
    span = FINE if at - seconds >= now - FINE_SECONDS + COARSE else COARSE
    end = start_of(at, span)
    start = end if end == at else end + span
    return Sides(span, end - seconds, end, start, start + seconds)


def difference(before: Addends, after: Addends, confidence: float, *, low_is_good: bool) -> Difference | None:
    """Return the difference of two means, after minus before; None where a side has no score.

    >>> good, bad = Addends.of([(1.0, 1.0)] * 90 + [(0.0, 1.0)] * 10), Addends.of([(1.0, 1.0), (0.0, 1.0)] * 50)
    >>> result = difference(good, bad, 0.95, low_is_good=False)
    >>> round(result.change.value, 2), str(result.conclusion)
    (-0.4, 'worse')
    """
    first, second = estimate_of(before, confidence), estimate_of(after, confidence)
    if first is None or second is None:
        return None
    n = min(first.n, second.n)
    return Difference(first.value, second.value, change(first, second), n, paired=False, low_is_good=low_is_good)
