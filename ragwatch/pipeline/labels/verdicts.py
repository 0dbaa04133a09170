"""Verdicts of the judges in force on one answer, the labels by people beside them, and their sums for PPI++.

Sums are by hour, route and quantity, those of `statistics.estimators.ppi`. One judge reads every draw, a second one a
part of these: when it has read an answer, its row of one tier is subtracted and a row of two tiers is added. Memory
grows with time, not with traffic, except for the last rows of the first judge: they are kept until the second one may
have read them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from types import MappingProxyType

from ragwatch.model.quantities import Criterion, Quantity
from ragwatch.model.sample import SampleRecord
from ragwatch.ports import Query, ScoreRow, Store
from ragwatch.statistics.estimators.corrected import MIN_LABELS
from ragwatch.statistics.estimators.level import Rates
from ragwatch.statistics.estimators.ppi import PpiSums
from ragwatch.statistics.labels.calibration import LabelledScore
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.verdict_line import VerdictRecord

MAX_JUDGES = 50
DAY = 86400.0
Scores = Mapping[Quantity, float | None]


@dataclass(frozen=True, slots=True)
class LabelRules:
    """Which judges labels are compared with, and how."""

    judges: Mapping[str, str]  # version in force of each judge, by name
    chain: tuple[str, ...]  # the judge that reads every draw, and the next one of its cascade, if any
    second: frozenset[Quantity] = frozenset(Quantity)  # quantities of the second judge
    # whether the second judge corrects the first one, for an estimate in the terms of the second
    reference: bool = False
    fresh: float = 30 * DAY  # seconds for which a label counts
    minimum: int = MIN_LABELS  # labels below which nothing is estimated
    # share of the samples for people that is selected by how unsure the judges are, in [0, 1)
    share_unsure: float = 0.5
    double: float = 0.1  # share of these samples that a second person labels, too
    confidence: float = 0.95  # two-sided level of the intervals
    leave_out: frozenset[str] = frozenset()  # annotators whose labels do not count
    trusted: frozenset[str] = frozenset()  # annotators because of whom no interval is widened
    per_hour: int = 200  # labels that an authenticated annotator may send per hour
    criteria: tuple[Criterion, ...] = ()  # the configured criteria, which people can answer too
    # what is known of the error of a judge, by its name and quantity: its rates on labelled families
    families: Mapping[tuple[str, Quantity], tuple[Rates, ...]] = field(default_factory=dict)

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """All quantities: those of ragwatch, and the criteria."""
        return (*Quantity, *(criterion.quantity for criterion in self.criteria))

    def counts(self, label: Label) -> bool:
        """Whether a label counts: it is not taken back, and its annotator is not left out."""
        return label.revoked is None and label.annotator not in self.leave_out

    def readers(self, quantity: Quantity) -> tuple[str, ...]:
        """Judges of a quantity, each of which reads a part of what the one before it has read."""
        return self.chain if quantity in self.second else self.chain[:1]


@dataclass(frozen=True, slots=True)
class AnswerVerdicts:
    """One answer, with the verdicts of the judges in force."""

    key: str  # identity in the store
    route: str
    at: float  # when it was answered, in seconds since the epoch
    records: Mapping[str, VerdictRecord]  # verdict by judge in force that has judged it
    scores: Mapping[str, Scores]  # scores by judge
    probabilities: Mapping[str, float]  # inclusion probability by judge
    sample: SampleRecord | None = None  # the sample; None once retention has deleted it


def answer_verdicts(store: Store, judges: Mapping[str, str], key: str, *, texts: bool = True) -> AnswerVerdicts | None:
    """Read the verdicts on an answer, and its texts; None where no judge (by name: its version) has judged it."""
    stored = [
        row
        for row in store.find(Query(key=key, limit=MAX_JUDGES, texts=texts))
        if row.verdict.judged and judges.get(row.verdict.judge) == row.verdict.judge_version
    ]
    if not stored:
        return None
    records = {row.verdict.judge: row.verdict for row in stored}
    first = stored[0].verdict
    return AnswerVerdicts(
        key=key,
        route=first.route,
        at=first.at,
        records=MappingProxyType(records),
        scores={name: record.scores for name, record in records.items()},
        probabilities={name: record.probability for name, record in records.items()},
        sample=stored[0].sample,
    )


@dataclass(frozen=True, slots=True)
class AnswerLabel:
    """The labels on one answer: mean scores, and the probability with which it was selected for labelling."""

    verdicts: AnswerVerdicts
    scores: Mapping[Quantity, float]
    probability: float | None
    labels: tuple[Label, ...] = ()

    def without(self, annotator: str) -> AnswerLabel:
        """The labels of the others, as if this annotator had labelled nothing."""
        others = [
            replace(label, probability=label.without.get(annotator, label.probability))
            for label in self.labels
            if annotator not in (label.annotator, label.owner)
        ]
        return answer_label(self.verdicts, others)


def answer_label(verdicts: AnswerVerdicts, labels: Sequence[Label]) -> AnswerLabel:
    """Combine the labels on one answer: mean scores over the people to whom it was given, or else who labelled it."""
    known = [label for label in labels if label.probability is not None]
    counted = known or labels
    quantities = {quantity for label in counted for quantity in label.scores}
    scores = {
        quantity: fmean(label.scores[quantity] for label in counted if quantity in label.scores)
        for quantity in quantities
    }
    return AnswerLabel(verdicts, scores, known[-1].probability if known else None, tuple(counted))


def annotators_of(answers: Iterable[AnswerLabel], quantity: Quantity) -> dict[str, list[AnswerLabel]]:
    """The answers that each annotator has scored, by annotator, most answers first."""
    by_annotator: dict[str, list[AnswerLabel]] = {}
    for answer in answers:
        for label in answer.labels:
            if quantity in label.scores:
                by_annotator.setdefault(label.annotator, []).append(answer)
    return dict(sorted(by_annotator.items(), key=lambda item: (-len(item[1]), item[0])))


def pairs_of(answers: Sequence[AnswerLabel], judge: str, quantity: Quantity) -> list[LabelledScore]:
    """Answers that both a judge and people have scored."""
    pairs = []
    for answer in answers:
        score = answer.verdicts.scores.get(judge, {}).get(quantity)
        if score is not None and quantity in answer.scores:
            pairs.append(LabelledScore(answer.verdicts.key, score, answer.scores[quantity], answer.probability))
    return pairs


HOUR = 3600.0
MAX_KEPT_ROWS = 20_000
MOVING_HOURS = 2  # at the end of a span, to which answers are still added; earlier hours rarely change
Cell = tuple[int, str, Quantity]  # hour, route, quantity
Place = tuple[str, Quantity]  # route, quantity
Row = tuple[tuple[float, ...], tuple[float, ...]]  # scores and conditional probabilities, by tier


@dataclass(slots=True)
class _PendingRows:
    """Rows of one call, to be added to or subtracted from the sums at once."""

    added: dict[Cell, list[Row]] = field(default_factory=lambda: defaultdict(list))
    subtracted: dict[Cell, list[Row]] = field(default_factory=lambda: defaultdict(list))


class LabelSums:
    """Adds up score rows by hour, and hours by span.

    `look_up` reads the verdicts on an answer that was judged long ago.
    """

    def __init__(self, rules: LabelRules, look_up: Callable[[str], AnswerVerdicts | None]) -> None:
        self._rules = rules
        self._look_up = look_up
        self._cells: dict[Place, dict[int, PpiSums]] = {}  # by hour
        self._until = 0
        self._settled: dict[int, dict[Place, PpiSums | None]] = {}  # from an hour to the moving hours before `until`
        self._oldest: int | None = None
        self._missed: dict[tuple[int, str], float] = {}
        self._first: dict[str, ScoreRow] = {}
        self._second: dict[str, ScoreRow] = {}
        self._rows_dropped = False

    def tiers(self, quantity: Quantity) -> int:
        """Number of tiers of a quantity: its judges, and people."""
        return len(self._rules.readers(quantity)) + 1

    def add(self, rows: Iterable[ScoreRow]) -> None:
        """Add score rows; those of other versions than the ones in force are skipped."""
        pending = _PendingRows()
        for row in rows:
            if row.version != self._rules.judges.get(row.judge):
                continue
            if row.judge == self._rules.chain[0]:
                self._add_first(row, pending)
            elif row.judge in self._rules.chain and row.scores is not None:
                self._add_second(row, pending)
        for cell in {*pending.added, *pending.subtracted}:
            hour, place, tiers = cell[0], cell[1:], self.tiers(cell[2])
            cells = self._cells.setdefault(place, {})
            now = cells.get(hour, PpiSums.none(tiers)) + PpiSums.of(tiers, pending.added.get(cell, ()))
            cells[hour] = less(now, PpiSums.of(tiers, pending.subtracted.get(cell, ())))
            if hour < self._until - MOVING_HOURS:
                for settled in self._settled.values():
                    settled.pop(place, None)

    def _add_first(self, row: ScoreRow, pending: _PendingRows) -> None:
        place = (int(row.at // HOUR), row.route)
        if row.scores is None:
            self._missed[place] = self._missed.get(place, 0.0) + 1.0 / row.probability
            return
        for quantity, score in row.scores.items():
            if score is not None:
                pending.added[*place, quantity].append(((score,), (row.probability,)))
        if len(self._rules.chain) > 1:
            early = self._second.pop(row.key, None)
            if early is not None:
                self._add_tier(row, early, pending)
            else:
                self._rows_dropped = _keep(self._first, row) or self._rows_dropped

    def _add_second(self, row: ScoreRow, pending: _PendingRows) -> None:
        first = self._first.pop(row.key, None) or self._stored(row)
        if first is None:
            _keep(self._second, row)
        else:
            self._add_tier(first, row, pending)

    def _stored(self, row: ScoreRow) -> ScoreRow | None:
        """An early row of the first judge from the store; None where it has none yet, or it follows in this call."""
        judge = self._rules.chain[0]
        verdicts = self._look_up(row.key) if self._rows_dropped else None
        if verdicts is None or judge not in verdicts.scores:
            return None
        return ScoreRow(
            seq=0,
            key=row.key,
            at=verdicts.at,
            route=verdicts.route,
            judge=judge,
            version=self._rules.judges[judge],
            probability=verdicts.probabilities[judge],
            scores=verdicts.scores[judge],
            reason=None,
            trace_id=None,
        )

    def _add_tier(self, first: ScoreRow, second: ScoreRow, pending: _PendingRows) -> None:
        for quantity in self._rules.second:
            score, next_score = (first.scores or {}).get(quantity), (second.scores or {}).get(quantity)
            if score is not None and next_score is not None:
                cell = (int(first.at // HOUR), first.route, quantity)
                pending.subtracted[cell].append(((score,), (first.probability,)))
                onward = min(1.0, second.probability / first.probability)
                pending.added[cell].append(((score, next_score), (first.probability, onward)))

    def forget(self, now: float) -> None:
        """Drop the hours that no label reaches."""
        oldest = int((now - self._rules.fresh) // HOUR)
        if oldest == self._oldest:
            return
        self._oldest = oldest
        self._settled.clear()
        for cells in self._cells.values():
            for hour in [hour for hour in cells if hour < oldest]:
                del cells[hour]
        self._missed = {place: weight for place, weight in self._missed.items() if place[0] >= oldest}

    def totals(self, hours: range) -> dict[Place, PpiSums]:
        """Sums over some hours, by route and quantity.

        Hours before the moving ones are added up once an hour, and again after a late answer.
        """
        if hours.stop != self._until:
            self._until, self._settled = hours.stop, {}
        moving = range(max(hours.start, hours.stop - MOVING_HOURS), hours.stop)
        settled = self._settled.setdefault(hours.start, {})
        totals = {}
        for place, cells in self._cells.items():
            if place not in settled:
                settled[place] = _total(cells, range(hours.start, moving.start))
            total = _total(cells, moving, settled[place])
            if total is not None:
                totals[place] = total
        return totals

    def missed(self, hours: range) -> dict[str, float]:
        """Weight of the draws that the first judge could not judge, over some hours, by route."""
        weights: dict[str, float] = {}
        for (hour, route), weight in self._missed.items():
            if hour in hours:
                weights[route] = weights.get(route, 0.0) + weight
        return weights


def hours(now: float, span: float) -> range:
    """The hours of a span that ends now."""
    return range(int((now - span) // HOUR) + 1, int(now // HOUR) + 1)


def _total(cells: Mapping[int, PpiSums], hours: range, before: PpiSums | None = None) -> PpiSums | None:
    """Sums of some hours, in their order, added to `before`; None where there are none."""
    parts = [] if before is None else [before]
    parts += [cells[hour] for hour in hours if hour in cells]
    if not parts:
        return None
    # By column: there are thousands of rows, and by row it would take many times as long.
    return PpiSums(parts[0].tiers, tuple(map(sum, zip(*(part.numbers for part in parts), strict=True))))


def less(whole: PpiSums, part: PpiSums) -> PpiSums:
    """Sums without those of a part of their rows.

    >>> rows = [((0.5,), (0.1,)), ((1.0, 0.0), (0.1, 0.5))]
    >>> less(PpiSums.of(2, rows), PpiSums.of(2, rows[1:])) == PpiSums.of(2, rows[:1])
    True
    """
    return PpiSums(
        whole.tiers, tuple(total - number for total, number in zip(whole.numbers, part.numbers, strict=True))
    )


def labelled(
    rules: LabelRules, verdicts: AnswerVerdicts, quantity: Quantity, score: float, probability: float
) -> Iterator[Row]:
    """The row of a labelled answer, first without its label and then with it. Or nothing.

    Nothing is returned where a judge of the chain has no score, or where the probability of the label is higher than
    that of the last judge: the answer was then selected before that judge was configured.
    """
    scores: list[float] = []
    probabilities: list[float] = []
    before = 1.0
    for name in rules.readers(quantity):
        scores_of_judge: Mapping[Quantity, float | None] = verdicts.scores.get(name, {})
        value = scores_of_judge.get(quantity)
        if value is None:
            return
        scores.append(value)
        probabilities.append(min(1.0, verdicts.probabilities[name] / before))
        before = verdicts.probabilities[name]
    if probability <= before * (1.0 + 1e-9):
        yield tuple(scores), tuple(probabilities)
        yield (*scores, score), (*probabilities, min(1.0, probability / before))


def _keep(rows: dict[str, ScoreRow], row: ScoreRow) -> bool:
    """Keep a row. True when the oldest row was dropped for it."""
    rows[row.key] = row
    full = len(rows) > MAX_KEPT_ROWS
    if full:
        del rows[next(iter(rows))]
    return full
