"""Live: the latest Snapshot as a table for a terminal."""

from __future__ import annotations

from collections import Counter

from rich.table import Table

from ragwatch.core.estimate import Estimate
from ragwatch.core.scores import LOW_IS_GOOD, Quantity
from ragwatch.core.snapshot import EstimateRow, Snapshot
from ragwatch.core.stage import Stage
from ragwatch.core.tally import Tally

BAR = 5
_SHADES = {Stage.NONE: "green", Stage.RETRIEVAL: "blue", Stage.GENERATION: "red", Stage.ALIGNMENT: "magenta"}
_NEUTRAL = {Quantity.CONTEXT_USE, Quantity.CONTEXT_SENTENCE_PRECISION}


def table(snapshot: Snapshot | None) -> Table:
    """Estimates of the shortest window: a row a quantity, a column a route. Stages since the start stand below."""
    rows = snapshot.estimates if snapshot else ()
    window = rows[0].window if rows else ""
    shown = [row for row in rows if row.window == window]
    routes = sorted({row.route for row in shown})
    title = f"the last {window}: mean, interval, answers" if window else None
    made = Table(title=title, show_edge=False, pad_edge=False)
    made.add_column("quantity", no_wrap=True)
    for route in routes:
        made.add_column(route, no_wrap=True)
    for quantity in Quantity:
        if any(row.quantity is quantity for row in shown):
            made.add_row(quantity, *(_figure(shown, quantity, route) for route in routes))
    made.caption = _stages(snapshot) if snapshot else None
    return made


def _figure(rows: list[EstimateRow], quantity: Quantity, route: str) -> str:
    for row in rows:
        if row.quantity is quantity and row.route == route:
            found = row.estimate
            mean = f"[{_colour(quantity, found.value)}]{found.value:.2f}[/]"
            return f"{mean} {_band(found)} {found.low:.2f}-{found.high:.2f} {found.n:>3}"
    return ""


def _colour(quantity: Quantity, value: float) -> str:
    if quantity in _NEUTRAL:
        return "default"
    good = 1.0 - value if quantity in LOW_IS_GOOD else value
    return "green" if good >= 0.8 else "yellow" if good >= 0.6 else "bold red"


def _band(found: Estimate) -> str:
    """The interval as characters on a scale from 0 to 1."""
    start, middle, end = (min(BAR - 1, int(each * BAR)) for each in (found.low, found.value, found.high))
    cells = ["━" if start <= index <= end else "·" for index in range(BAR)]
    cells[middle] = "●"
    return "".join(cells)


def _stages(snapshot: Snapshot) -> str:
    counts: Counter[str] = Counter()
    for (tally, labels), amount in snapshot.tallies.items():
        if tally is Tally.STAGE and labels[1] == next(iter(snapshot.judges), labels[1]):
            counts[labels[2]] += int(amount)
    total = sum(counts.values())
    parts = [f"[{_SHADES[stage]}]{stage} {counts[stage] / total:.0%}[/]" for stage in Stage if counts[stage]]
    return "stage at fault, since the start: " + "  ".join(parts) if parts else ""
