"""Levels of every window: what the judges say, in people's terms, with their own error in the interval.

A level rests on what is known of the judge's kind (`LabelRules.families`) and on all fresh labels of the route: those
of answers in the window count for its share of bad answers and for the judge's error there, the others for the error
alone. Where no family is known, labels give a level to yes or no only. With `MANY_LABELS` labels in a window, or of
half its answers, PPI++ gives the level. Families are of English answers: none counts where more than `MOST_UNMEASURED`
of the answers are in a language in which the judge was not measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from ragwatch.model.estimate import Estimate
from ragwatch.model.quantities import LOW_IS_GOOD
from ragwatch.pipeline.labels.verdicts import DAY, AnswerLabel, LabelRules, annotators_of
from ragwatch.ports import Store
from ragwatch.statistics.estimators.corrected import WithoutAnnotator, shares_of, widened
from ragwatch.statistics.estimators.level import MOST_UNMEASURED, LabelCounts, Level, Rates, ageing, is_best, level
from ragwatch.statistics.snapshot import EstimateRow, Place

MANY_LABELS = 200
PARTS = 400  # of the share of answers to which a judge says yes
MAX_ANNOTATORS = 10  # left out one by one
CHANGES = frozenset({"release", "index", "drift"})
"""Kinds of events after which labels count half: the service is another one."""


class _Labelled(NamedTuple):
    """A label: people's score (1 is good), whether the judge says yes, its probability, what ageing leaves of it."""

    good: float
    yes: bool
    probability: float
    weight: float

    def row(self) -> tuple[float, bool, float]:
        return self.good, self.yes, self.probability


@dataclass(frozen=True, slots=True)
class _Counted:
    """Labels of a place: of answers in its window, and of others."""

    inside: LabelCounts
    elsewhere: LabelCounts
    number: int  # all of them
    effective: float  # what ageing leaves of them


