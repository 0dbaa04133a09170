"""What texts say about an alarm: when its change began, the mean before and since, and the stage at fault.

The begin is the most likely one of a single change of the mean: among the newest scores, the first of those for which
S^2 / W is greatest, where S is the sum of w (before - score) and W the sum of w (Hinkley, Biometrika 57, 1970, with a
known mean before). The variance of the scores is not needed. From the alarm on, all scores count as after the change.

Stages are counted of the newest answers of each route, and while each reference was learnt. What is compared with the
reference are the answers since the evidence began to rise: earlier ones may have had another fault, which is over. A
sudden breakage is noticed within a few answers; then the newest `MIN_NEWEST` are compared.
"""

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType

from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.model.stages import Stage
from ragwatch.pipeline.drift.loop import Cell, Figures, is_segment, name_of
from ragwatch.ports import SavedState, ScoreRow
from ragwatch.statistics.drift.detect import Score
from ragwatch.statistics.snapshot import Gauge
from ragwatch.statistics.stage import IGNORED, StageChange, changed_stage, counted_stage, stage_shares

NEWEST = 500  # scores among which a begin is searched: more than a break that pages takes until it is noticed
NEWEST_OF_SEGMENT = 300  # the same for a segment, of which there are many
_GAUGES = Gauge.DRIFT_BEGAN, Gauge.DRIFT_BEFORE, Gauge.DRIFT_SINCE, Gauge.DRIFT_ANSWERS
_SEGMENT_GAUGES = (
    Gauge.SEGMENT_DRIFT_BEGAN,
    Gauge.SEGMENT_DRIFT_BEFORE,
    Gauge.SEGMENT_DRIFT_SINCE,
    Gauge.SEGMENT_DRIFT_ANSWERS,
)


@dataclass(slots=True)
class Break:
    """A change of a mean."""

    began: float  # estimated time of the first answer after it, in seconds since the epoch
    before: float  # the mean while the reference was learnt
    since: float = 0.0  # the mean of the answers after it
    answers: int = 0  # their number
    weight: float = 0.0  # their sum of weights

    def add(self, score: Score) -> None:
        """Count one more answer."""
        self.answers += 1
        self.weight += score.weight
        self.since += (score.value - self.since) * score.weight / self.weight


class Breaks:
    """Follows the scores of each detector, and keeps the break behind each alarm that is active."""

    def __init__(self) -> None:
        self._newest: dict[Cell, deque[tuple[float, Score]]] = {}
        self._open: dict[Cell, Break] = {}

    def follow(self, cell: Cell, at: float, score: Score, *, before: float | None, alarmed: bool) -> None:
        """Count a score of a detector.

        Args:
            cell: The detector.
            at: Time of the answer.
            score: The score.
            before: The mean while the reference was learnt; None where there is none, and then there is no break.
            alarmed: Whether the alarm is active, with this score taken.
        """
        if not alarmed:
            self._open.pop(cell, None)
        elif (known := self._open.get(cell)) is not None:
            known.add(score)
            return
        if (newest := self._newest.get(cell)) is None:
            newest = self._newest[cell] = deque(maxlen=NEWEST_OF_SEGMENT if is_segment(cell) else NEWEST)
        newest.append((at, score))
        if alarmed and before is not None:
            self._open[cell] = _latest_break(newest, before)
            newest.clear()  # after this alarm, another break begins later

    def of(self, cell: Cell) -> Break | None:
        """The break behind the alarm of a detector; None if it is not known."""
        return self._open.get(cell)

    def figures(self, alarmed: Mapping[Cell, object]) -> Figures:
        """Gauges of the breaks behind these alarms."""
        return {
            (gauge, cell): value
            for cell, known in self._open.items()
            if cell in alarmed
            for gauge, value in zip(
                _SEGMENT_GAUGES if is_segment(cell) else _GAUGES,
                (known.began, known.before, known.since, float(known.answers)),
                strict=True,
            )
        }

    def to_dict(self) -> dict[str, SavedState]:
        """The breaks as JSON values. Scores before an alarm are not stored: the store has them."""
        return {name_of(cell): asdict(known) for cell, known in self._open.items()}

    def load(self, cells: Mapping[str, Cell], state: Mapping[str, SavedState]) -> None:
        """Continue with breaks that `to_dict` returned. Raises `TypeError` if a value is missing or no number."""
        self._open = {cells[name]: Break(**record) for name, record in state.items() if name in cells}


