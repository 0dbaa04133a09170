"""Chains: sums over what judges said, by hour, route and quantity, ready for people's words to be added.

A judge reads every draw, a second one a part of these; the sums are those of `core.estimators.ppi`. A row that goes on
to the second judge is taken out of the sums and put in again as one that went further. Memory grows with time, not
with traffic, but for the last rows of the first judge, which are kept until the second one may have read them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ragwatch.core.estimators.ppi import PpiSums
from ragwatch.core.scores import Quantity
from ragwatch.pipeline.labels.verdicts import AnswerVerdicts, LabelRules
from ragwatch.ports import ScoreRow

HOUR = 3600.0
KEPT = 20_000
MOVING = 2  # hours at the end of a span to which answers are still added; what was before them as a rule stays
Cell = tuple[int, str, Quantity]  # hour, route, quantity
Place = tuple[str, Quantity]  # route, quantity
Row = tuple[tuple[float, ...], tuple[float, ...]]  # scores and conditional probabilities, by tier


@dataclass(slots=True)
class _PendingRows:
    """Rows of one turn, to be added to the sums at once."""

    come: dict[Cell, list[Row]] = field(default_factory=lambda: defaultdict(list))
    gone: dict[Cell, list[Row]] = field(default_factory=lambda: defaultdict(list))


class LabelSums:
    """Adds score rows to hours, and hours to spans.

    Args:
        rules: Who reads what.
        look_up: What is known of an answer that was read long ago.
    """

    def __init__(self, rules: LabelRules, look_up: Callable[[str], AnswerVerdicts | None]) -> None:
        self._rules = rules
        self._look_up = look_up
        self._cells: dict[Place, dict[int, PpiSums]] = {}  # by hour
        self._until = 0
        self._settled: dict[int, dict[Place, PpiSums | None]] = {}  # from an hour to the moving ones before `until`
        self._oldest: int | None = None
        self._missed: dict[tuple[int, str], float] = {}
        self._first: dict[str, ScoreRow] = {}
        self._second: dict[str, ScoreRow] = {}
        self._let_go = False

    def tiers(self, quantity: Quantity) -> int:
        """Length of a quantity's chain, people included."""
        return len(self._rules.readers(quantity)) + 1

    def add(self, rows: Iterable[ScoreRow]) -> None:
        """Take in score rows of the versions in force."""
        gathered = _PendingRows()
        for row in rows:
            if row.version != self._rules.judges.get(row.judge):
                continue
            if row.judge == self._rules.chain[0]:
                self._add_first(row, gathered)
            elif row.judge in self._rules.chain and row.scores is not None:
                self._add_second(row, gathered)
        for cell in {*gathered.come, *gathered.gone}:
            hour, place, tiers = cell[0], cell[1:], self.tiers(cell[2])
            cells = self._cells.setdefault(place, {})
            now = cells.get(hour, PpiSums.none(tiers)) + PpiSums.of(tiers, gathered.come.get(cell, ()))
            cells[hour] = less(now, PpiSums.of(tiers, gathered.gone.get(cell, ())))
            if hour < self._until - MOVING:
                for settled in self._settled.values():
                    settled.pop(place, None)

    def _add_first(self, row: ScoreRow, gathered: _PendingRows) -> None:
        place = (int(row.at // HOUR), row.route)
        if row.scores is None:
            self._missed[place] = self._missed.get(place, 0.0) + 1.0 / row.probability
            return
        for quantity, score in row.scores.items():
            if score is not None:
                gathered.come[*place, quantity].append(((score,), (row.probability,)))
        if len(self._rules.chain) > 1:
            early = self._second.pop(row.key, None)
            if early is not None:
                self._go_on(row, early, gathered)
            else:
                self._let_go = _keep(self._first, row) or self._let_go

    def _add_second(self, row: ScoreRow, gathered: _PendingRows) -> None:
        first = self._first.pop(row.key, None) or self._stored(row)
        if first is None:
            _keep(self._second, row)
        else:
            self._go_on(first, row, gathered)

    def _stored(self, row: ScoreRow) -> ScoreRow | None:
        """The first judge's row of long ago; None where it has none yet, or comes later in this turn."""
        judge = self._rules.chain[0]
        found = self._look_up(row.key) if self._let_go else None
        if found is None or judge not in found.scores:
            return None
        version, scores = self._rules.judges[judge], found.scores[judge]
        return ScoreRow(
            0, row.key, found.at, found.route, judge, version, found.probabilities[judge], scores, None, None
        )

    def _go_on(self, first: ScoreRow, second: ScoreRow, gathered: _PendingRows) -> None:
        for quantity in self._rules.second:
            one, other = (first.scores or {}).get(quantity), (second.scores or {}).get(quantity)
            if one is not None and other is not None:
                cell = (int(first.at // HOUR), first.route, quantity)
                gathered.gone[cell].append(((one,), (first.probability,)))
                onward = min(1.0, second.probability / first.probability)
                gathered.come[cell].append(((one, other), (first.probability, onward)))

    def forget(self, now: float) -> None:
        """Drop the hours that no label reaches."""
        oldest = int((now - self._rules.fresh) // HOUR)
        if oldest == self._oldest:
            return
        self._oldest = oldest
        self._settled.clear()
        for cells in self._cells.values():
            for hour in [each for each in cells if each < oldest]:
                del cells[hour]
        for place in [each for each in self._missed if each[0] < oldest]:
            del self._missed[place]

    def totals(self, hours: range) -> dict[Place, PpiSums]:
        """Sums over some hours, by route and quantity.

        What lies before the moving hours is added up once an hour, and again where a late answer came.
        """
        if hours.stop != self._until:
            self._until, self._settled = hours.stop, {}
        moving = range(max(hours.start, hours.stop - MOVING), hours.stop)
        settled = self._settled.setdefault(hours.start, {})
        found = {}
        for place, cells in self._cells.items():
            if place not in settled:
                settled[place] = _total(cells, range(hours.start, moving.start))
            total = _total(cells, moving, settled[place])
            if total is not None:
                found[place] = total
        return found

    def missed(self, hours: range) -> dict[str, float]:
        """Weight that the first judge could not read, over some hours, by route."""
        found: dict[str, float] = {}
        for (hour, route), weight in self._missed.items():
            if hour in hours:
                found[route] = found.get(route, 0.0) + weight
        return found


def hours(now: float, span: float) -> range:
    """The hours of a span that ends now."""
    return range(int((now - span) // HOUR) + 1, int(now // HOUR) + 1)


def _total(cells: Mapping[int, PpiSums], hours: range, before: PpiSums | None = None) -> PpiSums | None:
    """The sums of some hours, in their order, and of what was before; None where there is nothing."""
    parts = [] if before is None else [before]
    parts += [cells[hour] for hour in hours if hour in cells]
    if not parts:
        return None
    # Column by column: there are thousands of rows, and this is many times as fast as row by row.
    return PpiSums(parts[0].tiers, tuple(map(sum, zip(*(each.numbers for each in parts), strict=True))))


def less(whole: PpiSums, part: PpiSums) -> PpiSums:
    """Sums without those of a part of their rows.

    >>> rows = [((0.5,), (0.1,)), ((1.0, 0.0), (0.1, 0.5))]
    >>> less(Sums.of(2, rows), Sums.of(2, rows[1:])) == Sums.of(2, rows[:1])
    True
    """
    return PpiSums(whole.tiers, tuple(one - other for one, other in zip(whole.numbers, part.numbers, strict=True)))


def labelled(
    rules: LabelRules, found: AnswerVerdicts, quantity: Quantity, score: float, probability: float
) -> Iterator[Row]:
    """The row of an answer that people have scored: as the judges left it, then with people's word. Or nothing.

    Nothing, where a judge of the chain has no score, or where people were given it more often than the last judge: it
    was then chosen before that judge was there.
    """
    scores: list[float] = []
    probabilities: list[float] = []
    before = 1.0
    for name in rules.readers(quantity):
        one: Mapping[Quantity, float | None] = found.scores.get(name, {})
        value = one.get(quantity)
        if value is None:
            return
        scores.append(value)
        probabilities.append(min(1.0, found.probabilities[name] / before))
        before = found.probabilities[name]
    if probability <= before * (1.0 + 1e-9):
        yield tuple(scores), tuple(probabilities)
        yield (*scores, score), (*probabilities, min(1.0, probability / before))


def _keep(rows: dict[str, ScoreRow], row: ScoreRow) -> bool:
    """Keep a row. True when the oldest one had to go for it."""
    rows[row.key] = row
    full = len(rows) > KEPT
    if full:
        del rows[next(iter(rows))]
    return full
