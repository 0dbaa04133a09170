"""Defines the series of what tells quality: judges (calls, cost, self-tests), canaries, drift and labels."""

from enum import StrEnum

from ragwatch.exporter.series import FromSnapshot, Series, by_name, of_origins, per_judge
from ragwatch.statistics.canary.definition import Failure
from ragwatch.statistics.canary.metric import EXPORTED
from ragwatch.statistics.snapshot import Gauge
from ragwatch.statistics.tally import Tally
from ragwatch.telemetry import EventCount, GaugeLevel


class InjectionPlace(StrEnum):
    """Part of a sample in which a prompt injection may occur."""

    QUESTION = "question"
    CONTEXT = "context"
    ANSWER = "answer"


JUDGES: tuple[Series, ...] = (
    *of_origins(
        {
            EventCount.JUDGE_CALLS: "Total number of calls to a judge since the process started.",
            EventCount.JUDGE_FAILURES: "Total number of failed calls to a judge since the process started, by reason.",
            EventCount.JUDGE_SECONDS: "Duration of calls to a judge in seconds, since the process started.",
            EventCount.JUDGE_TOKENS: "Total number of tokens sent to and received from a judge since the process "
            "started, by direction.",
            EventCount.JUDGE_COST: "Total cost of the calls to a judge in US dollars since the process started.",
        }
    ),
    Series(
        FromSnapshot(
            ("judge", "kind", "version"),
            lambda snapshot: [((name, *about), 1) for name, about in snapshot.judges.items()],
        ),
        "Kind and version of a judge; the value is always 1.",
        "ragwatch_judge_info",
    ),
    Series(
        EventCount.JUDGE_RETRIES,
        "Total number of failed calls to a judge that were retried immediately, since the process started.",
    ),
    Series(
        EventCount.JUDGE_CHECKED,
        "Total number of readings whose quotes were checked (LLM judges, no self-tests), since the process started.",
        from_zero=True,
    ),
    Series(
        EventCount.JUDGE_UNQUOTED,
        "Total number of claims called supported without a verbatim quote from the context, since the process started.",
        from_zero=True,
    ),
    Series(
        GaugeLevel.JUDGE_FALLBACK,
        "Whether a judge runs without its model and falls back to the lexical judge (1) or not (0).",
    ),
    Series(
        EventCount.JUDGE_LEFT_TO_WORDS,
        "Total number of claims that the lexical judge read instead of the model since the process started, by reason.",
    ),
    Series(
        EventCount.INSTRUCTIONS,
        "Total number of texts with suspected prompt injection sent to a judge, since the process started, by place.",
        values=InjectionPlace,
    ),
    Series(
        EventCount.READ_AGAIN,
        "Total number of readings repeated without a suspected prompt injection since the process started, by outcome.",
    ),
    Series(
        GaugeLevel.BREAKER_OPEN,
        "Whether the circuit breaker of a judge is open, so that it gets no calls (1), or not (0).",
    ),
    Series(
        GaugeLevel.RATE_LIMIT_LEFT,
        "Remaining share of the rate limit of the provider after the last call, between 0 and 1.",
    ),
    Series(
        by_name("judge", "shares"),
        "Probability with which a judge reads a draw, between 0 and 1, before uncertainty raises it.",
        "ragwatch_judge_sampling_probability",
    ),
    Series(
        by_name("judge", "budgets"),
        "Remaining share of the budget of a judge in its scarcest period, between 0 and 1, as of the last digest.",
        "ragwatch_judge_budget_remaining_ratio",
    ),
    Series(
        per_judge(Tally.REPEATED_ALIKE, Tally.REPEATED),
        "Share of answers with the same score in two readings by a judge, between 0 and 1, as of the last digest.",
        "ragwatch_judge_repeat_agreement_ratio",
    ),
    Series(
        per_judge(Tally.FOOLED, Tally.KNOWN_BAD),
        "Share of known-bad answers with a prompt injection that a judge accepted, 0 to 1, as of the last digest.",
        "ragwatch_judge_probe_fooled_ratio",
    ),
    Series(
        per_judge(Tally.PADDING_PREFERRED, Tally.PADDED),
        "Share of known-bad answers that a judge scored higher when padded to three times the length, 0 to 1.",
        "ragwatch_judge_padding_preferred_ratio",
    ),
    Series(
        Tally.REJUDGED,
        "Total number of stored answers that a judge read again for `ragwatch rejudge`; they are in no estimate.",
        "ragwatch_judge_rejudged_total",
    ),
    Series(
        Tally.REPEATED,
        "Total number of answers that a judge read twice, by quantity scored in either reading.",
        "ragwatch_judge_repeats_total",
    ),
    Series(
        Tally.REPEATED_ALIKE,
        "Total number of answers that a judge read twice and scored the same.",
        "ragwatch_judge_repeats_alike_total",
    ),
    Series(
        Tally.KNOWN_BAD, "Total number of known-bad answers given to a judge as a test.", "ragwatch_judge_probes_total"
    ),
    Series(
        Tally.FOOLED, "Total number of known-bad answers that a judge accepted.", "ragwatch_judge_probes_fooled_total"
    ),
    Series(
        Tally.PADDED,
        "Total number of known-bad answers given to a judge as they are and padded, and scored in both readings.",
        "ragwatch_judge_padding_tests_total",
    ),
    Series(
        Tally.PADDING_PREFERRED,
        "Total number of known-bad answers that a judge scored higher when padded.",
        "ragwatch_judge_padding_preferred_total",
    ),
)