def _latest_break(newest: deque[tuple[float, Score]], before: float) -> Break:
    """The most likely change of the mean, in whichever direction the newest scores together lie."""
    total, weight, best, first = 0.0, 0.0, -1.0, len(newest) - 1
    for index in range(len(newest) - 1, -1, -1):
        _, score = newest[index]
        total += score.weight * (before - score.value)
        weight += score.weight
        if total * total / weight > best:
            best, first = total * total / weight, index
    scores = list(newest)[first:]
    change = Break(scores[0][0], before)
    for _, score in scores:
        change.add(score)
    return change


NEWEST_ANSWERS, MIN_NEWEST = 200, 20
_LETTERS: Mapping[str, str] = MappingProxyType({name[0]: name for name in (*map(str, Stage), IGNORED)})


class RouteStages:
    """Counts stages at fault. A stage that is not known counts as nothing."""

    def __init__(self) -> None:
        self._newest: dict[str, deque[str]] = {}
        self._normal: dict[Cell, Counter[str]] = {}
        self._rising: Counter[Cell] = Counter()

    def add(self, row: ScoreRow) -> None:
        """Count an answer among the newest of its route."""
        if (name := _name_of(row)) is not None:
            self._newest.setdefault(row.route, deque(maxlen=NEWEST_ANSWERS)).append(name)

    def add_normal(self, cell: Cell, row: ScoreRow) -> None:
        """Count an answer from which the reference of a detector learns, unless its evidence rises."""
        if (name := _name_of(row)) is not None and not self._rising[cell]:
            self._normal.setdefault(cell, Counter())[name] += 1

    def follow(self, cell: Cell, *, rising: bool) -> None:
        """Count the answers since the evidence of a detector began to rise."""
        if rising:
            self._rising[cell] += 1
        else:
            self._rising.pop(cell, None)

    def forget(self, cell: Cell) -> None:
        """Drop the counts of a reference that is learnt again."""
        self._normal.pop(cell, None)

    def change(self, cell: Cell) -> StageChange | None:
        """The stage that has become more frequent since the reference was learnt."""
        newest = list(self._newest.get(cell[1], ()))[-max(MIN_NEWEST, self._rising[cell]) :]
        return changed_stage(Counter(newest), self._normal.get(cell, {}), quantity_of(cell[0]))

    def changes(self, routes: Iterable[str], alarmed: Collection[Cell]) -> Figures:
        """Gauges of the stage that rose on each route, as its detector with an alarm, or the most evidence, sees it."""
        figures: Figures = {}
        for route in routes:
            cells = (cell for cell in self._normal if cell[1] == route)
            cell = max(cells, key=lambda cell: (cell in alarmed, self._rising[cell]), default=None)
            if cell is not None and (change := self.change(cell)) is not None:
                figures[Gauge.STAGE_CHANGED, (route, str(change.stage), "before")] = change.before
                figures[Gauge.STAGE_CHANGED, (route, str(change.stage), "since")] = change.share
        return figures

    def normal_shares(self, cells: Iterable[Cell]) -> dict[Stage, float]:
        """Share of each stage in the largest of some references; empty if there is none."""
        references = [self._normal[cell] for cell in cells if cell in self._normal]
        largest: Counter[str] = max(references, key=Counter[str].total, default=Counter())
        return stage_shares(largest)

    def to_dict(self) -> SavedState:
        """The counts as JSON values: initials of the newest by route, and counts by cell."""
        newest = {route: "".join(name[0] for name in names) for route, names in self._newest.items()}
        normal = {name_of(cell): dict(counts) for cell, counts in self._normal.items()}
        return {"newest": newest, "normal": normal, "rising": {name_of(cell): n for cell, n in self._rising.items()}}

    def load(self, state: SavedState) -> None:
        """Continue with counts that `to_dict` returned.

        Raises:
            KeyError, TypeError, ValueError: A value is missing, of another type or out of range.
        """
        newest = {
            route: deque((_LETTERS[letter] for letter in letters), NEWEST_ANSWERS)
            for route, letters in state["newest"].items()
        }
        normal = {
            _cell(name): Counter({key: int(count) for key, count in counts.items()})
            for name, counts in state["normal"].items()
        }
        rising = Counter({_cell(name): int(count) for name, count in state["rising"].items()})
        self._newest, self._normal, self._rising = newest, normal, rising


def _cell(name: str) -> Cell:
    quantity, _, route = name.partition("/")
    return quantity, route


def _name_of(row: ScoreRow) -> str | None:
    if row.stage is None or row.scores is None:
        return None
    return counted_stage(row.stage, row.scores.get(Quantity.TOP_RANKED_IGNORED))
