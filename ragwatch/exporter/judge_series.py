"""Defines the series of judges (calls, cost, circuit breaker, prompt injection, self-tests) and of canaries."""

from __future__ import annotations

from enum import StrEnum

from ragwatch.core.canary.definition import Failure
from ragwatch.core.canary.metric import CanaryMetric
from ragwatch.core.snapshot import Gauge
from ragwatch.core.tally import Tally
from ragwatch.exporter.figures import FromSnapshot, by_name, per_judge
from ragwatch.exporter.series import SeriesDefinition
from ragwatch.telemetry import EventCount, GaugeLevel


class InjectionPlace(StrEnum):
    """Part of a sample in which a prompt injection may occur."""

    QUESTION = "question"
    CONTEXT = "context"
    ANSWER = "answer"


JUDGES: tuple[SeriesDefinition, ...] = (
    SeriesDefinition(
        "ragwatch_judge_calls_total",
        "Total number of calls to a judge since the process started.",
        EventCount.JUDGE_CALLS,
    ),
    SeriesDefinition(
        "ragwatch_judge_call_failures_total",
        "Total number of failed calls to a judge since the process started, by reason.",
        EventCount.JUDGE_FAILURES,
    ),
    SeriesDefinition(
        "ragwatch_judge_call_duration_seconds",
        "Duration of calls to a judge in seconds, since the process started.",
        EventCount.JUDGE_SECONDS,
    ),
    SeriesDefinition(
        "ragwatch_judge_tokens_total",
        "Total number of tokens sent to and received from a judge since the process started, by direction.",
        EventCount.JUDGE_TOKENS,
    ),
    SeriesDefinition(
        "ragwatch_judge_cost_dollars_total",
        "Total cost of the calls to a judge in US dollars since the process started.",
        EventCount.JUDGE_COST,
    ),
    SeriesDefinition(
        "ragwatch_judge_info",
        "Kind and version of a judge; the value is always 1.",
        FromSnapshot(
            ("judge", "kind", "version"),
            lambda snapshot: [((name, *about), 1) for name, about in snapshot.judges.items()],
        ),
    ),
    SeriesDefinition(
        "ragwatch_judge_retries_total",
        "Total number of failed calls to a judge that were retried immediately, since the process started.",
        EventCount.JUDGE_RETRIES,
    ),
    SeriesDefinition(
        "ragwatch_judge_checked_readings_total",
        "Total number of readings whose quotes were checked (LLM judges, no self-tests), since the process started.",
        EventCount.JUDGE_CHECKED,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_judge_unquoted_cells_total",
        "Total number of claims called supported without a verbatim quote from the context, since the process started.",
        EventCount.JUDGE_UNQUOTED,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_judge_fallback",
        "Whether a judge runs without its model and falls back to the lexical judge (1) or not (0).",
        GaugeLevel.JUDGE_FALLBACK,
    ),
    SeriesDefinition(
        "ragwatch_judge_left_to_words_total",
        "Total number of claims that the lexical judge read instead of the model since the process started, by reason.",
        EventCount.JUDGE_LEFT_TO_WORDS,
    ),
    SeriesDefinition(
        "ragwatch_judge_instructions_total",
        "Total number of texts with suspected prompt injection sent to a judge, since the process started, by place.",
        EventCount.INSTRUCTIONS,
        from_zero=True,
        values=InjectionPlace,
    ),
    SeriesDefinition(
        "ragwatch_judge_second_readings_total",
        "Total number of readings repeated without a suspected prompt injection since the process started, by outcome.",
        EventCount.READ_AGAIN,
    ),
    SeriesDefinition(
        "ragwatch_judge_breaker_open",
        "Whether the circuit breaker of a judge is open, so that it gets no calls (1), or not (0).",
        GaugeLevel.BREAKER_OPEN,
    ),
    SeriesDefinition(
        "ragwatch_judge_rate_limit_remaining_ratio",
        "Remaining share of the rate limit of the provider after the last call, between 0 and 1.",
        GaugeLevel.RATE_LIMIT_LEFT,
    ),
    SeriesDefinition(
        "ragwatch_judge_sampling_probability",
        "Probability with which a judge reads a draw, between 0 and 1, before uncertainty raises it.",
        by_name("judge", "shares"),
    ),
    SeriesDefinition(
        "ragwatch_judge_budget_remaining_ratio",
        "Remaining share of the budget of a judge in its scarcest period, between 0 and 1, as of the last digest.",
        by_name("judge", "budgets"),
    ),
    SeriesDefinition(
        "ragwatch_judge_repeat_agreement_ratio",
        "Share of answers with the same score in two readings by a judge, between 0 and 1, as of the last digest.",
        per_judge(Tally.REPEATED_ALIKE, Tally.REPEATED),
    ),
    SeriesDefinition(
        "ragwatch_judge_probe_fooled_ratio",
        "Share of known-bad answers with a prompt injection that a judge accepted, 0 to 1, as of the last digest.",
        per_judge(Tally.FOOLED, Tally.KNOWN_BAD),
    ),
    SeriesDefinition(
        "ragwatch_judge_padding_preferred_ratio",
        "Share of known-bad answers that a judge scored higher when padded to three times the length, 0 to 1.",
        per_judge(Tally.PADDING_PREFERRED, Tally.PADDED),
    ),
    SeriesDefinition(
        "ragwatch_judge_rejudged_total",
        "Total number of stored answers that a judge read again for `ragwatch rejudge`; they are in no estimate.",
        Tally.REJUDGED,
    ),
    SeriesDefinition(
        "ragwatch_judge_repeats_total",
        "Total number of answers that a judge read twice, by quantity scored in either reading.",
        Tally.REPEATED,
    ),
    SeriesDefinition(
        "ragwatch_judge_repeats_alike_total",
        "Total number of answers that a judge read twice and scored the same.",
        Tally.REPEATED_ALIKE,
    ),
    SeriesDefinition(
        "ragwatch_judge_probes_total",
        "Total number of known-bad answers given to a judge as a test.",
        Tally.KNOWN_BAD,
    ),
    SeriesDefinition(
        "ragwatch_judge_probes_fooled_total",
        "Total number of known-bad answers that a judge accepted.",
        Tally.FOOLED,
    ),
    SeriesDefinition(
        "ragwatch_judge_padding_tests_total",
        "Total number of known-bad answers given to a judge as they are and padded, and scored in both readings.",
        Tally.PADDED,
    ),
    SeriesDefinition(
        "ragwatch_judge_padding_preferred_total",
        "Total number of known-bad answers that a judge scored higher when padded.",
        Tally.PADDING_PREFERRED,
    ),
)