_BY_SUITE, _BY_CATEGORY = (
    tuple(
        Series(
            row.by_category if part else row.gauge,
            f"{row.measures}, mean over the {whole} at {run}, between 0 and 1.",
        )
        for row in (metric.row for metric in EXPORTED)
    )
    for part, whole, run in (("", "suite", "its last run"), ("category_", "canaries of a category", "the last run"))
)

CANARIES: tuple[Series, ...] = (
    Series(Gauge.CANARY_SUCCESS, "Whether the canary retrieved its expected contexts at the last run (1) or not (0)."),
    *_BY_SUITE,
    Series(Gauge.CANARY_DEGRADED, "Number of canaries degraded at the last run."),
    *_BY_CATEGORY,
    Series(Gauge.CANARY_CATEGORY_DEGRADED, "Number of canaries of a category degraded at the last run."),
    Series(Tally.CANARY_RUNS, "Total number of runs of a canary suite.", from_zero=True),
    Series(
        Tally.CANARY_FAILURES,
        "Total number of canary queries without a usable reply, by reason; they yield no score.",
        values=Failure,
    ),
    Series(Gauge.CANARY_LAST_RUN, "Unix timestamp of the last run of a canary suite."),
    Series(
        Gauge.CANARY_LAST_SUCCESS,
        "Unix timestamp of the last run in which every canary query of the suite got a usable reply.",
    ),
    Series(Tally.CANARY_SECONDS, "Duration of a canary query in seconds.", "ragwatch_canary_duration_seconds"),
    Series(
        Gauge.CANARY_ANSWER,
        "Mean score of the answers to a canary suite at its last run, for retrieved or for expected contexts, 0 to 1.",
    ),
)


