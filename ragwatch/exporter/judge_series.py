"""Series of judges: calls, cost, circuit breaker, prompt injection and self-tests."""

from __future__ import annotations

from ragwatch.core.tally import Tally
from ragwatch.exporter.series import Figure, Kind, Series
from ragwatch.telemetry import Count, Level

_CALL = ("judge", "model")
_C, _G, _H, _I = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM, Kind.INFO

JUDGES: tuple[Series, ...] = (
    Series(
        "ragwatch_judge_calls_total",
        _C,
        "Total number of calls to a judge since the process started.",
        _CALL,
        Count.JUDGE_CALLS,
    ),
    Series(
        "ragwatch_judge_call_failures_total",
        _C,
        "Total number of failed calls to a judge since the process started, by reason.",
        (*_CALL, "reason"),
        Count.JUDGE_FAILURES,
    ),
    Series(
        "ragwatch_judge_call_duration_seconds",
        _H,
        "Duration of calls to a judge in seconds, since the process started.",
        _CALL,
        Count.JUDGE_SECONDS,
    ),
    Series(
        "ragwatch_judge_tokens_total",
        _C,
        "Total number of tokens sent to and received from a judge since the process started, by direction.",
        (*_CALL, "direction"),
        Count.JUDGE_TOKENS,
    ),
    Series(
        "ragwatch_judge_cost_dollars_total",
        _C,
        "Total cost of the calls to a judge in US dollars since the process started.",
        _CALL,
        Count.JUDGE_COST,
    ),
    Series(
        "ragwatch_judge_info",
        _I,
        "Kind and version of a judge; the value is always 1.",
        ("judge", "kind", "version"),
        Figure.JUDGES,
    ),
    Series(
        "ragwatch_judge_retries_total",
        _C,
        "Total number of failed calls to a judge that were retried immediately, since the process started.",
        _CALL,
        Count.JUDGE_RETRIES,
    ),
    Series(
        "ragwatch_judge_unquoted_cells_total",
        _C,
        "Total number of claims called supported without a verbatim quote from the context, since the process started.",
        ("judge",),
        Count.JUDGE_UNQUOTED,
        from_zero=True,
    ),
    Series(
        "ragwatch_judge_fallback",
        _G,
        "Whether a judge runs without its model and falls back to the lexical judge (1) or not (0).",
        ("judge",),
        Level.JUDGE_FALLBACK,
    ),
    Series(
        "ragwatch_judge_left_to_words_total",
        _C,
        "Total number of claims that the lexical judge read instead of the model since the process started, by reason.",
        ("judge", "reason"),
        Count.JUDGE_LEFT_TO_WORDS,
    ),
    Series(
        "ragwatch_judge_instructions_total",
        _C,
        "Total number of texts with suspected prompt injection sent to a judge, since the process started, by place.",
        ("judge", "place"),
        Count.INSTRUCTIONS,
        from_zero=True,
    ),
    Series(
        "ragwatch_judge_breaker_open",
        _G,
        "Whether the circuit breaker of a judge is open, so that it gets no calls (1), or not (0).",
        ("judge",),
        Level.BREAKER_OPEN,
    ),
    Series(
        "ragwatch_judge_rate_limit_remaining_ratio",
        _G,
        "Remaining share of the rate limit of the provider after the last call, between 0 and 1.",
        ("judge", "limit"),
        Level.RATE_LIMIT_LEFT,
    ),
    Series(
        "ragwatch_judge_sampling_probability",
        _G,
        "Probability with which a judge reads a draw, between 0 and 1, before uncertainty raises it.",
        ("judge",),
        Figure.SHARE,
    ),
    Series(
        "ragwatch_judge_budget_remaining_ratio",
        _G,
        "Remaining share of the budget of a judge in its scarcest period, between 0 and 1, as of the last digest.",
        ("judge",),
        Figure.BUDGET_LEFT,
    ),
    Series(
        "ragwatch_judge_repeat_agreement_ratio",
        _G,
        "Share of answers with the same score in two readings by a judge, between 0 and 1, as of the last digest.",
        ("judge", "quantity"),
        Figure.REPEAT_AGREEMENT,
    ),
    Series(
        "ragwatch_judge_probe_fooled_ratio",
        _G,
        "Share of known-bad answers with a prompt injection that a judge accepted, 0 to 1, as of the last digest.",
        ("judge",),
        Figure.FOOLED,
    ),
    Series(
        "ragwatch_judge_repeats_total",
        _C,
        "Total number of answers that a judge read twice, by quantity scored in either reading.",
        ("judge", "version", "quantity"),
        Tally.REPEATED,
    ),
    Series(
        "ragwatch_judge_repeats_alike_total",
        _C,
        "Total number of answers that a judge read twice and scored the same.",
        ("judge", "version", "quantity"),
        Tally.REPEATED_ALIKE,
    ),
    Series(
        "ragwatch_judge_probes_total",
        _C,
        "Total number of known-bad answers given to a judge as a test.",
        ("judge", "version"),
        Tally.KNOWN_BAD,
    ),
    Series(
        "ragwatch_judge_probes_fooled_total",
        _C,
        "Total number of known-bad answers that a judge accepted.",
        ("judge", "version"),
        Tally.FOOLED,
    ),
)
