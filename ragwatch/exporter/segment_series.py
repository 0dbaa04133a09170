"""Defines the series of segments: values of metadata keys by which estimates are split. None without `segments`."""

from __future__ import annotations

from ragwatch.core.tally import Tally
from ragwatch.exporter.series import GaugeSource, SeriesDefinition

SEGMENTS: tuple[SeriesDefinition, ...] = (
    SeriesDefinition(
        "ragwatch_segment_ratio",
        "Estimated mean of a quantity over the answers of a segment, between 0 and 1, as of the last digest.",
        GaugeSource.SEGMENT_RATIO,
    ),
    SeriesDefinition(
        "ragwatch_segment_ratio_low",
        "Lower limit of the confidence interval for the mean of a segment, between 0 and 1, as of the last digest.",
        GaugeSource.SEGMENT_RATIO_LOW,
    ),
    SeriesDefinition(
        "ragwatch_segment_ratio_high",
        "Upper limit of the confidence interval for the mean of a segment, between 0 and 1, as of the last digest.",
        GaugeSource.SEGMENT_RATIO_HIGH,
    ),
    SeriesDefinition(
        "ragwatch_segment_samples",
        "Number of scored answers in the estimate of a segment, as of the last digest.",
        GaugeSource.SEGMENT_SAMPLES,
    ),
    SeriesDefinition(
        "ragwatch_segment_effective_samples",
        "Effective sample size (Kish) of the estimate of a segment, as of the last digest.",
        GaugeSource.SEGMENT_EFFECTIVE,
    ),
    SeriesDefinition(
        "ragwatch_segment_last_sample_timestamp_seconds",
        "Unix timestamp of the newest answer of a segment that was scored for a quantity, as of the last digest.",
        GaugeSource.SEGMENT_LAST,
    ),
    SeriesDefinition(
        "ragwatch_segment_weight_total",
        "Sum of sampling weights w = 1 / inclusion probability of scored answers, by segment; replicas can be summed.",
        Tally.SEGMENT_W,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_segment_weighted_score_total",
        "Sum of w * score of scored answers, by segment; divide by the weight total to get the mean.",
        Tally.SEGMENT_WX,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_segment_squared_weight_total",
        "Sum of w^2 of scored answers, by segment, for the standard error.",
        Tally.SEGMENT_W2,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_segment_squared_weight_score_total",
        "Sum of w^2 * score of scored answers, by segment, for the standard error.",
        Tally.SEGMENT_W2X,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_segment_squared_weight_squared_score_total",
        "Sum of w^2 * score^2 of scored answers, by segment, for the standard error.",
        Tally.SEGMENT_W2X2,
        from_zero=True,
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
)
