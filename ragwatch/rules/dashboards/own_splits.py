"""Builds the panels of what an operator configures: estimates by segment, and criteria of their own."""

from __future__ import annotations

from collections.abc import Sequence

from ragwatch.model.quantities import Quantity
from ragwatch.rules.dashboards import page
from ragwatch.rules.dashboards.board_plan import Feature
from ragwatch.rules.dashboards.page import Page
from ragwatch.rules.dashboards.panel import Panel
from ragwatch.rules.dashboards.quality import title
from ragwatch.rules.dashboards.query import JUDGE, ROUTE, Query, Style, grouped, recorded, windowed

_OWN = f'quantity!~"{"|".join(Quantity)}"'
_SEGMENT = ("segment", "value")
_ENDS = (("high", "upper end"), ("low", "lower end"))


def by_segment(quantities: Sequence[Quantity]) -> tuple[Panel, ...]:
    """Means of quantities by segment, and the size of each segment."""
    return (*(_segments(quantity) for quantity in quantities), _segment_samples())


def _segments(quantity: Quantity) -> Panel:
    chosen = (JUDGE, f'quantity="{quantity}"')
    return Panel(
        f"{title(quantity)} by segment",
        "Mean over all routes by configured value of a metadata key; `other` is every other value. Dotted: confidence "
        "interval, valid for a single look.",
        "percentunit",
        (
            Query(windowed("segment:ragwatch_quality:mean", *chosen), _SEGMENT),
            *(
                Query(windowed(f"segment:ragwatch_quality:{end}", *chosen), _SEGMENT, name, Style.LIMIT)
                for end, name in _ENDS
            ),
        ),
        page.scored_by_segment(quantity),
        width=12,
        needs=Feature.SEGMENTS,
    )


def _segment_samples() -> Panel:
    return Panel(
        "Effective sample size by segment",
        "Number of equally weighted answers with the same precision. Compare only segments that have some tens.",
        "none",
        (
            Query(
                windowed("segment:ragwatch_quality:effective_samples", JUDGE, f'quantity="{Quantity.FAITHFULNESS}"'),
                _SEGMENT,
            ),
        ),
        page.JUDGED_BY_SEGMENT,
        width=12,
        needs=Feature.SEGMENTS,
    )


def own_criteria() -> tuple[Panel, ...]:
    """Means of the configured criteria: over all routes with the interval, and by route with the thresholds."""
    everywhere = (
        Query(windowed("all:ragwatch_quality:mean", JUDGE, _OWN), ("quantity",)),
        *(
            Query(windowed(f"all:ragwatch_quality:{end}", JUDGE, _OWN), ("quantity",), name, Style.LIMIT)
            for end, name in _ENDS
        ),
    )
    by_route = (
        Query(windowed("route:ragwatch_quality:mean", JUDGE, _OWN, ROUTE), ("quantity", "route")),
        grouped(
            "max",
            recorded("route:ragwatch_quality:threshold", _OWN, ROUTE),
            "quantity",
            "route",
            name="threshold",
            style=Style.THRESHOLD,
        ),
    )
    return (
        _criteria(
            "Own criteria",
            "Share of answers with yes to each configured question, over all routes. Dotted: confidence interval, "
            "valid for a single look. Empty: the selected judge reads no criteria.",
            everywhere,
        ),
        _criteria(
            "Own criteria by route",
            "Share of answers with yes to each configured question, by route. Dashed: threshold.",
            by_route,
        ),
    )


def _criteria(name: str, description: str, queries: tuple[Query, ...]) -> Panel:
    behind = Page(
        "Answers behind this", "/samples", (page.JUDGE, "sort=worst", *page.SHOWN_TIME), ("quantity", "route")
    )
    return Panel(name, description, "percentunit", queries, behind, width=12, needs=Feature.CRITERIA)
