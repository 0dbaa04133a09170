"""Defines the series of judges (calls, cost, circuit breaker, prompt injection, self-tests) and of canaries."""

from __future__ import annotations

from enum import StrEnum

from ragwatch.exporter.figures import FromSnapshot, by_name, per_judge
from ragwatch.exporter.series import SeriesDefinition
from ragwatch.statistics.canary.definition import Failure
from ragwatch.statistics.canary.metric import CanaryMetric
from ragwatch.statistics.snapshot import Gauge
from ragwatch.statistics.tally import Tally
from ragwatch.telemetry import EventCount, GaugeLevel


class InjectionPlace(StrEnum):
    """Part of a sample in which a prompt injection may occur."""

    QUESTION = "question"
    CONTEXT = "context"
    ANSWER = "answer"


JUDGES: tuple[SeriesDefinition, ...] = (
    SeriesDefinition(EventCount.JUDGE_CALLS, "Total number of calls to a judge since the process started."),
    SeriesDefinition(
        EventCount.JUDGE_FAILURES, "Total number of failed calls to a judge since the process started, by reason."
    ),
    SeriesDefinition(EventCount.JUDGE_SECONDS, "Duration of calls to a judge in seconds, since the process started."),
    SeriesDefinition(
        EventCount.JUDGE_TOKENS,
        "Total number of tokens sent to and received from a judge since the process started, by direction.",
    ),
    SeriesDefinition(
        EventCount.JUDGE_COST, "Total cost of the calls to a judge in US dollars since the process started."
    ),
    SeriesDefinition(
        FromSnapshot(
            ("judge", "kind", "version"),
            lambda snapshot: [((name, *about), 1) for name, about in snapshot.judges.items()],
        ),
        "Kind and version of a judge; the value is always 1.",
        "ragwatch_judge_info",
    ),
    SeriesDefinition(
        EventCount.JUDGE_RETRIES,
        "Total number of failed calls to a judge that were retried immediately, since the process started.",
    ),
    SeriesDefinition(
        EventCount.JUDGE_CHECKED,
        "Total number of readings whose quotes were checked (LLM judges, no self-tests), since the process started.",
        from_zero=True,
    ),
    SeriesDefinition(
        EventCount.JUDGE_UNQUOTED,
        "Total number of claims called supported without a verbatim quote from the context, since the process started.",
        from_zero=True,
    ),
    SeriesDefinition(
        GaugeLevel.JUDGE_FALLBACK,
        "Whether a judge runs without its model and falls back to the lexical judge (1) or not (0).",
    ),
    SeriesDefinition(
        EventCount.JUDGE_LEFT_TO_WORDS,
        "Total number of claims that the lexical judge read instead of the model since the process started, by reason.",
    ),
    SeriesDefinition(
        EventCount.INSTRUCTIONS,
        "Total number of texts with suspected prompt injection sent to a judge, since the process started, by place.",
        from_zero=True,
        values=InjectionPlace,
    ),
    SeriesDefinition(
        EventCount.READ_AGAIN,
        "Total number of readings repeated without a suspected prompt injection since the process started, by outcome.",
    ),
    SeriesDefinition(
        GaugeLevel.BREAKER_OPEN,
        "Whether the circuit breaker of a judge is open, so that it gets no calls (1), or not (0).",
    ),
    SeriesDefinition(
        GaugeLevel.RATE_LIMIT_LEFT,
        "Remaining share of the rate limit of the provider after the last call, between 0 and 1.",
    ),
    SeriesDefinition(
        by_name("judge", "shares"),
        "Probability with which a judge reads a draw, between 0 and 1, before uncertainty raises it.",
        "ragwatch_judge_sampling_probability",
    ),
    SeriesDefinition(
        by_name("judge", "budgets"),
        "Remaining share of the budget of a judge in its scarcest period, between 0 and 1, as of the last digest.",
        "ragwatch_judge_budget_remaining_ratio",
    ),
    SeriesDefinition(
        per_judge(Tally.REPEATED_ALIKE, Tally.REPEATED),
        "Share of answers with the same score in two readings by a judge, between 0 and 1, as of the last digest.",
        "ragwatch_judge_repeat_agreement_ratio",
    ),
    SeriesDefinition(
        per_judge(Tally.FOOLED, Tally.KNOWN_BAD),
        "Share of known-bad answers with a prompt injection that a judge accepted, 0 to 1, as of the last digest.",
        "ragwatch_judge_probe_fooled_ratio",
    ),
    SeriesDefinition(
        per_judge(Tally.PADDING_PREFERRED, Tally.PADDED),
        "Share of known-bad answers that a judge scored higher when padded to three times the length, 0 to 1.",
        "ragwatch_judge_padding_preferred_ratio",
    ),
    SeriesDefinition(
        Tally.REJUDGED,
        "Total number of stored answers that a judge read again for `ragwatch rejudge`; they are in no estimate.",
        "ragwatch_judge_rejudged_total",
    ),
    SeriesDefinition(
        Tally.REPEATED,
        "Total number of answers that a judge read twice, by quantity scored in either reading.",
        "ragwatch_judge_repeats_total",
    ),
    SeriesDefinition(
        Tally.REPEATED_ALIKE,
        "Total number of answers that a judge read twice and scored the same.",
        "ragwatch_judge_repeats_alike_total",
    ),
    SeriesDefinition(
        Tally.KNOWN_BAD, "Total number of known-bad answers given to a judge as a test.", "ragwatch_judge_probes_total"
    ),
    SeriesDefinition(
        Tally.FOOLED, "Total number of known-bad answers that a judge accepted.", "ragwatch_judge_probes_fooled_total"
    ),
    SeriesDefinition(
        Tally.PADDED,
        "Total number of known-bad answers given to a judge as they are and padded, and scored in both readings.",
        "ragwatch_judge_padding_tests_total",
    ),
    SeriesDefinition(
        Tally.PADDING_PREFERRED,
        "Total number of known-bad answers that a judge scored higher when padded.",
        "ragwatch_judge_padding_preferred_total",
    ),
)


