"""Defines every exported series as data. Tests check HELP, the reference, dashboards and alerts against it.

Label values come from the configuration or from an enumeration, never from a log. The digest computes estimates at an
interval; their HELP says "as of the last digest".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from ragwatch.exporter.drift_series import DRIFT
from ragwatch.exporter.judge_series import CANARIES, JUDGES
from ragwatch.exporter.own_series import OWN
from ragwatch.exporter.quality import SEGMENTS, TEMPLATES, of_quantity
from ragwatch.exporter.series import MetricType, SeriesDefinition
from ragwatch.exporter.traffic_series import FEEDBACK, TRAFFIC
from ragwatch.model.criteria import Criterion
from ragwatch.model.quantities import Quantity

__all__ = ["CATALOGUE", "MetricType", "SeriesDefinition", "markdown", "with_criteria"]

_SINGLE = (*TRAFFIC, *SEGMENTS, *FEEDBACK, *CANARIES, *DRIFT, *JUDGES, *OWN)

CATALOGUE: tuple[SeriesDefinition, ...] = (
    *(of_quantity(template, quantity) for quantity in Quantity for template in TEMPLATES),
    *_SINGLE,
)


@lru_cache(16)
def with_criteria(criteria: tuple[Criterion, ...]) -> tuple[SeriesDefinition, ...]:
    """The catalogue with the series of criteria, whose names the configuration gives."""
    own = (
        of_quantity(template, one.quantity, f"share of answers with yes to: {one.question}")
        for one in criteria
        for template in TEMPLATES
    )
    return (*CATALOGUE, *own)


def markdown() -> str:
    """Renders the catalogue for the reference, with `Q` for the quantity in series that every quantity has."""
    quantities = (f"| `{quantity}` | {quantity.row.meaning} | {quantity.row.formula} |" for quantity in Quantity)
    return "\n".join(
        (
            "For each quantity Q:",
            "",
            "| Q | meaning | of one answer |",
            "|---|---|---|",
            *quantities,
            "",
            *_table(_as_q(template) for template in TEMPLATES),
            "",
            "Once:",
            "",
            *_table(_SINGLE),
        )
    )


def _as_q(template: SeriesDefinition) -> SeriesDefinition:
    any_quantity = next(iter(Quantity))  # it is in the name, so that it is no label
    name, text = template.name.format(q="Q"), template.help.format(q="Q")
    return replace(template, name=name, help=text, quantity=any_quantity)


def _table(rows: Iterable[SeriesDefinition]) -> Iterable[str]:
    yield "| series | type | labels | meaning |"
    yield "|---|---|---|---|"
    for row in rows:
        labels = ", ".join(f"`{label}`" for label in row.labels) or "none"
        yield f"| `{row.name}` | {row.kind} | {labels} | {row.help} |"
