"""Quality: the series that every quantity has. `{q}` stands for the quantity, in names and in texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from ragwatch.core.scores import Quantity
from ragwatch.core.tally import Tally
from ragwatch.exporter.series import Figure, Kind, Series

MEANINGS: Mapping[Quantity, str] = MappingProxyType(
    {
        Quantity.FAITHFULNESS: "share of the claims of an answer that its contexts support",
        Quantity.CONTRADICTION: "share of the claims of an answer that its contexts contradict; lower is better",
        Quantity.CONTEXT_PRECISION: "how far up the ranking the contexts stand that helped the answer",
        Quantity.CONTEXT_SENTENCE_PRECISION: "share of the retrieved sentences that are relevant",
        Quantity.ANSWER_RELEVANCY: "how far an answer addresses its question; abstentions are left out",
        Quantity.NEED_RECALL: "share of the parts of a question that the contexts can answer",
        Quantity.TOP_RANKED_IGNORED: "share of answers that make no use of the top-ranked context; lower is better",
        Quantity.CONTEXT_USE: "share of the retrieved contexts that an answer uses",
    }
)

_WINDOW = ("route", "judge", "window", "corrected")
_PAIR = ("route", "judge")

TEMPLATES: tuple[Series, ...] = (
    Series(
        "ragwatch_{q}_ratio",
        Kind.GAUGE,
        "Estimated mean {q} over the window, 0 to 1, as of the last digest.",
        _WINDOW,
        Figure.RATIO,
    ),
    Series(
        "ragwatch_{q}_ratio_low",
        Kind.GAUGE,
        "Lower end of the confidence interval of mean {q}, 0 to 1, as of the last digest.",
        _WINDOW,
        Figure.RATIO_LOW,
    ),
    Series(
        "ragwatch_{q}_ratio_high",
        Kind.GAUGE,
        "Upper end of the confidence interval of mean {q}, 0 to 1, as of the last digest.",
        _WINDOW,
        Figure.RATIO_HIGH,
    ),
    Series(
        "ragwatch_{q}_ratio_bound_low",
        Kind.GAUGE,
        "Mean {q} if every unjudged draw had scored 0, 0 to 1, as of the last digest.",
        _WINDOW,
        Figure.RATIO_BOUND_LOW,
    ),
    Series(
        "ragwatch_{q}_ratio_bound_high",
        Kind.GAUGE,
        "Mean {q} if every unjudged draw had scored 1, 0 to 1, as of the last digest.",
        _WINDOW,
        Figure.RATIO_BOUND_HIGH,
    ),
    Series(
        "ragwatch_{q}_samples",
        Kind.GAUGE,
        "Number of scored answers behind the estimate of {q}, as of the last digest.",
        _WINDOW,
        Figure.SAMPLES,
    ),
    Series(
        "ragwatch_{q}_effective_samples",
        Kind.GAUGE,
        "Number of equally weighted answers that would tell as much about {q} (Kish), as of the last digest.",
        _WINDOW,
        Figure.EFFECTIVE_SAMPLES,
    ),
    Series(
        "ragwatch_{q}_last_sample_timestamp_seconds",
        Kind.GAUGE,
        "When the newest answer scored for {q} was given, in seconds since the epoch, as of the last digest.",
        _PAIR,
        Figure.LAST_SAMPLE,
    ),
    Series(
        "ragwatch_{q}_weight_total",
        Kind.COUNTER,
        "Sum of sampling weights w = 1 / inclusion probability of answers scored for {q}; adds up over replicas.",
        _PAIR,
        Tally.W,
        from_zero=True,
    ),
    Series(
        "ragwatch_{q}_weighted_score_total",
        Kind.COUNTER,
        "Sum of w * score for {q}; divided by the weight it is the mean.",
        _PAIR,
        Tally.WX,
        from_zero=True,
    ),
    Series(
        "ragwatch_{q}_squared_weight_total",
        Kind.COUNTER,
        "Sum of w^2 of answers scored for {q}; for the standard error.",
        _PAIR,
        Tally.W2,
        from_zero=True,
    ),
    Series(
        "ragwatch_{q}_squared_weight_score_total",
        Kind.COUNTER,
        "Sum of w^2 * score for {q}; for the standard error.",
        _PAIR,
        Tally.W2X,
        from_zero=True,
    ),
    Series(
        "ragwatch_{q}_squared_weight_squared_score_total",
        Kind.COUNTER,
        "Sum of w^2 * score^2 for {q}; for the standard error.",
        _PAIR,
        Tally.W2X2,
        from_zero=True,
    ),
    Series(
        "ragwatch_{q}_score",
        Kind.HISTOGRAM,
        "Scores of single answers for {q}, 0 to 1, unweighted, since the state directory was made.",
        _PAIR,
        Tally.SCORE,
    ),
)


def of_quantity(template: Series, quantity: Quantity) -> Series:
    """A template filled in for one quantity.

    >>> of_quantity(TEMPLATES[0], Quantity.CONTEXT_USE).name
    'ragwatch_context_use_ratio'
    """
    said = f"{quantity} ({MEANINGS[quantity]})"
    return replace(
        template, name=template.name.format(q=quantity), help=template.help.format(q=said), quantity=quantity
    )
