"""Defines templates of the series that every quantity has, and the series of segments.

`{q}` stands for the quantity, in names and in HELP. Segments are values of metadata keys by which estimates are split;
without `segments` there are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ragwatch.exporter.figures import LAST_SAMPLE, FromSnapshot, estimated, segments
from ragwatch.exporter.series import SeriesDefinition
from ragwatch.model.quantities import Quantity
from ragwatch.statistics.snapshot import Gauge
from ragwatch.statistics.tally import Tally

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
        yield SeriesDefinition(tally, text, f"ragwatch_{of}_{name}_total", from_zero=True)


TEMPLATES: tuple[SeriesDefinition, ...] = (
    SeriesDefinition(
        estimated("value"),
        "Estimated mean {q} over the window, between 0 and 1, as of the last digest: of the judge, or its level, in "
        "people's terms (corrected yes).",
        "ragwatch_{q}_ratio",
    ),
    SeriesDefinition(
        estimated("low"),
        "Lower limit of the interval for mean {q}, between 0 and 1, as of the last digest. It contains sampling, and "
        "that of a level the error of the judge, too.",
        "ragwatch_{q}_ratio_low",
    ),
    SeriesDefinition(
        estimated("high"),
        "Upper limit of the interval for mean {q}, between 0 and 1, as of the last digest. It contains sampling, and "
        "that of a level the error of the judge, too.",
        "ragwatch_{q}_ratio_high",
    ),
    SeriesDefinition(
        estimated("bound_low"),
        "Worst-case (Manski) lower bound of mean {q}: every unjudged draw counts as 0, as of the last digest.",
        "ragwatch_{q}_ratio_bound_low",
    ),
    SeriesDefinition(
        estimated("bound_high"),
        "Worst-case (Manski) upper bound of mean {q}: every unjudged draw counts as 1, as of the last digest.",
        "ragwatch_{q}_ratio_bound_high",
    ),
    SeriesDefinition(
        estimated("n"),
        "Number of scored answers in the estimate of {q}, as of the last digest.",
        "ragwatch_{q}_samples",
    ),
    SeriesDefinition(
        estimated("n_eff"),
        "Effective sample size (Kish) of the estimate of {q}, as of the last digest.",
        "ragwatch_{q}_effective_samples",
    ),
    SeriesDefinition(
        LAST_SAMPLE,
        "Unix timestamp of the newest answer scored for {q}, as of the last digest.",
        "ragwatch_{q}_last_sample_timestamp_seconds",
    ),
    *_sums("{q}", "answers scored for {q}", (Tally.W, Tally.WX, Tally.W2, Tally.W2X, Tally.W2X2)),
    SeriesDefinition(
        Tally.SCORE,
        "Scores of single answers for {q}, between 0 and 1, unweighted, since the state directory was created.",
        "ragwatch_{q}_score",
    ),
)


def series_names(quantity: str) -> tuple[str, ...]:
    """Names of all series of a quantity.

    >>> series_names("polite")[0]
    'ragwatch_polite_ratio'
    """
    return tuple(template.name.format(q=quantity) for template in TEMPLATES)


def of_quantity(template: SeriesDefinition, quantity: Quantity, meaning: str = "") -> SeriesDefinition:
    """Fills in a template for one quantity; of a criterion, `meaning` says what it measures.

    >>> of_quantity(TEMPLATES[0], Quantity.CONTEXT_USE).name
    'ragwatch_context_use_ratio'
    """
    described = f"{quantity} ({meaning or quantity.row.meaning})"
    return replace(
        template, name=template.name.format(q=quantity), help=template.help.format(q=described), quantity=quantity
    )


SEGMENTS: tuple[SeriesDefinition, ...] = (
    SeriesDefinition(
        segments("value"),
        "Estimated mean of a quantity over the answers of a segment, between 0 and 1, as of the last digest.",
        "ragwatch_segment_ratio",
    ),
    SeriesDefinition(
        segments("low"),
        "Lower limit of the confidence interval for the mean of a segment, between 0 and 1, as of the last digest.",
        "ragwatch_segment_ratio_low",
    ),
    SeriesDefinition(
        segments("high"),
        "Upper limit of the confidence interval for the mean of a segment, between 0 and 1, as of the last digest.",
        "ragwatch_segment_ratio_high",
    ),
    SeriesDefinition(
        segments("n"),
        "Number of scored answers in the estimate of a segment, as of the last digest.",
        "ragwatch_segment_samples",
    ),
    SeriesDefinition(
        segments("n_eff"),
        "Effective sample size (Kish) of the estimate of a segment, as of the last digest.",
        "ragwatch_segment_effective_samples",
    ),
    SeriesDefinition(
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
    SeriesDefinition(
        Tally.SEGMENT_JUDGED,
        "Total number of judged answers, by segment; a value that is not configured is `other`.",
        "ragwatch_segment_samples_judged_total",
        from_zero=True,
    ),
    SeriesDefinition(
        Tally.SEGMENT_UNJUDGED,
        "Total number of draws that no judge could read, by segment.",
        "ragwatch_segment_samples_unjudged_total",
        from_zero=True,
    ),
    SeriesDefinition(
        Tally.SEGMENT_LEFT_OUT,
        "Total number of answers in no segment of a key, because their metadata do not have it.",
        "ragwatch_segment_samples_left_out_total",
        from_zero=True,
    ),
    SeriesDefinition(
        Gauge.SEGMENT_DRIFT_ALARM,
        "Whether the newest answers of a segment are worse than their baseline (1) or not (0).",
    ),
    SeriesDefinition(
        Gauge.SEGMENT_DRIFT_BEGAN,
        "Estimated Unix timestamp of the first answer after the change that an active alarm of a segment is about.",
    ),
    SeriesDefinition(
        Gauge.SEGMENT_DRIFT_BEFORE,
        "Mean score of a segment before the change that an active alarm is about, between 0 and 1.",
    ),
    SeriesDefinition(
        Gauge.SEGMENT_DRIFT_SINCE,
        "Mean score of a segment since the change that an active alarm is about, between 0 and 1.",
    ),
    SeriesDefinition(
        Gauge.SEGMENT_DRIFT_ANSWERS, "Number of scores of a segment since the change that an active alarm is about."
    ),
    SeriesDefinition(
        Gauge.DRIFT_UNWATCHED,
        "Number of quantities of segments on routes that have no drift detector, because there are too many.",
    ),
)
