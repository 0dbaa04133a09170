"""Before and after an instant: which buckets belong to either side, and the difference of their means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ragwatch.core.compare import Difference, Interval, change
from ragwatch.core.estimate import Addends
from ragwatch.core.trends import COARSE, FINE, FINE_SECONDS, estimate_of, start_of


class Sides(NamedTuple):
    """Two stretches of time of whole buckets of length `span`, `before` to `end` and `start` to `after`, in seconds."""

    span: int
    before: int
    end: float
    start: float
    after: int

    def split(self, buckets: Iterable[tuple[int, Addends]]) -> tuple[Addends, Addends]:
        """Return the sums of both sides, of buckets given by their start.

        >>> first, second = sides_of(600.0, 300, now=900.0).split((at, Addends.one(1.0, 1.0)) for at in (0, 300, 600))
        >>> first.n, second.n
        (1, 1)
        """
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
    a, b = (Interval(one.value, one.low, one.high) for one in (first, second))
    return Difference(a.value, b.value, change(a, b), min(first.n, second.n), paired=False, low_is_good=low_is_good)
