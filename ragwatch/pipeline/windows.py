"""Windows: sums of scores by minute, from which sliding windows are added up. Memory grows with time, not traffic.

What was worked out stays as long as it is true: sums of whole hours, sums of a window, and the interval of these sums.
The digest comes every few seconds, and most of what it asks for is as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ragwatch.core.estimate import Addends
from ragwatch.core.estimators import hajek
from ragwatch.core.scores import Quantity
from ragwatch.core.snapshot import EstimateRow, Exemplar
from ragwatch.core.tally import Tally, bucket_label
from ragwatch.ports import ScoreRow

MINUTE = 60.0
HOUR = 60  # minutes
NONE_WAITING: Mapping[tuple[str, str, int], float] = MappingProxyType({})
Cohort = tuple[str, str]  # route, judge
Series = tuple[Quantity, str, str]  # quantity, route, judge


@dataclass(slots=True)
class _Minute:
    """Sums over the answers of one minute."""

    scores: dict[Series, Addends] = field(default_factory=dict)
    judged: dict[Cohort, float] = field(default_factory=dict)  # weight
    unjudged: dict[Cohort, float] = field(default_factory=dict)  # weight

    @classmethod
    def total(cls, parts: Sequence[_Minute]) -> _Minute:
        """The sums over several, in their order."""
        scores: dict[Series, list[Addends]] = {}
        whole = cls()
        for part in parts:
            for series, addends in part.scores.items():
                scores.setdefault(series, []).append(addends)
            for mine, theirs in ((whole.judged, part.judged), (whole.unjudged, part.unjudged)):
                for cohort, weight in theirs.items():
                    mine[cohort] = mine.get(cohort, 0.0) + weight
        whole.scores = {series: Addends.total(found) for series, found in scores.items()}
        return whole


class SlidingWindows:
    """Adds score rows to minutes, and minutes to windows.

    A window of w seconds at time t holds the answers given in (t - w, t], to the minute.

    Args:
        spans: Length of each window in seconds, by its name.
        versions: Version of each judge in force: rows of another version never enter a mean.
        confidence: Two-sided level of the intervals.
    """

    def __init__(self, spans: Mapping[str, float], versions: Mapping[str, str], confidence: float) -> None:
        self._spans = dict(spans)
        self._versions = dict(versions)
        self._confidence = confidence
        self._minutes: dict[int, _Minute] = {}
        self._hours: dict[int, _Minute] = {}
        self._totals: dict[str, tuple[range, _Minute]] = {}
        self._intervals: dict[tuple[str, Series], tuple[Addends, hajek.Interval]] = {}
        self.last_sample: dict[tuple[str, str, str], float] = {}
        self.exemplars: dict[tuple[str, str, str, str], Exemplar] = {}

    @property
    def longest(self) -> float:
        """Seconds of the longest window."""
        return max(self._spans.values())

    def add(self, rows: Iterable[ScoreRow]) -> None:
        """Take in score rows."""
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
        for quantity, score in row.scores.items():
            if score is not None:
                series = (quantity, *cohort)
                minute.scores[series] = minute.scores.get(series, Addends()) + Addends.one(score, row.probability)
                self._remember(row, quantity, score)

    def _remember(self, row: ScoreRow, quantity: Quantity, score: float) -> None:
        series = (str(quantity), row.route, row.judge)
        self.last_sample[series] = max(row.at, self.last_sample.get(series, row.at))
        bucket = (*series, bucket_label(Tally.SCORE, score))
        if bucket not in self.exemplars or row.at >= self.exemplars[bucket].at:
            self.exemplars[bucket] = Exemplar(row.key, row.trace_id, score, row.at)

    def set_back(self, now: float) -> None:
        """Nothing was answered later than now, whatever a clock that was ahead has told.

        A time that has not come yet would stand as that of the newest answer until it comes, over all that come in
        between, and a service that has fallen silent would look alive. Such an answer is as new as its digest.
        """
        for series in [each for each, at in self.last_sample.items() if at > now]:
            self.last_sample[series] = now
        for bucket, found in [(each, found) for each, found in self.exemplars.items() if found.at > now]:
            self.exemplars[bucket] = replace(found, at=now)

    def clear(self) -> None:
        """Begin with nothing."""
        self._minutes, self._hours, self._totals = {}, {}, {}

    def forget(self, now: float) -> None:
        """Drop the minutes that no window reaches."""
        oldest = int((now - self.longest) // MINUTE)
        for minute in [each for each in self._minutes if each < oldest]:
            del self._minutes[minute]
        for hour in [each for each in self._hours if each * HOUR < oldest]:  # those of which a minute is gone, too
            del self._hours[hour]

    def summary(
        self, now: float, waiting: Mapping[tuple[str, str, int], float] = NONE_WAITING
    ) -> tuple[tuple[EstimateRow, ...], dict[tuple[str, str, str], float]]:
        """Estimates of every series and window with something to say; and coverage by (route, judge, window).

        `waiting` is the weight of draws that ought to have been judged by now, by (route, judge, minute). They count
        as unjudged for as long as they wait.
        """
        estimates: list[EstimateRow] = []
        coverage: dict[tuple[str, str, str], float] = {}
        for name, span in self._spans.items():
            within = _minutes(now, span)
            total = self._total(name, within)
            unjudged = self._with_waiting(total.unjudged, waiting, within)
            for cohort in sorted({*total.judged, *unjudged}):
                judged, missed = total.judged.get(cohort, 0.0), unjudged.get(cohort, 0.0)
                coverage[*cohort, name] = judged / (judged + missed)
            for series, addends in total.scores.items():
                quantity, route, judge = series
                missed = unjudged.get((route, judge), 0.0)
                found = hajek.around(self._interval(name, series, addends), addends, missed)
                estimates.append(EstimateRow(quantity, route, judge, name, found))
        return tuple(estimates), coverage

    def _with_waiting(
        self, unjudged: Mapping[Cohort, float], waiting: Mapping[tuple[str, str, int], float], within: range
    ) -> dict[Cohort, float]:
        found = dict(unjudged)
        for (route, judge, minute), weight in waiting.items():
            if minute in within and judge in self._versions:
                cohort = (route, judge)
                found[cohort] = found.get(cohort, 0.0) + weight
        return found

    def _interval(self, name: str, series: Series, addends: Addends) -> hajek.Interval:
        known = self._intervals.get((name, series))
        if known is None or known[0] != addends:
            known = self._intervals[name, series] = (addends, hajek.interval(addends, self._confidence))
        return known[1]

    def _total(self, name: str, within: range) -> _Minute:
        """The sums of a window, by series in order."""
        known = self._totals.get(name)
        if known is None or known[0] != within:
            total = _Minute.total(list(self._parts(within)))
            total.scores = dict(sorted(total.scores.items()))
            known = self._totals[name] = (within, total)
        return known[1]

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
            self._hours[hour] = _Minute.total([self._minutes[each] for each in minutes if each in self._minutes])
        return self._hours[hour]


def _minutes(now: float, span: float) -> range:
    return range(int((now - span) // MINUTE) + 1, int(now // MINUTE) + 1)
