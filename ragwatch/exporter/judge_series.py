"""Series of judges: calls, money, and how far a judge can be trusted."""

from __future__ import annotations

from ragwatch.core.tally import Tally
from ragwatch.exporter.series import Figure, Kind, Series
from ragwatch.telemetry import Count, Level

_CALL = ("judge", "model")
_C, _G, _H, _I = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM, Kind.INFO

JUDGES: tuple[Series, ...] = (
    Series("ragwatch_judge_calls_total", _C, "Calls of a judge since the start.", _CALL, Count.JUDGE_CALLS),
    Series(
        "ragwatch_judge_call_failures_total",
        _C,
        "Calls of a judge that gave no reading, since the start.",
        (*_CALL, "reason"),
        Count.JUDGE_FAILURES,
    ),
    Series(
        "ragwatch_judge_call_duration_seconds",
        _H,
        "Wall time of calls of a judge in seconds, since the start.",
        _CALL,
        Count.JUDGE_SECONDS,
    ),
    Series(
        "ragwatch_judge_tokens_total",
        _C,
        "Tokens sent to and received from a judge since the start.",
        (*_CALL, "direction"),
        Count.JUDGE_TOKENS,
    ),
    Series(
        "ragwatch_judge_cost_dollars_total",
        _C,
        "Price of a judge's calls in US dollars, since the start.",
        _CALL,
        Count.JUDGE_COST,
    ),
    Series(
        "ragwatch_judge_info", _I, "Kind and version of a judge; always 1.", ("judge", "kind", "version"), Figure.JUDGES
    ),
    Series(
        "ragwatch_judge_retries_total",
        _C,
        "Calls of a judge that failed and were repeated at once, since the start.",
        _CALL,
        Count.JUDGE_RETRIES,
    ),
    Series(
        "ragwatch_judge_unquoted_cells_total",
        _C,
        "Claims that a judge called supported without a quote that stands in the context, since the start.",
        ("judge",),
        Count.JUDGE_UNQUOTED,
        from_zero=True,
    ),
    Series(
        "ragwatch_judge_fallback",
        _G,
        "Whether a judge whose model is missing or damaged lets words alone read, 1 or 0.",
        ("judge",),
        Level.JUDGE_FALLBACK,
    ),
    Series(
        "ragwatch_judge_left_to_words_total",
        _C,
        "Claims, alone or beside one context, that words decided instead of a judge's model, since the start.",
        ("judge", "reason"),
        Count.JUDGE_LEFT_TO_WORDS,
    ),
    Series(
        "ragwatch_judge_instructions_total",
        _C,
        "Texts handed to a judge that speak to the judge, by where they stood, since the start.",
        ("judge", "place"),
        Count.INSTRUCTIONS,
        from_zero=True,
    ),
    Series(
        "ragwatch_judge_breaker_open",
        _G,
        "Whether a judge is left alone for a while because it failed too often or for good, 1 or 0.",
        ("judge",),
        Level.BREAKER_OPEN,
    ),
    Series(
        "ragwatch_judge_rate_limit_remaining_ratio",
        _G,
        "Share of a provider's rate limit that was left after the last call, 0 to 1.",
        ("judge", "limit"),
        Level.RATE_LIMIT_LEFT,
    ),
    Series(
        "ragwatch_judge_sampling_probability",
        _G,
        "Probability, 0 to 1, with which a judge reads a draw at present, where it does not look at the draw first.",
        ("judge",),
        Figure.SHARE,
    ),
    Series(
        "ragwatch_judge_budget_remaining_ratio",
        _G,
        "Share of a judge's budget that is left in the span that is shortest of it, 0 to 1, as of the last digest.",
        ("judge",),
        Figure.BUDGET_LEFT,
    ),
    Series(
        "ragwatch_judge_repeat_agreement_ratio",
        _G,
        "Share of answers that a judge scored alike when it read them twice, 0 to 1, as of the last digest.",
        ("judge", "quantity"),
        Figure.REPEAT_AGREEMENT,
    ),
    Series(
        "ragwatch_judge_probe_fooled_ratio",
        _G,
        "Share of answers known to be bad, with an order to accept them, that a judge did accept, 0 to 1.",
        ("judge",),
        Figure.FOOLED,
    ),
    Series(
        "ragwatch_judge_repeats_total",
        _C,
        "Answers that a judge read twice, by quantity that either reading scored.",
        ("judge", "version", "quantity"),
        Tally.REPEATED,
    ),
    Series(
        "ragwatch_judge_repeats_alike_total",
        _C,
        "Answers that a judge scored alike when it read them twice.",
        ("judge", "version", "quantity"),
        Tally.REPEATED_ALIKE,
    ),
    Series(
        "ragwatch_judge_probes_total",
        _C,
        "Answers known to be bad that a judge has read, to test it.",
        ("judge", "version"),
        Tally.KNOWN_BAD,
    ),
    Series(
        "ragwatch_judge_probes_fooled_total",
        _C,
        "Answers known to be bad that a judge accepted.",
        ("judge", "version"),
        Tally.FOOLED,
    ),
)
