"""Windows: sums of scores by minute, from which sliding windows are added up. Memory grows with time, not traffic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ragwatch.core.estimate import Addends
from ragwatch.core.estimators import hajek
from ragwatch.core.scores import Quantity
from ragwatch.core.snapshot import EstimateRow, Exemplar
from ragwatch.core.tally import Tally, cell
from ragwatch.ports import ScoreRow

MINUTE = 60.0
NONE_WAITING: Mapping[tuple[str, str, int], float] = MappingProxyType({})
Cohort = tuple[str, str]  # route, judge
Series = tuple[Quantity, str, str]  # quantity, route, judge


@dataclass(slots=True)
class _Minute:
    """Sums over the answers of one minute."""

    scores: dict[Series, Addends] = field(default_factory=dict)
    judged: dict[Cohort, float] = field(default_factory=dict)  # weight
    unjudged: dict[Cohort, float] = field(default_factory=dict)  # weight


class Windows:
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
        minute = self._minutes.setdefault(int(row.at // MINUTE), _Minute())
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
        bucket = (*series, cell(Tally.SCORE, score))
        if bucket not in self.exemplars or row.at >= self.exemplars[bucket].at:
            self.exemplars[bucket] = Exemplar(row.key, row.trace_id, score, row.at)

    def forget(self, now: float) -> None:
        """Drop the minutes that no window reaches."""
        oldest = int((now - self.longest) // MINUTE)
        for minute in [each for each in self._minutes if each < oldest]:
            del self._minutes[minute]

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
            total = self._total(now, span)
            self._add_waiting(total, waiting, now, span)
            for cohort in sorted({*total.judged, *total.unjudged}):
                judged, missed = total.judged.get(cohort, 0.0), total.unjudged.get(cohort, 0.0)
                coverage[*cohort, name] = judged / (judged + missed)
            for (quantity, route, judge), addends in sorted(total.scores.items()):
                missed = total.unjudged.get((route, judge), 0.0)
                found = hajek.estimate(addends, unjudged_weight=missed, confidence=self._confidence)
                if found is not None:
                    estimates.append(EstimateRow(quantity, route, judge, name, found))
        return tuple(estimates), coverage

    def _add_waiting(
        self, total: _Minute, waiting: Mapping[tuple[str, str, int], float], now: float, span: float
    ) -> None:
        within = _minutes(now, span)
        for (route, judge, minute), weight in waiting.items():
            if minute in within and judge in self._versions:
                cohort = (route, judge)
                total.unjudged[cohort] = total.unjudged.get(cohort, 0.0) + weight

    def _total(self, now: float, span: float) -> _Minute:
        within = _minutes(now, span)
        total = _Minute()
        for index, minute in self._minutes.items():
            if index not in within:
                continue
            for series, addends in minute.scores.items():
                total.scores[series] = total.scores.get(series, Addends()) + addends
            for mine, theirs in ((total.judged, minute.judged), (total.unjudged, minute.unjudged)):
                for cohort, weight in theirs.items():
                    mine[cohort] = mine.get(cohort, 0.0) + weight
        return total


def _minutes(now: float, span: float) -> range:
    return range(int((now - span) // MINUTE) + 1, int(now // MINUTE) + 1)
