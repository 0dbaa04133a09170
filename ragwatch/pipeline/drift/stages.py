"""Stages at fault beside drift detection: of the newest answers of each route, and while each reference was learnt.

What is compared with the reference are the answers since the evidence began to rise: earlier ones may have had another
fault, which is over. A sudden breakage is noticed within a few answers; then the newest `MIN_NEWEST` are compared.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import TypedDict

from ragwatch.core.snapshot import Gauge
from ragwatch.core.stage_change import IGNORED, StageChange, changed_stage, counted_stage, stage_shares
from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.model.stages import Stage
from ragwatch.pipeline.drift.loop import Cell, Figures, name_of
from ragwatch.pipeline.drift.streams import RISING_FROM
from ragwatch.ports import ScoreRow

NEWEST, MIN_NEWEST = 200, 20
_LETTERS: Mapping[str, str] = MappingProxyType({name[0]: name for name in (*map(str, Stage), IGNORED)})


class StagesRecord(TypedDict):
    """Counts of stages as JSON values: initials of the newest by route, and counts by cell."""

    newest: dict[str, str]
    normal: dict[str, dict[str, int]]
    rising: dict[str, int]


class RouteStages:
    """Counts stages at fault. A stage that is not known counts as nothing."""

    def __init__(self) -> None:
        self._newest: dict[str, deque[str]] = {}
        self._normal: dict[Cell, Counter[str]] = {}
        self._rising: Counter[Cell] = Counter()

    def add(self, row: ScoreRow) -> None:
        """Count an answer among the newest of its route."""
        if (name := _name_of(row)) is not None:
            self._newest.setdefault(row.route, deque(maxlen=NEWEST)).append(name)

    def add_normal(self, cell: Cell, row: ScoreRow) -> None:
        """Count an answer from which the reference of a detector learns, unless its evidence rises."""
        if (name := _name_of(row)) is not None and not self._rising[cell]:
            self._normal.setdefault(cell, Counter())[name] += 1

    def follow(self, cell: Cell, evidence: float | None, threshold: float | None) -> None:
        """Count the answers since the evidence of a detector began to rise."""
        if evidence is None or threshold is None or evidence < RISING_FROM * threshold:
            self._rising.pop(cell, None)
        else:
            self._rising[cell] += 1

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

    def to_dict(self) -> StagesRecord:
        """The counts as JSON values."""
        newest = {route: "".join(name[0] for name in names) for route, names in self._newest.items()}
        normal = {name_of(cell): dict(counts) for cell, counts in self._normal.items()}
        return {"newest": newest, "normal": normal, "rising": {name_of(cell): n for cell, n in self._rising.items()}}

    def load(self, state: StagesRecord) -> None:
        """Continue with counts that `to_dict` returned.

        Raises:
            KeyError: A value is missing.
            TypeError: A value has another type.
            ValueError: A value is out of range.
        """
        newest = {
            route: deque((_LETTERS[letter] for letter in letters), NEWEST) for route, letters in state["newest"].items()
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
