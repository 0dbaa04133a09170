"""Sliding windows: sums of scores by minute, which are added up to windows. Memory grows with time, not with traffic.

Sums of whole hours, sums of a window and the interval of these sums are cached until they change: the digest runs every
few seconds, and most of its results are the same as before.

Sums of windows of segments above two hours are kept by the quarter of an hour, because there are many segments: such a
window ends at a quarter of an hour. Their memory grows with the number of configured values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ragwatch.model.estimate import Addends
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import OTHER
from ragwatch.ports import ScoreRow
from ragwatch.statistics.estimators import hajek
from ragwatch.statistics.estimators.level import is_best
from ragwatch.statistics.segments import Segments, period_of, step_of
from ragwatch.statistics.snapshot import EstimateRow, Exemplar, SegmentRow
from ragwatch.statistics.tally import Tally, bucket_label

MINUTE = 60.0
HOUR = 60  # minutes
NO_PENDING: Mapping[tuple[str, str, int], float] = MappingProxyType({})
Cohort = tuple[str, str]  # route, judge
Series = tuple[Quantity, str, str]  # quantity, route, judge


@dataclass(slots=True)
class _Minute:
    """Sums over the answers of one minute."""

    scores: dict[Series, Addends] = field(default_factory=dict)
    best: dict[Series, float] = field(default_factory=dict)  # weight of answers with the best score
    unmeasured: dict[Series, float] = field(default_factory=dict)  # weight of answers in unmeasured languages
    judged: dict[Cohort, float] = field(default_factory=dict)  # weight
    unjudged: dict[Cohort, float] = field(default_factory=dict)  # weight
    stages: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # answers by route, judge, stage

    @classmethod
    def total(cls, parts: Sequence[_Minute]) -> _Minute:
        """Add several up, in their order."""
        scores: dict[Series, list[Addends]] = {}
        whole = cls()
        for part in parts:
            for series, addends in part.scores.items():
                scores.setdefault(series, []).append(addends)
            whole.stages.update(part.stages)
            for name in ("best", "unmeasured", "judged", "unjudged"):
                sums = getattr(whole, name)
                for key, weight in getattr(part, name).items():
                    sums[key] = sums.get(key, 0.0) + weight
        whole.scores = {series: Addends.total(addends) for series, addends in scores.items()}
        return whole


class SlidingWindows:
    """Adds up score rows by minute, and minutes by window (length in seconds by name).

    A window of w seconds at time t holds the answers given in (t - w, t], to the minute. Rows of another version than
    the one in force never enter a mean.
    """

    def __init__(self, spans: Mapping[str, float], versions: Mapping[str, str], confidence: float) -> None:
        self._spans = dict(spans)
        self._versions = dict(versions)
        self._minutes: dict[int, _Minute] = {}
        self._hours: dict[int, _Minute] = {}
        self._totals: dict[str, tuple[range, _Minute]] = {}
        self._intervals = hajek.IntervalCache(confidence)
        self.last_sample: dict[tuple[str, str, str], float] = {}
        self.exemplars: dict[tuple[str, str, str, str], Exemplar] = {}

    @property
    def longest(self) -> float:
        """Length of the longest window in seconds."""
        return max(self._spans.values())

    def add(self, rows: Iterable[ScoreRow]) -> None:
        """Add score rows."""
        for row in rows:
            if row.version == self._versions.get(row.judge):
                self._add(row)

    def _add(self, row: ScoreRow) -> None:
        index = int(row.at // MINUTE)
        minute = self._minutes.setdefault(index, _Minute())
        self._hours.pop(index // HOUR, None)
        self._totals.clear()
        cohort, weight = (row.route, row.judge), 1.0 / row.probability
        if row.scores is None:
            minute.unjudged[cohort] = minute.unjudged.get(cohort, 0.0) + weight
            return
        minute.judged[cohort] = minute.judged.get(cohort, 0.0) + weight
        if row.stage is not None:
            minute.stages[*cohort, str(row.stage)] += 1
        for quantity, score in row.scores.items():
            if score is not None:
                series = (quantity, *cohort)
                minute.scores[series] = minute.scores.get(series, Addends()) + Addends.one(score, row.probability)
                if is_best(quantity, score):
                    minute.best[series] = minute.best.get(series, 0.0) + weight
                if row.language is not None:
                    minute.unmeasured[series] = minute.unmeasured.get(series, 0.0) + weight
                named = (str(quantity), *cohort)
                self.last_sample[named] = max(row.at, self.last_sample.get(named, row.at))
                bucket = (*named, bucket_label(Tally.SCORE, score))
                if bucket not in self.exemplars or row.at >= self.exemplars[bucket].at:
                    self.exemplars[bucket] = Exemplar(row.key, row.trace_id, score, row.at)

    def limit_times(self, now: float) -> None:
        """Replace times after now, which come from a clock that was ahead, by now.

        Such a time would stay the one of the newest answer until it has passed, whatever is answered in between, and a
        service that answers no more would look alive.
        """
        for series, at in self.last_sample.items():
            if at > now:
                self.last_sample[series] = now
        for bucket, exemplar in self.exemplars.items():
            if exemplar.at > now:
                self.exemplars[bucket] = replace(exemplar, at=now)

    def clear(self) -> None:
        """Remove all sums."""
        self._minutes, self._hours, self._totals = {}, {}, {}

    def forget(self, now: float) -> None:
        """Drop the minutes that no window reaches."""
        oldest = int((now - self.longest) // MINUTE)
        self._minutes = {minute: sums for minute, sums in self._minutes.items() if minute >= oldest}
        # Hours of which a minute is gone are dropped, too.
        self._hours = {hour: sums for hour, sums in self._hours.items() if hour * HOUR >= oldest}

    def summary(
        self, now: float, pending: Mapping[tuple[str, str, int], float] = NO_PENDING
    ) -> tuple[tuple[EstimateRow, ...], dict[tuple[str, str, str], float]]:
        """Estimates of every series and window that has scores; and coverage by (route, judge, window).

        Draws that should have been judged by now count as unjudged while they are pending: `pending` has their weight
        by (route, judge, minute).
        """
        estimates: list[EstimateRow] = []
        coverage: dict[tuple[str, str, str], float] = {}
        for name, span in self._spans.items():
            within = _minutes(now, span)
            total = self._total(name, within)
            unjudged = self._with_pending(total.unjudged, pending, within)
            for cohort in sorted({*total.judged, *unjudged}):
                judged, missed = total.judged.get(cohort, 0.0), unjudged.get(cohort, 0.0)
                coverage[*cohort, name] = judged / (judged + missed)
            for series, addends in total.scores.items():
                quantity, route, judge = series
                missed = unjudged.get((route, judge), 0.0)
                estimate = hajek.from_interval(self._intervals.of((name, series), addends), addends, missed)
                best, unmeasured = (sums.get(series, 0.0) / addends.w for sums in (total.best, total.unmeasured))
                row = EstimateRow(quantity, route, judge, name, estimate, best=best, unmeasured=unmeasured)
                estimates.append(row)
        return tuple(estimates), coverage

    def stages(self, now: float) -> dict[tuple[str, str, str, str], int]:
        """Judged answers by (route, judge, window, stage at fault)."""
        return {
            (route, judge, name, stage): count
            for name, span in self._spans.items()
            for (route, judge, stage), count in self._total(name, _minutes(now, span)).stages.items()
        }

    def _with_pending(
        self, unjudged: Mapping[Cohort, float], pending: Mapping[tuple[str, str, int], float], within: range
    ) -> dict[Cohort, float]:
        weights = dict(unjudged)
        for (route, judge, minute), weight in pending.items():
            if minute in within and judge in self._versions:
                cohort = (route, judge)
                weights[cohort] = weights.get(cohort, 0.0) + weight
        return weights

    def _total(self, name: str, within: range) -> _Minute:
        """The sums of a window, series in order."""
        cached = self._totals.get(name)
        if cached is None or cached[0] != within:
            total = _Minute.total(list(self._parts(within)))
            total.scores = dict(sorted(total.scores.items()))
            cached = self._totals[name] = (within, total)
        return cached[1]

    def _parts(self, within: range) -> Iterator[_Minute]:
        """Whole hours where the range has them, minutes at its ends."""
        index = within.start
        while index < within.stop:
            if index % HOUR == 0 and index + HOUR <= within.stop:
                yield self._hour(index // HOUR)
                index += HOUR
                continue
            if index in self._minutes:
                yield self._minutes[index]
            index += 1

    def _hour(self, hour: int) -> _Minute:
        if hour not in self._hours:
            minutes = range(hour * HOUR, (hour + 1) * HOUR)
            self._hours[hour] = _Minute.total([self._minutes[index] for index in minutes if index in self._minutes])
        return self._hours[hour]


def _minutes(now: float, span: float) -> range:
    return range(int((now - span) // MINUTE) + 1, int(now // MINUTE) + 1)


SegmentSeries = tuple[Quantity, str, str, str, str]  # quantity, segment, value, route, judge


class SegmentWindows:
    """Adds up score rows by segment; see `SlidingWindows`, which does the same for routes."""

    def __init__(
        self, segments: Segments, spans: Mapping[str, float], versions: Mapping[str, str], confidence: float
    ) -> None:
        self._keys = frozenset(segments.values)
        self._pairs = segments.pairs
        self._spans = dict(spans)
        self._versions = dict(versions)
        self._intervals = hajek.IntervalCache(confidence)
        self._steps = {name: step_of(span) for name, span in spans.items()}
        self.last_sample: dict[tuple[str, str, str, str, str], float] = {}
        self.clear()

    def clear(self) -> None:
        """Remove all sums."""
        self._sums: dict[float, dict[int, dict[SegmentSeries, Addends]]] = {step: {} for step in self._steps.values()}
        self._totals: dict[str, tuple[range, dict[SegmentSeries, Addends]]] = {}

    def add(self, rows: Iterable[ScoreRow]) -> None:
        """Add score rows."""
        for row in rows:
            if row.segments and row.scores is not None and row.version == self._versions.get(row.judge):
                self._add(row)

    def _add(self, row: ScoreRow) -> None:
        self._totals.clear()
        parts = [sums.setdefault(int(row.at // step), {}) for step, sums in self._sums.items()]
        # A value that was removed from the configuration since the answer was judged is `other`.
        values = ((key, value) for key, value in row.segments.items() if key in self._keys)
        places = [(key, value if (key, value) in self._pairs else OTHER) for key, value in values]
        for quantity, score in (row.scores or {}).items():
            if score is None:
                continue
            one = Addends.one(score, row.probability)
            for key, value in places:
                series = (quantity, key, value, row.route, row.judge)
                for part in parts:
                    part[series] = part[series] + one if series in part else one
                named = (str(quantity), key, value, row.route, row.judge)
                self.last_sample[named] = max(row.at, self.last_sample.get(named, row.at))

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
            SegmentRow(*series, name, hajek.from_interval(self._intervals.of((name, series), addends), addends, 0.0))
            for name in self._spans
            for series, addends in self._total(name, now).items()
        )

    def _total(self, name: str, now: float) -> dict[SegmentSeries, Addends]:
        """The sums of a window, series in order."""
        step, span = self._steps[name], self._spans[name]
        begin, end = period_of(now, span)
        within = range(int(begin // step), int(end // step))
        cached = self._totals.get(name)
        if cached is None or cached[0] != within:
            sums = self._sums[step]
            parts: dict[SegmentSeries, list[Addends]] = {}
            for index in within:
                for series, addends in sums.get(index, {}).items():
                    parts.setdefault(series, []).append(addends)
            totals = {series: Addends.total(parts[series]) for series in sorted(parts)}
            cached = self._totals[name] = (within, totals)
        return cached[1]