class Levels:
    """Computes levels of windows (seconds by name); the costly part is cached until labels or figures change."""

    def __init__(self, rules: LabelRules, store: Store, spans: Mapping[str, float]) -> None:
        self._rules = rules
        self._store = store
        self._spans = spans
        self._left_out: dict[Place, tuple[object, Sequence[tuple[str, int, _Counted]]]] = {}

    def rows(
        self,
        answers: Sequence[AnswerLabel],
        estimates: Sequence[EstimateRow],
        now: float,
        corrected: Mapping[Place, EstimateRow],
    ) -> Iterator[EstimateRow]:
        """Yield the level of each estimate that has one, and what `corrected` (by PPI++) holds instead of others.

        Where the judge's error is known, estimates by PPI++ from few labels are left out.
        """
        changes = [event.at for event in self._store.events(now - self._rules.fresh) if event.kind in CHANGES]
        today = (now // DAY + 0.5) * DAY  # ages are of the day, so that a level changes with answers and labels alone
        answered = {row.place: row.estimate.n for row in estimates}
        unmeasured = {row.place: row.unmeasured for row in estimates}
        by_ppi = {
            place: row
            for place, row in corrected.items()
            if row.labels >= min(MANY_LABELS, answered.get(place, MANY_LABELS * 2) / 2)
            or not self._families(row, unmeasured.get(place, 0.0))
        }
        on_routes: dict[str, list[AnswerLabel]] = {}
        for answer in answers:
            on_routes.setdefault(answer.verdicts.route, []).append(answer)
        yield from by_ppi.values()
        for row in estimates:
            if row.best is None or row.place in by_ppi:
                continue
            since = now - self._spans.get(row.window, 0.0)
            made = self._row(row, on_routes.get(row.route, []), _Time(since, today, tuple(changes)))
            if made is not None:
                yield made

    def _row(self, row: EstimateRow, answers: Sequence[AnswerLabel], time: _Time) -> EstimateRow | None:
        families = self._families(row, row.unmeasured)
        if not families and (len(answers) < self._rules.minimum or not row.quantity.row.binary):
            return None
        counted = self._counted(answers, row, time)
        if not families and counted.number < self._rules.minimum:
            return None
        return self._level(row, families, answers, counted, time)

    def _families(self, row: EstimateRow, unmeasured: float) -> tuple[Rates, ...]:
        """What is known of the judge's error on these answers, of which a share is in unmeasured languages."""
        known = self._rules.families.get((row.judge, row.quantity), ())
        return known if unmeasured <= MOST_UNMEASURED else ()

    def _level(
        self,
        row: EstimateRow,
        families: Sequence[Rates],
        answers: Sequence[AnswerLabel],
        counted: _Counted,
        time: _Time,
    ) -> EstimateRow:
        share = _share(row, families, counted, self._rules.confidence)
        made = replace(
            row,
            estimate=_estimate(row, share),
            corrected=True,
            best=None,
            labels=int(counted.effective + 0.5),
            labels_given=counted.number,
        )
        if not counted.number:
            return made
        without = []
        for name, number, left in self._without_each(row, answers, counted, time):
            other = _estimate(row, _share(row, families, left, self._rules.confidence)) if left.number else None
            without.append(WithoutAnnotator(name, number, other))
        shares = shares_of(made.estimate, len(without), without)
        by_judge = (row.estimate.low, row.estimate.high)
        estimate = widened(made.estimate, shares, by_judge, self._rules.trusted)
        return replace(made, estimate=estimate, annotators=shares)

    def _without_each(
        self, row: EstimateRow, answers: Sequence[AnswerLabel], counted: _Counted, time: _Time
    ) -> Sequence[tuple[str, int, _Counted]]:
        """Annotators, how many answers each has labelled, and the labels without theirs; counted when labels change."""
        inputs = (counted, tuple((label.annotator, label.at) for answer in answers for label in answer.labels))
        known = self._left_out.get(row.place)
        if known is None or known[0] != inputs:
            every = list(annotators_of(answers, row.quantity).items())[:MAX_ANNOTATORS]
            known = self._left_out[row.place] = (
                inputs,
                [
                    (name, len(theirs), self._counted([answer.without(name) for answer in answers], row, time))
                    for name, theirs in every
                ],
            )
        return known[1]

    def _counted(self, answers: Iterable[AnswerLabel], row: EstimateRow, time: _Time) -> _Counted:
        inside: list[_Labelled] = []
        elsewhere: list[_Labelled] = []
        for answer in answers:
            score = answer.verdicts.scores.get(row.judge, {}).get(row.quantity)
            people = answer.scores.get(row.quantity)
            if score is None or people is None or answer.probability is None:
                continue
            at = answer.verdicts.at
            labelled = _Labelled(
                1.0 - people if row.quantity in LOW_IS_GOOD else people,
                is_best(row.quantity, score),
                answer.probability,
                ageing(at, time.today, time.changes),
            )
            (inside if at >= time.since else elsewhere).append(labelled)
        every = [*inside, *elsewhere]
        return _Counted(
            LabelCounts.of(one.row() for one in inside).times(_mean_weight(inside)),
            LabelCounts.apart(one.row() for one in elsewhere).times(_mean_weight(elsewhere)),
            len(every),
            sum(one.weight for one in every),
        )


class _Time(NamedTuple):
    """Start of a window, the day of today, and times of changes of the service."""

    since: float
    today: float
    changes: tuple[float, ...]


def _mean_weight(labels: Sequence[_Labelled]) -> float:
    return sum(one.weight for one in labels) / len(labels) if labels else 0.0


def _share(row: EstimateRow, families: Sequence[Rates], counted: _Counted, confidence: float) -> Level:
    """The level of a share of good answers. Share and size are rounded (to .0025, and two digits)."""
    parts = round((row.best or 0.0) * PARTS)
    size = float(f"{row.estimate.n_eff:.2g}")
    yes = size * parts / PARTS
    return _cached(tuple(families), yes, size - yes, counted, confidence)


@lru_cache(maxsize=1024)
def _cached(families: tuple[Rates, ...], yes: float, no: float, counted: _Counted, confidence: float) -> Level:
    """Compute a level, cached: most digests change few answers."""
    count = int(counted.effective + 0.5)
    return level(families, yes, no, counted.inside, count=count, confidence=confidence, elsewhere=counted.elsewhere)


def _estimate(row: EstimateRow, share: Level) -> Estimate:
    """A level as an estimate; of a quantity that is better when low, the share of bad answers."""
    level_of = share.complement if row.quantity in LOW_IS_GOOD else share
    coverage = row.estimate.coverage
    bound = level_of.value * coverage
    return replace(
        row.estimate,
        value=level_of.value,
        low=level_of.low,
        high=level_of.high,
        bound_low=bound,
        bound_high=min(1.0, bound + 1.0 - coverage),
        interval="level",
    )
