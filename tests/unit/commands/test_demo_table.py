"""The live table: a row a quantity, a column a route; nothing known shows nothing."""

from __future__ import annotations

from collections import Counter

from rich.console import Console

from ragwatch.commands.demo import snapshot_table
from ragwatch.model.estimate import Addends
from ragwatch.model.quantities import Quantity
from ragwatch.statistics.estimators import hajek
from ragwatch.statistics.snapshot import EstimateRow, Snapshot
from ragwatch.statistics.tally import Tally


def _shown(snapshot: Snapshot | None) -> str:
    console = Console(width=120, record=True, file=None, quiet=False, force_terminal=False)
    with console.capture() as captured:
        console.print(snapshot_table(snapshot))
    return captured.get()


def _row(quantity: Quantity, route: str, *scores: float) -> EstimateRow:
    found = hajek.estimate(Addends.of((score, 1.0) for score in scores))
    assert found is not None
    return EstimateRow(quantity, route, "embedded", "15m", found)


def test_nothing_known_shows_nothing() -> None:
    """Before the first digest, and before the first answer, there is no figure."""
    assert "0." not in _shown(None)
    assert "0." not in _shown(Snapshot(at=0.0))


def test_figures_stand_in_their_row_and_column() -> None:
    """Each route has its mean, its interval as a band and as numbers, and its count; an absent one stays blank."""
    rows = (
        _row(Quantity.FAITHFULNESS, "search", 1.0, 1.0, 0.0, 1.0),
        _row(Quantity.CONTEXT_USE, "search", 0.5, 0.25),
        _row(Quantity.TOP_RANKED_IGNORED, "support", 1.0, 1.0),
    )
    stages = Counter(
        {(Tally.STAGE, ("search", "embedded", "none")): 3, (Tally.STAGE, ("search", "embedded", "retrieval")): 1}
    )
    shown = _shown(Snapshot(at=0.0, estimates=rows, tallies=stages))
    faithful = next(line for line in shown.splitlines() if line.startswith("faithfulness"))
    assert "0.75" in faithful
    assert "●" in faithful
    assert faithful.count("0.75") == 1
    assert "none 75%" in shown
    assert "retrieval 25%" in shown
