"""Catalogue: every series as data. HELP, the README's table, and (later) dashboards and alerts are checked against it.

Two conventions hold throughout. Label values come from configuration or from an enumeration, never from a log.
What is computed by the digest is cached between digests, and its HELP says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ragwatch.core.scores import Quantity
from ragwatch.core.tally import Tally
from ragwatch.exporter.quality import MEANINGS, TEMPLATES, of_quantity
from ragwatch.exporter.series import Figure, Kind, Series
from ragwatch.telemetry import Count

__all__ = ["CATALOGUE", "Figure", "Kind", "Series", "markdown"]

_PAIR = ("route", "judge")
_WINDOW = (*_PAIR, "window")
_CALL = ("judge", "model")
_C, _G, _H, _I = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM, Kind.INFO

_ONCE: tuple[Series, ...] = (
    Series(
        "ragwatch_requests_seen_total",
        _C,
        "Records read from a source, rejected ones included.",
        ("source",),
        Tally.SEEN,
        from_zero=True,
    ),
    Series(
        "ragwatch_requests_rejected_total",
        _C,
        "Records that could not be read as a sample.",
        ("source", "reason"),
        Tally.REJECTED,
        from_zero=True,
    ),
    Series(
        "ragwatch_records_repaired_total",
        _C,
        "Records whose invalid UTF-8 was replaced.",
        ("source",),
        Tally.REPAIRED,
        from_zero=True,
    ),
    Series(
        "ragwatch_source_resets_total",
        _C,
        "Streams that were truncated or replaced, and contents that were lost unread or refused, by reason.",
        ("source", "reason"),
        Tally.RESETS,
    ),
    Series(
        "ragwatch_source_lag_bytes",
        _G,
        "Unread bytes of a source, as of the last digest.",
        ("source",),
        Figure.LAG_BYTES,
    ),
    Series(
        "ragwatch_source_lag_seconds",
        _G,
        "Age of the oldest unread record of a source in seconds, 0 when all is read, as of the last digest.",
        ("source",),
        Figure.LAG_SECONDS,
    ),
    Series(
        "ragwatch_sampling_probability",
        _G,
        "Probability, 0 to 1, with which an answer of the route is drawn for judging at present.",
        ("route",),
        Figure.PROBABILITY,
    ),
    Series(
        "ragwatch_samples_drawn_total",
        _C,
        "Answers drawn for judging.",
        ("route",),
        Tally.DRAWN,
        from_zero=True,
    ),
    Series(
        "ragwatch_samples_assigned_total",
        _C,
        "Draws that a judge is to read: judged, unjudged or pending.",
        ("judge",),
        Tally.ASSIGNED,
        from_zero=True,
    ),
    Series("ragwatch_samples_judged_total", _C, "Draws that were judged.", _PAIR, Tally.JUDGED, from_zero=True),
    Series(
        "ragwatch_samples_unjudged_total",
        _C,
        "Draws that could not be judged.",
        (*_PAIR, "reason"),
        Tally.UNJUDGED,
        from_zero=True,
    ),
    Series(
        "ragwatch_samples_pending",
        _G,
        "Number of draws that wait for a judge, over all judges, as of the last digest.",
        (),
        Figure.PENDING,
    ),
    Series(
        "ragwatch_coverage_ratio",
        _G,
        "Judged share of the drawn weight in the window, 0 to 1, as of the last digest.",
        _WINDOW,
        Figure.COVERAGE,
    ),
    Series(
        "ragwatch_scores_unknown_total",
        _C,
        "Judged answers without a score for a quantity.",
        ("quantity", *_PAIR, "reason"),
        Tally.UNKNOWN,
    ),
    Series(
        "ragwatch_stage_samples_total",
        _C,
        "Judged answers by the stage at fault; none is a good answer.",
        ("route", "stage"),
        Tally.STAGE,
        from_zero=True,
    ),
    Series(
        "ragwatch_top_ranked_fault_samples_total",
        _C,
        "Judged answers that left the top-ranked context unused, by whose fault that was.",
        ("route", "fault"),
        Tally.FAULT,
        from_zero=True,
    ),
    Series(
        "ragwatch_traffic_contexts",
        _H,
        "Number of contexts retrieved for an answer, over all traffic.",
        ("route",),
        Tally.CONTEXTS,
    ),
    Series(
        "ragwatch_traffic_top_context_score",
        _H,
        "Retriever's own score of the top-ranked context, in the retriever's scale, over all traffic.",
        ("route",),
        Tally.TOP_SCORE,
    ),
    Series(
        "ragwatch_traffic_answer_chars",
        _H,
        "Length of answers in characters, over all traffic.",
        ("route",),
        Tally.ANSWER_CHARS,
    ),
    Series(
        "ragwatch_traffic_empty_retrievals_total",
        _C,
        "Answers for which nothing was retrieved, over all traffic.",
        ("route",),
        Tally.EMPTY_RETRIEVALS,
        from_zero=True,
    ),
    Series(
        "ragwatch_traffic_abstentions_total",
        _C,
        "Answers that decline to answer, over all traffic.",
        ("route",),
        Tally.ABSTENTIONS,
        from_zero=True,
    ),
    Series(
        "ragwatch_traffic_duplicate_contexts_total",
        _C,
        "Answers with contexts that repeat one another, over all traffic.",
        ("route",),
        Tally.DUPLICATE_CONTEXTS,
        from_zero=True,
    ),
    Series(
        "ragwatch_secrets_redacted_total",
        _C,
        "Secrets and personal data replaced before storing or judging, by what they were.",
        ("secret",),
        Tally.REDACTED,
    ),
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
        "ragwatch_step_failures_total",
        _C,
        "Steps of a loop that failed and are repeated, since the start.",
        ("loop",),
        Count.STEP_FAILURES,
    ),
    Series(
        "ragwatch_invariant_violations_total",
        _C,
        "Digests that found our own counts out of balance, since the start: anything but 0 is a bug of ragwatch.",
        ("law",),
        Count.VIOLATIONS,
        from_zero=True,
    ),
    Series(
        "ragwatch_build_info",
        _I,
        "Version of ragwatch and of the Python that runs it; always 1.",
        ("version", "python_version"),
        Figure.BUILD,
    ),
    Series(
        "ragwatch_config_last_reload_successful",
        _G,
        "Whether the last load of the configuration succeeded, 1 or 0.",
        (),
        Figure.RELOAD_OK,
    ),
    Series(
        "ragwatch_config_last_reload_success_timestamp_seconds",
        _G,
        "When a configuration was last loaded with success, in seconds since the epoch.",
        (),
        Figure.RELOAD_AT,
    ),
)

CATALOGUE: tuple[Series, ...] = (
    *(of_quantity(template, quantity) for quantity in Quantity for template in TEMPLATES),
    *_ONCE,
)


def markdown() -> str:
    """The catalogue as the README shows it: the series of each quantity once, with `Q` for the quantity."""
    quantities = (f"| `{quantity}` | {MEANINGS[quantity]} |" for quantity in Quantity)
    return "\n".join(
        (
            "For each quantity Q:",
            "",
            "| Q | meaning |",
            "|---|---|",
            *quantities,
            "",
            *_table(_as_q(template) for template in TEMPLATES),
            "",
            "Once:",
            "",
            *_table(_ONCE),
        )
    )


def _as_q(template: Series) -> Series:
    return replace(template, name=template.name.format(q="Q"), help=template.help.format(q="Q"))


def _table(rows: Iterable[Series]) -> Iterable[str]:
    yield "| series | type | labels | meaning |"
    yield "|---|---|---|---|"
    for row in rows:
        labels = ", ".join(f"`{label}`" for label in row.labels) or "none"
        yield f"| `{row.name}` | {row.kind} | {labels} | {row.help} |"