DRIFT: tuple[Series, ...] = (
    *of_origins(
        {
            Gauge.DRIFT_EVIDENCE: "Evidence of drift from the baseline, from 0 up to the threshold of an alarm, as of "
            "the last digest.",
            Gauge.DRIFT_THRESHOLD: "Evidence at which a drift alarm is raised: days between false alarms times the "
            "number of detectors.",
            Gauge.DRIFT_ALARM: "Whether a drift alarm is active (1) or not (0); it ends when the newest answers are "
            "back at the baseline.",
            Gauge.DRIFT_BASELINE: "Mean score that drift is measured against, between 0 and 1.",
            Gauge.DRIFT_BEGAN: "Estimated Unix timestamp of the first answer after the change that an active drift "
            "alarm is about.",
            Gauge.DRIFT_BEFORE: "Mean score before the change that an active drift alarm is about: while the baseline "
            "was learned, 0 to 1.",
            Gauge.DRIFT_SINCE: "Mean score of the answers since the change that an active drift alarm is about, "
            "between 0 and 1.",
            Gauge.DRIFT_ANSWERS: "Number of scores since the change that an active drift alarm is about.",
            Gauge.STAGE_CHANGED: "Share of answers with a stage at fault whose share has risen significantly, by "
            "period: before (while the baseline was learned) and since; no series where no stage did.",
            Gauge.DRIFT_PAUSED: "Whether learning a baseline is paused (1) by a standing alert on the route: canaries, "
            "threshold or drift.",
            Gauge.STAGE_BASELINE: "Share of answers with each stage at fault while the drift baseline was learned, "
            "between 0 and 1.",
            Gauge.BAND_MEAN: "Mean score in the daily confidence sequence, between 0 and 1, as of the last digest.",
            Gauge.BAND_LOW: "Lower limit of the daily confidence sequence, valid at every look; restarts each day "
            "(UTC).",
            Gauge.BAND_HIGH: "Upper limit of the daily confidence sequence, valid at every look; restarts each day "
            "(UTC).",
            Gauge.BAND_SCORES: "Number of scores in the daily confidence sequence, as of the last digest.",
            Gauge.BAND_SINCE: "Unix timestamp at which the confidence sequence started: with the day (UTC), or after "
            "its mean had changed.",
            Tally.DRIFT_ALARMS: "Total number of drift alarms raised.",
            Gauge.TRAFFIC_DRIFT_EVIDENCE: "Evidence that the distribution of a traffic signal has changed, as of the "
            "last digest.",
            Gauge.TRAFFIC_DRIFT_THRESHOLD: "Evidence at which an alarm about a traffic signal is raised, as of the "
            "last digest.",
            Gauge.TRAFFIC_DRIFT_ALARM: "Whether the distribution of a traffic signal has changed (1) or not (0); it "
            "pages only for gross failures.",
            Gauge.TRAFFIC_DRIFT_BEGAN: "Estimated Unix timestamp of the change that an active alarm about a traffic "
            "signal is about.",
            Gauge.TRAFFIC_DRIFT_SHARE: "Share of answers with a signal whose alarm is active (above a value, if it is "
            "a number), by period: before, while the baseline was learned, and since the change.",
            Gauge.TRAFFIC_DRIFT_SHARE_LOW: "Lower bound, with 98 % confidence, of the share since the change. The "
            "alert pages by it.",
            Gauge.TRAFFIC_DRIFT_PAUSED: "Whether learning the baseline of a traffic signal is paused (1) by a standing "
            "alert on the route.",
            Gauge.SILENCE_ALARM: "Whether a route has had no answer for longer than its rhythm explains (1) or not "
            "(0), as of the last digest.",
            Gauge.SILENCE_MISSED: "Number of minutes with an answer that the route usually has in the time since its "
            "last answer.",
            Gauge.JUDGE_DRIFT_FLIPS: "Share of anchor samples whose verdict differs from the first reading, between 0 "
            "and 1.",
            Gauge.JUDGE_DRIFT_ALARM: "Whether the judge itself has drifted (1) or not (0); scores before and after are "
            "not comparable.",
            Gauge.AGREEMENT: "Share of labelled answers on which a judge agrees with people, between 0 and 1.",
            Gauge.LABELS: "Number of labels by people that a judge can be compared with.",
            Gauge.LABEL_GAIN: "Factor by which judge scores multiply the effective number of labels (PPI++), as of the "
            "last digest.",
            Gauge.LABEL_ANNOTATORS: "Number of people whose labels a judge can be compared with.",
            Gauge.ANNOTATOR_CHANGE: "Greatest change of a corrected mean if the labels of one annotator are left out, "
            "as of the last digest.",
            Gauge.LAST_LABEL: "Unix timestamp of the newest label by a person.",
        }
    ),
)
