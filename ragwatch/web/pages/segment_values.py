"""The figures of the values of a segment: level and change, each beside what the whole route does.

Both are of the stored verdicts: the answers of a window, and those of the same length before. A value with little
traffic is drawn toward the mean of its route, with an interval of its own (`statistics.estimators.shrinkage`).
Intervals are the largest part of what a page costs: they are computed for the values that it shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from urllib.parse import urlencode

from ragwatch.model.estimate import Addends
from ragwatch.model.quantities import LOW_IS_GOOD
from ragwatch.model.sample import OTHER
from ragwatch.ports import SegmentQuery, SegmentSums
from ragwatch.statistics.compare import Conclusion
from ragwatch.statistics.estimators.shrinkage import Noisy, drawn, noisy, score_variance, shrunk, variance_between
from ragwatch.statistics.segments import NO_STEP, STEP, StepMeasure
from ragwatch.statistics.trends import difference, estimate_of
from ragwatch.web.replies.drift_replies import SegmentFigure, SegmentValue
from ragwatch.web.samples import METADATA_PREFIX

LITTLE = 50.0
"""Effective number of answers below which a value is drawn toward the mean of its route."""
SIDE = 5  # steps of the trend before the window, and within


class Sort(StrEnum):
    """Order of the values: the worst change or level first, the most failing or answered, or by name."""

    CHANGE = "change"
    LEVEL = "level"
    FAILING = "failing"
    ANSWERS = "answers"
    VALUE = "value"


@dataclass(slots=True)
class _Value:
    """Sums of a value: of the window, of the time before, and of each step; counts are of the window.

    `level` and `moved` are what its own answers say of the mean and of its change; None without answers.
    """

    value: str
    now: Addends = field(default_factory=Addends)
    before: Addends = field(default_factory=Addends)
    steps: dict[int, Addends] = field(default_factory=dict)
    level: Noisy | None = None
    moved: Noisy | None = None
    answers: int = 0
    weight: float = 0.0
    staged: float = 0.0
    failing: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)

    def add(self, row: SegmentSums) -> None:
        """Count what belongs to the window."""
        self.steps[row.step] = row.scores
        if row.step >= SIDE:
            self.answers += row.answers
            self.weight += row.weight
            self.staged += row.staged
            self.failing += row.failing
            if row.faults:
                self.faults.update(row.faults)

    def sum_up(self) -> None:
        """Add the steps up, once all are there."""
        self.before, self.now = (
            Addends.total([self.steps[step] for step in range(first, last) if step in self.steps])
            for first, last in pairwise((0, SIDE, 2 * SIDE))
        )

    @property
    def share(self) -> float | None:
        """Share of the answers with a stage at fault."""
        return self.failing / self.staged if self.staged else None


@dataclass(frozen=True, slots=True)
class _Common:
    """What values with little traffic are drawn toward; `between` is None where they stay as they are."""

    centre: float
    between: float | None

    @classmethod
    def of(cls, groups: Iterable[Noisy], centre: float) -> _Common:
        known = list(groups)
        return cls(centre, variance_between(known, centre) if all(one.variance > 0.0 for one in known) else None)

    def mean(self, group: Noisy | None, *, little: bool) -> float | None:
        """The mean to show of a group, for the order of the values."""
        if group is None or self.between is None or not little:
            return None if group is None else group.value
        return drawn(group, self.centre, self.between)


class Values:
    """The values of a segment, in no order, and their figures; `low_is_good` is None where neither is."""

    def __init__(
        self, rows: Iterable[SegmentSums], query: SegmentQuery, threshold: float | None, confidence: float
    ) -> None:
        by_value: dict[str | None, _Value] = {}
        for row in rows:
            by_value.setdefault(row.value, _Value(row.value or "")).add(row)
        for one in by_value.values():
            one.sum_up()
        self.values = [one for name, one in by_value.items() if name is not None]
        self.threshold = threshold
        is_used = query.key == STEP and query.quantity == StepMeasure.USED
        lower = query.quantity in (*LOW_IS_GOOD, StepMeasure.IGNORED)
        self.low_is_good = None if is_used else lower
        self._query, self._confidence = query, confidence
        self._now = Addends.total([one.now for one in by_value.values()])
        before_all = Addends.total([one.before for one in by_value.values()])
        self._before = _mean(before_all) if before_all.n else None
        least_now, least_before = (score_variance(whole) if whole.n else 0.0 for whole in (self._now, before_all))
        for one in self.values:
            one.level = noisy(one.now, least_now) if one.now.n else None
            if one.level is not None and one.before.n:
                before = noisy(one.before, least_before)
                one.moved = Noisy(one.level.value - before.value, one.level.variance + before.variance)
        levels = [one.level for one in self.values if one.level is not None]
        self._level = _Common.of(levels, _mean(self._now))
        changes = [one.moved for one in self.values if one.moved is not None]
        self._change = _Common.of(changes, _mean(self._now) - _mean(before_all))

    def whole_figure(self) -> SegmentFigure | None:
        """The mean of all answers of the route."""
        return self._figure(self._now)

    def _figure(self, sums: Addends) -> SegmentFigure | None:
        own = estimate_of(sums, self._confidence)
        return None if own is None else {"value": own.value, "low": own.low, "high": own.high, "own": None}

    def _change_of(self, one: _Value) -> float | None:
        """The change, for the order; of a value that is new, such as a release, against all of the route before."""
        if one.moved is None and one.level is not None and self._before is not None:
            return one.level.value - self._before
        return self._change.mean(one.moved, little=_is_little(one.now, one.before))

    def sorted(self, sort: Sort) -> list[_Value]:
        """The values in an order; those of which it is not known come last."""
        numbers: Mapping[Sort, Callable[[_Value], float | None]] = {
            Sort.CHANGE: self._change_of,
            Sort.LEVEL: lambda one: self._level.mean(one.level, little=_is_little(one.now)),
            Sort.FAILING: lambda one: one.share,
            Sort.ANSWERS: lambda one: one.weight,
        }
        if sort is Sort.VALUE:
            return sorted(self.values, key=lambda one: one.value)

        def rank(one: _Value) -> tuple[bool, float, str]:
            number = numbers[sort](one)
            if number is None:
                return True, 0.0, one.value
            if sort is Sort.CHANGE and self.low_is_good is None:
                number = abs(number)
            rises = sort in (Sort.FAILING, Sort.ANSWERS) or self.low_is_good is not False
            return False, -number if rises else number, one.value

        return sorted(self.values, key=rank)

    def line(self, one: _Value, *, alarmed: Collection[str]) -> SegmentValue:
        """A value as JSON values."""
        level, (change, moved) = self._level_figure(one), self._change_figure(one)
        stage, number = max(one.faults.items(), key=lambda fault: (fault[1], fault[0]), default=(None, 0))
        limit, since, length = self.threshold, self._query.since, self._query.until - self._query.since
        steps = [(since + step * length / (2 * SIDE), one.steps.get(step, Addends())) for step in range(2 * SIDE)]
        bad = False
        if level is not None and limit is not None:
            bad = level["low"] > limit if self.low_is_good else level["high"] < limit
        return {
            "value": one.value,
            "level": level,
            "bad": bad,
            "change": change,
            "moved": moved,
            "n": one.now.n,
            "n_before": one.before.n,
            "judged": one.answers,
            "answers": one.weight,
            "failing": one.share,
            "failed": sum(one.faults.values()),
            "stage": stage if number else None,
            "of_stage": number,
            "alarm": one.value in alarmed,
            "samples": self._samples(one.value),
            "points": [{"start": start, "mean": _mean(sums) if sums.n else None, "n": sums.n} for start, sums in steps],
        }

    def _level_figure(self, one: _Value) -> SegmentFigure | None:
        between = self._level.between if _is_little(one.now) else None
        if between is None or one.level is None:
            return self._figure(one.now)
        figures = shrunk(one.level, self._level.centre, between, self._confidence)
        return _clipped(*figures, own=one.level.value, least=0.0)

    def _change_figure(self, one: _Value) -> tuple[SegmentFigure | None, str | None]:
        """The change, and whether it is worse or better beyond chance."""
        compared = difference(one.before, one.now, self._confidence, low_is_good=bool(self.low_is_good))
        if compared is None or one.moved is None:
            return None, None
        between = self._change.between if _is_little(one.now, one.before) else None
        if between is None:
            conclusion = compared.conclusion
            change: SegmentFigure = {**compared.change._asdict(), "own": None}  # type: ignore[typeddict-item]
        else:
            figures = shrunk(one.moved, self._change.centre, between, self._confidence)
            change = _clipped(*figures, own=compared.change.value, least=-1.0)
            rose = (change["value"] > 0.0) is not bool(self.low_is_good)
            clear = change["low"] > 0.0 or change["high"] < 0.0
            conclusion = Conclusion.NOISE if not clear else Conclusion.BETTER if rose else Conclusion.WORSE
        is_news = conclusion is not Conclusion.NOISE and self.low_is_good is not None
        return change, str(conclusion) if is_news else None

    def _samples(self, value: str) -> str | None:
        """Address of the answers of a value, the worst first; None where no search finds them."""
        query = self._query
        if query.key == STEP or value in (OTHER, NO_STEP):
            return None
        names = {"route": query.route, "judge": query.judge, "quantity": query.quantity, "sort": "worst"}
        return f"samples?{urlencode({**names, METADATA_PREFIX + query.key: value}, errors='replace')}"


def _is_little(*sums: Addends) -> bool:
    return any(not one.n or one.w * one.w < LITTLE * one.w2 for one in sums)


def _mean(sums: Addends) -> float:
    return sums.wx / sums.w if sums.n else 0.0


def _clipped(value: float, low: float, high: float, *, own: float, least: float) -> SegmentFigure:
    value, low, high = (min(1.0, max(least, one)) for one in (value, low, high))
    return {"value": value, "low": low, "high": high, "own": own}
