"""Defines templates of the series that every quantity has. `{q}` stands for the quantity, in names and in HELP."""

from __future__ import annotations

from dataclasses import replace

from ragwatch.core.tally import Tally
from ragwatch.exporter.series import GaugeSource, SeriesDefinition
from ragwatch.model.quantities import Quantity

TEMPLATES: tuple[SeriesDefinition, ...] = (
    SeriesDefinition(
        "ragwatch_{q}_ratio",
        "Estimated mean {q} over the window, between 0 and 1, as of the last digest: of the judge, or its level, in "
        "people's terms (corrected yes).",
        GaugeSource.RATIO,
    ),
    SeriesDefinition(
        "ragwatch_{q}_ratio_low",
        "Lower limit of the interval for mean {q}, between 0 and 1, as of the last digest. It contains sampling, and "
        "that of a level the error of the judge, too.",
        GaugeSource.RATIO_LOW,
    ),
    SeriesDefinition(
        "ragwatch_{q}_ratio_high",
        "Upper limit of the interval for mean {q}, between 0 and 1, as of the last digest. It contains sampling, and "
        "that of a level the error of the judge, too.",
        GaugeSource.RATIO_HIGH,
    ),
    SeriesDefinition(
        "ragwatch_{q}_ratio_bound_low",
        "Worst-case (Manski) lower bound of mean {q}: every unjudged draw counts as 0, as of the last digest.",
        GaugeSource.RATIO_BOUND_LOW,
    ),
    SeriesDefinition(
        "ragwatch_{q}_ratio_bound_high",
        "Worst-case (Manski) upper bound of mean {q}: every unjudged draw counts as 1, as of the last digest.",
        GaugeSource.RATIO_BOUND_HIGH,
    ),
    SeriesDefinition(
        "ragwatch_{q}_samples",
        "Number of scored answers in the estimate of {q}, as of the last digest.",
        GaugeSource.SAMPLES,
    ),
    SeriesDefinition(
        "ragwatch_{q}_effective_samples",
        "Effective sample size (Kish) of the estimate of {q}, as of the last digest.",
        GaugeSource.EFFECTIVE_SAMPLES,
    ),
    SeriesDefinition(
        "ragwatch_{q}_last_sample_timestamp_seconds",
        "Unix timestamp of the newest answer scored for {q}, as of the last digest.",
        GaugeSource.LAST_SAMPLE,
    ),
    SeriesDefinition(
        "ragwatch_{q}_weight_total",
        "Sum of sampling weights w = 1 / inclusion probability of answers scored for {q}; replicas can be summed.",
        Tally.W,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_{q}_weighted_score_total",
        "Sum of w * score of answers scored for {q}; divide by the weight total to get the mean.",
        Tally.WX,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_{q}_squared_weight_total",
        "Sum of w^2 of answers scored for {q}, for the standard error.",
        Tally.W2,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_{q}_squared_weight_score_total",
        "Sum of w^2 * score of answers scored for {q}, for the standard error.",
        Tally.W2X,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_{q}_squared_weight_squared_score_total",
        "Sum of w^2 * score^2 of answers scored for {q}, for the standard error.",
        Tally.W2X2,
        from_zero=True,
    ),
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
