"""Defines the series of feedback: what users say of answers, beside what judges say."""

from __future__ import annotations

from ragwatch.core.tally import Tally
from ragwatch.exporter.series import GaugeSource, SeriesDefinition

FEEDBACK: tuple[SeriesDefinition, ...] = (
    SeriesDefinition(
        "ragwatch_user_score_ratio",
        "Mean score by users of the answers that they chose to rate, between 0 and 1, as of the last digest.",
        GaugeSource.USER_SCORE,
    ),
    SeriesDefinition(
        "ragwatch_user_score_ratio_low",
        "Lower limit of the confidence interval for the mean score by users, between 0 and 1, as of the last digest.",
        GaugeSource.USER_SCORE_LOW,
    ),
    SeriesDefinition(
        "ragwatch_user_score_ratio_high",
        "Upper limit of the confidence interval for the mean score by users, between 0 and 1, as of the last digest.",
        GaugeSource.USER_SCORE_HIGH,
    ),
    SeriesDefinition(
        "ragwatch_user_score_ratio_bound_low",
        "Worst-case (Manski) lower bound: every answer without feedback counts as 0, as of the last digest.",
        GaugeSource.USER_SCORE_BOUND_LOW,
    ),
    SeriesDefinition(
        "ragwatch_user_score_ratio_bound_high",
        "Worst-case (Manski) upper bound: every answer without feedback counts as 1, as of the last digest.",
        GaugeSource.USER_SCORE_BOUND_HIGH,
    ),
    SeriesDefinition(
        "ragwatch_user_score_response_ratio",
        "Share of the sampled answers that have feedback, which users choose, 0 to 1, as of the last digest.",
        GaugeSource.USER_SCORE_RESPONSE,
    ),
    SeriesDefinition(
        "ragwatch_user_score_samples",
        "Number of sampled answers with feedback over the window, as of the last digest.",
        GaugeSource.USER_SCORE_SAMPLES,
    ),
    SeriesDefinition(
        "ragwatch_user_score_effective_samples",
        "Effective sample size (Kish) of the mean score by users, as of the last digest.",
        GaugeSource.USER_SCORE_EFFECTIVE,
    ),
    SeriesDefinition(
        "ragwatch_user_score_last_sample_timestamp_seconds",
        "Unix timestamp of the newest sampled answer that has feedback, as of the last digest.",
        GaugeSource.USER_SCORE_LAST,
    ),
    SeriesDefinition(
        "ragwatch_user_score_correlation_ratio",
        "Correlation (Pearson) of scores by users and by a judge over rated answers of the longest window, -1 to 1.",
        GaugeSource.USER_CORRELATION,
    ),
    SeriesDefinition(
        "ragwatch_user_score_correlation_ratio_low",
        "Lower limit of the confidence interval for the correlation of scores by users and by a judge, -1 to 1.",
        GaugeSource.USER_CORRELATION_LOW,
    ),
    SeriesDefinition(
        "ragwatch_user_score_correlation_ratio_high",
        "Upper limit of the confidence interval for the correlation of scores by users and by a judge, -1 to 1.",
        GaugeSource.USER_CORRELATION_HIGH,
    ),
    SeriesDefinition(
        "ragwatch_user_score_correlation_samples",
        "Number of answers with both a score by a user and one by a judge, in the correlation of the two.",
        GaugeSource.USER_CORRELATION_SAMPLES,
    ),
    SeriesDefinition(
        "ragwatch_feedback_total",
        "Total number of ratings received from users, by outcome: joined to its sample, or why not.",
        Tally.FEEDBACK,
    ),
)
