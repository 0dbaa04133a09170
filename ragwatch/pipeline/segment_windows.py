"""Sliding windows of segments: sums of scores by segment and minute, which are added up to windows.

Sums of windows above two hours are kept by the quarter of an hour, because there are many segments: such a window ends
at a quarter of an hour. Memory grows with the number of configured values, not with traffic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ragwatch.core.estimate import Addends
from ragwatch.core.estimators import hajek
from ragwatch.core.sample import OTHER
from ragwatch.core.segments import Segments
from ragwatch.core.snapshot import SegmentRow
from ragwatch.model.quantities import Quantity
from ragwatch.ports import ScoreRow

MINUTE, QUARTER = 60.0, 900.0
MAX_BY_MINUTE = 7200.0
Series = tuple[Quantity, str, str, str, str]  # quantity, segment, value, route, judge


class SegmentWindows:
    """Adds up score rows by segment; see `SlidingWindows`, which does the same for routes.

    Args:
        segments: The configured segments.
        spans: Length of each window in seconds, by its name.
        versions: Version of each judge in force: rows of another version never enter a mean.
        confidence: Two-sided level of the intervals.
    """

    def __init__(
        self, segments: Segments, spans: Mapping[str, float], versions: Mapping[str, str], confidence: float
    ) -> None:
        self._keys = frozenset(segments.values)
        self._pairs = segments.pairs
        self._spans = dict(spans)
        self._versions = dict(versions)
        self._confidence = confidence
        self._steps = {name: MINUTE if span <= MAX_BY_MINUTE else QUARTER for name, span in spans.items()}
        self.last_sample: dict[Series, float] = {}
        self.clear()

    def clear(self) -> None:
        """Remove all sums."""
        self._sums: dict[float, dict[int, dict[Series, Addends]]] = {step: {} for step in self._steps.values()}
        self._totals: dict[str, tuple[range, dict[Series, Addends]]] = {}
        self._intervals: dict[tuple[str, Series], tuple[Addends, hajek.Interval]] = {}

    def add(self, rows: Iterable[ScoreRow]) -> None:
        """Add score rows."""
        for row in rows:
            if row.segments and row.scores is not None and row.version == self._versions.get(row.judge):
                self._add(row)

    def _add(self, row: ScoreRow) -> None:
        self._totals.clear()
        parts = [sums.setdefault(int(row.at // step), {}) for step, sums in self._sums.items()]
        places = [(key, self._allowed(key, value)) for key, value in row.segments.items() if key in self._keys]
        for quantity, score in (row.scores or {}).items():
            if score is None:
                continue
            one = Addends.one(score, row.probability)
            for key, value in places:
                series = (quantity, key, value, row.route, row.judge)
                for part in parts:
                    part[series] = part[series] + one if series in part else one
                self.last_sample[series] = max(row.at, self.last_sample.get(series, row.at))

    def _allowed(self, key: str, value: str) -> str:
        """The value, or `other` if it was removed from the configuration since the answer was judged."""
        return value if (key, value) in self._pairs else OTHER

    def forget(self, now: float) -> None:
        """Drop sums that no window reaches, and limit times after now, which come from a clock that was ahead."""
        for step, sums in self._sums.items():
            longest = max(span for name, span in self._spans.items() if self._steps[name] == step)
            oldest = int((now - longest) // step)
            self._sums[step] = {index: part for index, part in sums.items() if index >= oldest}
        for series, at in self.last_sample.items():
            if at > now:
                self.last_sample[series] = now

    def summary(self, now: float) -> tuple[SegmentRow, ...]:
        """Estimates of every series and window that has scores, series in order."""
        return tuple(
            SegmentRow(*series, name, hajek.from_interval(self._interval(name, series, addends), addends, 0.0))
            for name in self._spans
            for series, addends in self._total(name, now).items()
        )

    def _total(self, name: str, now: float) -> dict[Series, Addends]:
        """The sums of a window, series in order."""
        step, span = self._steps[name], self._spans[name]
        within = range(int((now - span) // step) + 1, int(now // step) + 1)
        cached = self._totals.get(name)
        if cached is None or cached[0] != within:
            sums = self._sums[step]
            parts: dict[Series, list[Addends]] = {}
            for index in within:
                for series, addends in sums.get(index, {}).items():
                    parts.setdefault(series, []).append(addends)
            totals = {series: Addends.total(parts[series]) for series in sorted(parts)}
            cached = self._totals[name] = (within, totals)
        return cached[1]

    def _interval(self, name: str, series: Series, addends: Addends) -> hajek.Interval:
        cached = self._intervals.get((name, series))
        if cached is None or cached[0] != addends:
            cached = self._intervals[name, series] = (addends, hajek.interval(addends, self._confidence))
        return cached[1]
