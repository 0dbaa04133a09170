"""Label sums: sums of scores for PPI++ by hour, route and quantity, to which labels are added.

One judge reads every draw, a second one a part of these; the sums are those of `statistics.estimators.ppi`. When the
second judge has read an answer, its row of one tier is subtracted and a row of two tiers is added. Memory grows with
time, not with traffic, except for the last rows of the first judge: they are kept until the second one may have read
them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.labels.verdicts import AnswerVerdicts, LabelRules
from ragwatch.ports import ScoreRow
from ragwatch.statistics.estimators.ppi import PpiSums

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
