"""Builds the panels of one quantity, its mean now, coloured by the threshold, and over time; and of one signal."""

from collections.abc import Sequence
from dataclasses import replace

from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.model.signals import Signal
from ragwatch.rules.dashboards.page import ANSWERS, WINDOW, scored
from ragwatch.rules.dashboards.panel import TILES, Panel
from ragwatch.rules.dashboards.query import (
    JUDGE,
    ROUTE,
    Query,
    Style,
    grouped,
    keep,
    mean_with_ends,
    rate,
    recorded,
    scraped,
    spread,
    windowed,
)


def title(quantity: Quantity) -> str:
    """Title of a quantity.

    >>> title(Quantity.TOP_RANKED_IGNORED)
    'Top ranked ignored'
    """
    return quantity.replace("_", " ").capitalize()


def over_time(quantity: Quantity) -> Panel:
    """Mean by route, mean of all routes with its interval, and thresholds."""
    chosen, meaning = (JUDGE, f'quantity="{quantity}"'), quantity.row.meaning
    of_route, of_all = _thresholds(quantity)
    lines = grouped("max", of_route, "route", name="threshold", style=Style.THRESHOLD)
    return Panel(
        title(quantity),
        f"{meaning[0].upper()}{meaning[1:]}. Dotted: confidence interval over all routes, valid for a single look. "
        "Dashed: threshold.",
        "percentunit",
        (
            *mean_with_ends("all", chosen, (), "all routes"),
            Query(windowed("route:ragwatch_quality:mean", *chosen, ROUTE), ("route",)),
            replace(lines, expr=f"{lines.expr} or max by ({keep()}) ({of_all}) unless on (job) {of_route}"),
        ),
        scored(quantity),
        width=12,
        needs=quantity,
    )


def _with_ends(operator: str, series: str, chosen: Sequence[str]) -> tuple[Query, ...]:
    """Queries for a figure by route and for the ends of its interval."""
    parts = (("", "", Style.LINE), ("_high", "upper end", Style.LIMIT), ("_low", "lower end", Style.LIMIT))
    return tuple(
        grouped(operator, scraped(f"{series}{part}", *chosen), "route", name=name, style=style)
        for part, name, style in parts
    )


def level(quantity: Quantity) -> Panel:
    """Level by route with its interval: how good the answers are in people's terms. It stands beside the change."""
    chosen = (JUDGE, ROUTE, 'window="$window"', 'corrected="yes"')
    return Panel(
        f"{title(quantity)}: level",
        "In people's terms: the interval (dotted) contains the error of the judge, and becomes narrow with labels. "
        "Thresholds and objectives are compared with it, drift with the mean beside it.",
        "percentunit",
        _with_ends("avg", f"ragwatch_{quantity}_ratio", chosen),
        scored(quantity),
        width=12,
        needs=quantity,
    )


def over_all_traffic(signal: Signal, width: int) -> Panel:
    """A signal of all traffic by route: percentiles of its values, or answers per second that have it."""
    row = signal.row
    queries = tuple(spread(row.series, share, name, ROUTE) for share, name in row.percentiles)
    queries = queries or (rate(row.series, "route", chosen=(ROUTE,)),)
    return Panel(row.title, row.panel, row.unit, queries, ANSWERS, width=width)


def now(quantity: Quantity) -> Panel:
    """Mean by route. A route is in one of the queries, whose colour says how it compares with its threshold."""
    chosen = (JUDGE, f'quantity="{quantity}"', ROUTE)
    low_is_good = quantity in LOW_IS_GOOD
    beyond, within = (">", "<=") if low_is_good else ("<", ">=")
    mean = windowed("route:ragwatch_quality:mean", *chosen)
    best = windowed(f"route:ragwatch_quality:{'low' if low_is_good else 'high'}", *chosen)
    of_route, of_all = _thresholds(quantity)
    limit = (  # the threshold of each series of `mean`, with its labels
        f"(0 * {mean} + on (job, route) group_left () max by (job, route) ({of_route})"
        f" or 0 * {mean} + on (job) group_left () (max by (job) ({of_all}) unless on (job) {of_route}))"
    )
    queries = {
        Style.GOOD: f"{mean} {within} {limit}",
        Style.DOUBTFUL: f"{mean} {beyond} {limit} and {best} {within} {limit}",
        Style.BAD: f"{mean} and {best} {beyond} {limit}",
        Style.UNKNOWN: f"{mean} unless {limit}",
    }
    return Panel(
        f"{title(quantity)} now",
        f"Mean by route over the selected window. Green: {'at most' if low_is_good else 'at least'} the "
        "threshold; orange: beyond it, within the uncertainty; red: beyond it with confidence, which pages; blue: no "
        "threshold. Empty: no answer was scored.",
        "percentunit",
        tuple(Query(expr, ("route",), style=style) for style, expr in queries.items()),
        scored(quantity, WINDOW),
        kind="stat",
        width=6,
        height=6,
        options=TILES,
        needs=quantity,
    )


def _thresholds(quantity: Quantity) -> tuple[str, str]:
    """Selectors of the thresholds by route, and of those of all routes.

    The latter count for a job only if none by route is recorded: rules of an older version record no others.
    """
    about = f'quantity="{quantity}"'
    return recorded("route:ragwatch_quality:threshold", about, ROUTE), recorded("ragwatch:quality_threshold", about)


def today(quantity: Quantity) -> Panel:
    """Confidence sequence since midnight."""
    chosen = (ROUTE, f'quantity="{quantity}"')
    return Panel(
        f"{title(quantity)} today",
        "Mean since midnight UTC. Dotted: its confidence sequence, which is valid at every look, unlike the intervals "
        "above. Empty: the quantity is not monitored for drift.",
        "percentunit",
        _with_ends("min", "ragwatch_drift_band_ratio", chosen),
        scored(quantity),
        width=12,
        needs=quantity,
    )
