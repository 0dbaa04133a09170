"""Defines templates of the series that every quantity has, and the series of segments.

`{q}` stands for the quantity, in names and in HELP. Segments are values of metadata keys by which estimates are split;
without `segments` there are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ragwatch.core.snapshot import Gauge
from ragwatch.core.tally import Tally
from ragwatch.exporter.figures import LAST_SAMPLE, FromSnapshot, estimated, segments
from ragwatch.exporter.series import SeriesDefinition
from ragwatch.model.quantities import Quantity

_SUMS = (
    ("weight", "sampling weights w = 1 / inclusion probability", "; replicas can be summed"),
    ("weighted_score", "w * score", "; divide by the weight total to get the mean"),
    ("squared_weight", "w^2", ", for the standard error"),
    ("squared_weight_score", "w^2 * score", ", for the standard error"),
    ("squared_weight_squared_score", "w^2 * score^2", ", for the standard error"),
)


def _sums(of: str, answers: str, tallies: Iterable[Tally]) -> Iterator[SeriesDefinition]:
    for (name, summed, use), tally in zip(_SUMS, tallies, strict=True):
        text = f"Sum of {summed} of {answers}{use}."
        yield SeriesDefinition(f"ragwatch_{of}_{name}_total", text, tally, from_zero=True)


TEMPLATES: tuple[SeriesDefinition, ...] = (
    SeriesDefinition(
        "ragwatch_{q}_ratio",
        "Estimated mean {q} over the window, between 0 and 1, as of the last digest: of the judge, or its level, in "
        "people's terms (corrected yes).",
        estimated("value"),
    ),
    SeriesDefinition(
        "ragwatch_{q}_ratio_low",
        "Lower limit of the interval for mean {q}, between 0 and 1, as of the last digest. It contains sampling, and "
        "that of a level the error of the judge, too.",
        estimated("low"),
    ),
    SeriesDefinition(
        "ragwatch_{q}_ratio_high",
        "Upper limit of the interval for mean {q}, between 0 and 1, as of the last digest. It contains sampling, and "
        "that of a level the error of the judge, too.",
        estimated("high"),
    ),
    SeriesDefinition(
        "ragwatch_{q}_ratio_bound_low",
        "Worst-case (Manski) lower bound of mean {q}: every unjudged draw counts as 0, as of the last digest.",
        estimated("bound_low"),
    ),
    SeriesDefinition(
        "ragwatch_{q}_ratio_bound_high",
        "Worst-case (Manski) upper bound of mean {q}: every unjudged draw counts as 1, as of the last digest.",
        estimated("bound_high"),
    ),
    SeriesDefinition(
        "ragwatch_{q}_samples",
        "Number of scored answers in the estimate of {q}, as of the last digest.",
        estimated("n"),
    ),
    SeriesDefinition(
        "ragwatch_{q}_effective_samples",
        "Effective sample size (Kish) of the estimate of {q}, as of the last digest.",
        estimated("n_eff"),
    ),
    SeriesDefinition(
        "ragwatch_{q}_last_sample_timestamp_seconds",
        "Unix timestamp of the newest answer scored for {q}, as of the last digest.",
        LAST_SAMPLE,
    ),
    *_sums("{q}", "answers scored for {q}", (Tally.W, Tally.WX, Tally.W2, Tally.W2X, Tally.W2X2)),
    SeriesDefinition(
        "ragwatch_{q}_score",
        "Scores of single answers for {q}, between 0 and 1, unweighted, since the state directory was created.",
        Tally.SCORE,
    ),
)


def series_names(quantity: str) -> tuple[str, ...]:
    """Names of all series of a quantity.

    >>> series_names("polite")[0]
    'ragwatch_polite_ratio'
    """
    return tuple(template.name.format(q=quantity) for template in TEMPLATES)


def of_quantity(template: SeriesDefinition, quantity: Quantity, meaning: str = "") -> SeriesDefinition:
    """Fills in a template for one quantity.

    Args:
        template: The template.
        quantity: The quantity.
        meaning: What a criterion measures.

    >>> of_quantity(TEMPLATES[0], Quantity.CONTEXT_USE).name
    'ragwatch_context_use_ratio'
    """
    described = f"{quantity} ({meaning or quantity.row.meaning})"
    return replace(
        template, name=template.name.format(q=quantity), help=template.help.format(q=described), quantity=quantity
    )


SEGMENTS: tuple[SeriesDefinition, ...] = (
    SeriesDefinition(
        "ragwatch_segment_ratio",
        "Estimated mean of a quantity over the answers of a segment, between 0 and 1, as of the last digest.",
        segments("value"),
    ),
    SeriesDefinition(
        "ragwatch_segment_ratio_low",
        "Lower limit of the confidence interval for the mean of a segment, between 0 and 1, as of the last digest.",
        segments("low"),
    ),
    SeriesDefinition(
        "ragwatch_segment_ratio_high",
        "Upper limit of the confidence interval for the mean of a segment, between 0 and 1, as of the last digest.",
        segments("high"),
    ),
    SeriesDefinition(
        "ragwatch_segment_samples",
        "Number of scored answers in the estimate of a segment, as of the last digest.",
        segments("n"),
    ),
    SeriesDefinition(
        "ragwatch_segment_effective_samples",
        "Effective sample size (Kish) of the estimate of a segment, as of the last digest.",
        segments("n_eff"),
    ),
    SeriesDefinition(
        "ragwatch_segment_last_sample_timestamp_seconds",
        "Unix timestamp of the newest answer of a segment that was scored for a quantity, as of the last digest.",
        FromSnapshot(
            ("quantity", "segment", "value", "route", "judge"), lambda snapshot: snapshot.segment_last.items()
        ),
    ),
    *_sums(
        "segment",
        "scored answers, by segment",
        (Tally.SEGMENT_W, Tally.SEGMENT_WX, Tally.SEGMENT_W2, Tally.SEGMENT_W2X, Tally.SEGMENT_W2X2),
    ),
    SeriesDefinition(
        "ragwatch_segment_samples_judged_total",
        "Total number of judged answers, by segment; a value that is not configured is `other`.",
        Tally.SEGMENT_JUDGED,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_segment_samples_unjudged_total",
        "Total number of draws that no judge could read, by segment.",
        Tally.SEGMENT_UNJUDGED,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_segment_samples_left_out_total",
        "Total number of answers in no segment of a key, because their metadata do not have it.",
        Tally.SEGMENT_LEFT_OUT,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_segment_drift_alarm",
        "Whether the newest answers of a segment are worse than their baseline (1) or not (0).",
        Gauge.SEGMENT_DRIFT_ALARM,
    ),
    SeriesDefinition(
        "ragwatch_segment_drift_change_start_timestamp_seconds",
        "Estimated Unix timestamp of the first answer after the change that an active alarm of a segment is about.",
        Gauge.SEGMENT_DRIFT_BEGAN,
    ),
    SeriesDefinition(
        "ragwatch_segment_drift_before_ratio",
        "Mean score of a segment before the change that an active alarm is about, between 0 and 1.",
        Gauge.SEGMENT_DRIFT_BEFORE,
    ),
    SeriesDefinition(
        "ragwatch_segment_drift_since_ratio",
        "Mean score of a segment since the change that an active alarm is about, between 0 and 1.",
        Gauge.SEGMENT_DRIFT_SINCE,
    ),
    SeriesDefinition(
        "ragwatch_segment_drift_since_samples",
        "Number of scores of a segment since the change that an active alarm is about.",
        Gauge.SEGMENT_DRIFT_ANSWERS,
    ),
    SeriesDefinition(
        "ragwatch_segment_drift_missing_detectors",
        "Number of quantities of segments on routes that have no drift detector, because there are too many.",
        Gauge.DRIFT_UNWATCHED,
    ),
)