_BY_SUITE, _BY_CATEGORY = (
    tuple(
        SeriesDefinition(
            f"ragwatch_canary_{part}{series.name}_ratio",
            f"{series.measures}, mean over the {whole} at {run}, between 0 and 1.",
            series.by_category if part else series.gauge,
        )
        for series in (metric.row.series for metric in CanaryMetric)
        if series is not None
    )
    for part, whole, run in (("", "suite", "its last run"), ("category_", "canaries of a category", "the last run"))
)

CANARIES: tuple[SeriesDefinition, ...] = (
    SeriesDefinition(
        "ragwatch_canary_success",
        "Whether the canary retrieved its expected contexts at the last run (1) or not (0).",
        Gauge.CANARY_SUCCESS,
    ),
    *_BY_SUITE,
    SeriesDefinition(
        "ragwatch_canary_degraded",
        "Number of canaries degraded at the last run.",
        Gauge.CANARY_DEGRADED,
    ),
    *_BY_CATEGORY,
    SeriesDefinition(
        "ragwatch_canary_category_degraded",
        "Number of canaries of a category degraded at the last run.",
        Gauge.CANARY_CATEGORY_DEGRADED,
    ),
    SeriesDefinition(
        "ragwatch_canary_runs_total",
        "Total number of runs of a canary suite.",
        Tally.CANARY_RUNS,
        from_zero=True,
    ),
    SeriesDefinition(
        "ragwatch_canary_failures_total",
        "Total number of canary queries without a usable reply, by reason; they yield no score.",
        Tally.CANARY_FAILURES,
        from_zero=True,
        values=Failure,
    ),
    SeriesDefinition(
        "ragwatch_canary_last_run_timestamp_seconds",
        "Unix timestamp of the last run of a canary suite.",
        Gauge.CANARY_LAST_RUN,
    ),
    SeriesDefinition(
        "ragwatch_canary_last_success_timestamp_seconds",
        "Unix timestamp of the last run in which every canary query of the suite got a usable reply.",
        Gauge.CANARY_LAST_SUCCESS,
    ),
    SeriesDefinition(
        "ragwatch_canary_duration_seconds",
        "Duration of a canary query in seconds.",
        Tally.CANARY_SECONDS,
    ),
    SeriesDefinition(
        "ragwatch_canary_answer_ratio",
        "Mean score of the answers to a canary suite at its last run, for retrieved or for expected contexts, 0 to 1.",
        Gauge.CANARY_ANSWER,
    ),
)