_BY_SUITE, _BY_CATEGORY = (
    tuple(
        SeriesDefinition(
            series.by_category if part else series.gauge,
            f"{series.measures}, mean over the {whole} at {run}, between 0 and 1.",
        )
        for series in (metric.row.series for metric in CanaryMetric)
        if series is not None
    )
    for part, whole, run in (("", "suite", "its last run"), ("category_", "canaries of a category", "the last run"))
)

CANARIES: tuple[SeriesDefinition, ...] = (
    SeriesDefinition(
        Gauge.CANARY_SUCCESS, "Whether the canary retrieved its expected contexts at the last run (1) or not (0)."
    ),
    *_BY_SUITE,
    SeriesDefinition(Gauge.CANARY_DEGRADED, "Number of canaries degraded at the last run."),
    *_BY_CATEGORY,
    SeriesDefinition(Gauge.CANARY_CATEGORY_DEGRADED, "Number of canaries of a category degraded at the last run."),
    SeriesDefinition(
        Tally.CANARY_RUNS, "Total number of runs of a canary suite.", "ragwatch_canary_runs_total", from_zero=True
    ),
    SeriesDefinition(
        Tally.CANARY_FAILURES,
        "Total number of canary queries without a usable reply, by reason; they yield no score.",
        "ragwatch_canary_failures_total",
        from_zero=True,
        values=Failure,
    ),
    SeriesDefinition(Gauge.CANARY_LAST_RUN, "Unix timestamp of the last run of a canary suite."),
    SeriesDefinition(
        Gauge.CANARY_LAST_SUCCESS,
        "Unix timestamp of the last run in which every canary query of the suite got a usable reply.",
    ),
    SeriesDefinition(
        Tally.CANARY_SECONDS, "Duration of a canary query in seconds.", "ragwatch_canary_duration_seconds"
    ),
    SeriesDefinition(
        Gauge.CANARY_ANSWER,
        "Mean score of the answers to a canary suite at its last run, for retrieved or for expected contexts, 0 to 1.",
    ),
)
