"""Defines every exported series as data. Tests check HELP, the reference, dashboards and alerts against it.

Label values come from the configuration or from an enumeration, never from a log. The digest computes estimates at an
interval; their HELP says "as of the last digest". In templates, `{q}` stands for the quantity, in names and in HELP.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from ragwatch.exporter.own_series import OWN
from ragwatch.exporter.quality_series import CANARIES, DRIFT, JUDGES
from ragwatch.exporter.series import (
    LAST_SAMPLE,
    FromSnapshot,
    MetricType,
    Series,
    estimated,
    of_estimate,
    of_origins,
    of_rows,
)
from ragwatch.exporter.traffic_series import FEEDBACK, TRAFFIC
from ragwatch.model.quantities import Criterion, Quantity
from ragwatch.statistics.snapshot import Gauge
from ragwatch.statistics.tally import Tally

__all__ = ["CATALOGUE", "MetricType", "Series", "markdown", "with_criteria"]

_SUMS = (
    ("weight", "sampling weights w = 1 / inclusion probability", "; replicas can be summed"),
    ("weighted_score", "w * score", "; divide by the weight total to get the mean"),
    ("squared_weight", "w^2", ", for the standard error"),
    ("squared_weight_score", "w^2 * score", ", for the standard error"),
    ("squared_weight_squared_score", "w^2 * score^2", ", for the standard error"),
)


def _sums(of: str, answers: str, tallies: Iterable[Tally]) -> Iterator[Series]:
    for (name, summed, use), tally in zip(_SUMS, tallies, strict=True):
        text = f"Sum of {summed} of {answers}{use}."
        yield Series(tally, text, f"ragwatch_{of}_{name}_total", from_zero=True)


_END = (
    "limit of the interval for mean {q}, between 0 and 1, as of the last digest. It contains sampling, and that of a "
    "level the error of the judge, too."
)
TEMPLATES: tuple[Series, ...] = (
    *of_estimate(
        "{q}",
        estimated,
        {
            "value": "Estimated mean {q} over the window, between 0 and 1, as of the last digest: of the judge, or its "
            "level, in people's terms (corrected yes).",
            "low": f"Lower {_END}",
            "high": f"Upper {_END}",
            "bound_low": "Worst-case (Manski) lower bound of mean {q}: every unjudged draw counts as 0, as of the last "
            "digest.",
            "bound_high": "Worst-case (Manski) upper bound of mean {q}: every unjudged draw counts as 1, as of the "
            "last digest.",
            "n": "Number of scored answers in the estimate of {q}, as of the last digest.",
            "n_eff": "Effective sample size (Kish) of the estimate of {q}, as of the last digest.",
        },
    ),
    Series(
        LAST_SAMPLE,
        "Unix timestamp of the newest answer scored for {q}, as of the last digest.",
        "ragwatch_{q}_last_sample_timestamp_seconds",
    ),
    *_sums("{q}", "answers scored for {q}", (Tally.W, Tally.WX, Tally.W2, Tally.W2X, Tally.W2X2)),
    Series(
        Tally.SCORE,
        "Scores of single answers for {q}, between 0 and 1, unweighted, since the state directory was created.",
        "ragwatch_{q}_score",
    ),
)


def series_names(quantity: str) -> tuple[str, ...]:
    """Names of all series of a quantity."""
    return tuple(template.name.format(q=quantity) for template in TEMPLATES)


def of_quantity(template: Series, quantity: Quantity, meaning: str = "") -> Series:
    """Fills in a template for one quantity; of a criterion, `meaning` says what it measures."""
    described = f"{quantity} ({meaning or quantity.row.meaning})"
    return replace(
        template, name=template.name.format(q=quantity), help=template.help.format(q=described), quantity=quantity
    )


_SEGMENT_END = "limit of the confidence interval for the mean of a segment, between 0 and 1, as of the last digest."
SEGMENTS: tuple[Series, ...] = (
    *of_estimate(
        "segment",
        lambda figure: of_rows(
            "segments", ("quantity", "segment", "value", "route", "judge", "window"), f"estimate.{figure}"
        ),
        {
            "value": "Estimated mean of a quantity over the answers of a segment, between 0 and 1, as of the last "
            "digest.",
            "low": f"Lower {_SEGMENT_END}",
            "high": f"Upper {_SEGMENT_END}",
            "n": "Number of scored answers in the estimate of a segment, as of the last digest.",
            "n_eff": "Effective sample size (Kish) of the estimate of a segment, as of the last digest.",
        },
    ),
    Series(
        FromSnapshot(
            ("quantity", "segment", "value", "route", "judge"), lambda snapshot: snapshot.segment_last.items()
        ),
        "Unix timestamp of the newest answer of a segment that was scored for a quantity, as of the last digest.",
        "ragwatch_segment_last_sample_timestamp_seconds",
    ),
    *_sums(
        "segment",
        "scored answers, by segment",
        (Tally.SEGMENT_W, Tally.SEGMENT_WX, Tally.SEGMENT_W2, Tally.SEGMENT_W2X, Tally.SEGMENT_W2X2),
    ),
    Series(
        Tally.SEGMENT_JUDGED,
        "Total number of judged answers, by segment; a value that is not configured is `other`.",
        "ragwatch_segment_samples_judged_total",
        from_zero=True,
    ),
    Series(
        Tally.SEGMENT_UNJUDGED,
        "Total number of draws that no judge could read, by segment.",
        "ragwatch_segment_samples_unjudged_total",
        from_zero=True,
    ),
    Series(
        Tally.SEGMENT_LEFT_OUT,
        "Total number of answers in no segment of a key, because their metadata do not have it.",
        "ragwatch_segment_samples_left_out_total",
        from_zero=True,
    ),
    *of_origins(
        {
            Gauge.SEGMENT_DRIFT_ALARM: "Whether the newest answers of a segment are worse than their baseline (1) or "
            "not (0).",
            Gauge.SEGMENT_DRIFT_BEGAN: "Estimated Unix timestamp of the first answer after the change that an active "
            "alarm of a segment is about.",
            Gauge.SEGMENT_DRIFT_BEFORE: "Mean score of a segment before the change that an active alarm is about, "
            "between 0 and 1.",
            Gauge.SEGMENT_DRIFT_SINCE: "Mean score of a segment since the change that an active alarm is about, "
            "between 0 and 1.",
            Gauge.SEGMENT_DRIFT_ANSWERS: "Number of scores of a segment since the change that an active alarm is "
            "about.",
            Gauge.DRIFT_UNWATCHED: "Number of quantities of segments on routes that have no drift detector, because "
            "there are too many.",
        }
    ),
)


_SINGLE = (*TRAFFIC, *SEGMENTS, *FEEDBACK, *CANARIES, *DRIFT, *JUDGES, *OWN)

CATALOGUE: tuple[Series, ...] = (
    *(of_quantity(template, quantity) for quantity in Quantity for template in TEMPLATES),
    *_SINGLE,
)


@lru_cache(16)
def with_criteria(criteria: tuple[Criterion, ...]) -> tuple[Series, ...]:
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


def _as_q(template: Series) -> Series:
    any_quantity = next(iter(Quantity))  # it is in the name, so that it is no label
    name, text = template.name.format(q="Q"), template.help.format(q="Q")
    return replace(template, name=name, help=text, quantity=any_quantity)


def _table(rows: Iterable[Series]) -> Iterable[str]:
    yield "| series | type | labels | meaning |"
    yield "|---|---|---|---|"
    for row in rows:
        labels = ", ".join(f"`{label}`" for label in row.labels) or "none"
        yield f"| `{row.name}` | {row.kind} | {labels} | {row.help} |"
