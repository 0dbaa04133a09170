"""Dashboards on causes: retrieval, judges, operation."""

from __future__ import annotations

from collections.abc import Sequence

from tools.dashboards.panel import JOB, ROUTE, Panel, Query, line, quality, rate, spread, stacked

Rows = Sequence[tuple[str, Sequence[Panel]]]

_CANARY = (
    ("Recall", "Share of the expected contexts within the top k.", "recall", "suite, k"),
    ("NDCG", "Normalized discounted cumulative gain of the top k.", "ndcg", "suite, k"),
    ("Reciprocal rank", "Mean of 1 / rank of the first expected context (MRR).", "reciprocal_rank", "suite"),
    ("Health", "Relevance grade of the first context / highest expected grade.", "health", "suite"),
)


def _legend(by: str) -> str:
    return " ".join(f"{{{{{label}}}}}" for label in by.split(", "))


def retrieval() -> Rows:
    """Retrieval quality from canaries, judged answers and traffic signals."""
    canaries = [
        line(
            title,
            f"{description} Last run of the canaries.",
            "percentunit",
            f"avg by ({by}) (ragwatch_canary_{name}_ratio{{{JOB}}})",
            _legend(by),
            width=6,
        )
        for title, description, name, by in _CANARY
    ]
    return (
        ("Canaries (known queries)", (*canaries, _degraded())),
        (
            "Judged answers",
            (
                quality("Context precision", "context_precision", "Rank-weighted precision of the contexts."),
                quality("Need recall", "need_recall", "Share of the sub-questions that the contexts can answer."),
                quality(
                    "Top context ignored", "top_ranked_ignored", "Share of answers that do not use it; lower is better."
                ),
                _faults(),
            ),
        ),
        ("All traffic (no judge needed)", _signals()),
    )


def _degraded() -> Panel:
    return Panel(
        "Canaries at the last run",
        "1: the expected contexts were retrieved; 0: they were not.",
        "none",
        (Query(f"min by (suite, canary) (ragwatch_canary_success{{{JOB}}})", ""),),
        kind="table",
        width=24,
    )


def _faults() -> Panel:
    return Panel(
        "Fault for the ignored top context",
        "retriever: not relevant; generator: relevant but not used; redundant: other contexts support the same claims.",
        "reqps",
        (Query(rate("ragwatch_top_ranked_fault_samples_total", "fault", ROUTE), "{{fault}}"),),
        width=12,
        custom=stacked(),
    )


def _signals() -> Sequence[Panel]:
    return (
        line(
            "Empty retrievals",
            "Answers per second without any retrieved context.",
            "reqps",
            rate("ragwatch_traffic_empty_retrievals_total", "route", ROUTE),
            "{{route}}",
            width=6,
        ),
        line(
            "Duplicate contexts",
            "Answers per second with duplicate contexts.",
            "reqps",
            rate("ragwatch_traffic_duplicate_contexts_total", "route", ROUTE),
            "{{route}}",
            width=6,
        ),
        *(
            Panel(
                title,
                description,
                "none",
                tuple(Query(spread(name, ROUTE, share), f"{share:.0%}") for share in (0.1, 0.5, 0.9)),
                width=6,
            )
            for title, description, name in (
                (
                    "Score of the top context",
                    "In the unit of the retriever: 10th, 50th and 90th percentile.",
                    "ragwatch_traffic_top_context_score",
                ),
                (
                    "Contexts",
                    "Number of contexts per answer: 10th, 50th and 90th percentile.",
                    "ragwatch_traffic_contexts",
                ),
            )
        ),
        Panel(
            "Question novelty",
            "Novelty of the words in questions against earlier questions: 0 is common, 1 is unseen.",
            "percentunit",
            tuple(
                Query(spread("ragwatch_traffic_question_strangeness_ratio", ROUTE, share), name)
                for share, name in ((0.5, "median"), (0.9, "90 %"))
            ),
            width=24,
        ),
    )


def judges() -> Rows:
    """Calls, coverage, cost and reliability of the judges."""
    return (
        ("Calls", _calls()),
        ("Coverage", (_coverage(), _unjudged())),
        ("Cost", _cost()),
        ("Reliability", _reliability()),
    )


def _calls() -> Sequence[Panel]:
    calls = rate("ragwatch_judge_calls_total", "judge, model")
    failures = rate("ragwatch_judge_call_failures_total", "judge, reason")
    spans = tuple(
        Query(spread("ragwatch_judge_call_duration_seconds", JOB, share), f"{share:.0%}") for share in (0.5, 0.99)
    )
    return (
        line("Calls", "Calls per second.", "reqps", calls, "{{judge}} {{model}}"),
        line("Failures", "Failed calls per second, by reason.", "reqps", failures, "{{judge}} {{reason}}"),
        Panel("Call duration", "Median and 99th percentile.", "s", spans),
    )


def _cost() -> Sequence[Panel]:
    cost = f'judge:ragwatch_judge_cost_dollars_per_day:rate{{{JOB},window="$window"}}'
    left = f"min by (judge) (ragwatch_judge_budget_remaining_ratio{{{JOB}}})"
    tokens = rate("ragwatch_judge_tokens_total", "judge, direction")
    return (
        line("Cost per day", "US dollars per day at the rate of the window.", "currencyUSD", cost, "{{judge}}"),
        line("Budget remaining", "Share left in the scarcest budget period.", "percentunit", left, "{{judge}}"),
        line("Tokens", "Tokens per second.", "none", tokens, "{{judge}} {{direction}}"),
    )


def _coverage() -> Panel:
    return line(
        "Coverage",
        "Share of the draws that were judged.",
        "percentunit",
        f'all:ragwatch_coverage:ratio{{{JOB},window="$window"}}',
        "{{judge}}",
        width=12,
    )


def _unjudged() -> Panel:
    return line(
        "Unjudged",
        "Draws per second that could not be judged, by reason.",
        "reqps",
        rate("ragwatch_samples_unjudged_total", "judge, reason", ROUTE),
        "{{judge}} {{reason}}",
        width=12,
    )


def _reliability() -> Sequence[Panel]:
    ratios = (
        (
            "Agreement with people",
            "Share of labelled answers on which judge and people agree.",
            "agreement",
            "judge, quantity",
        ),
        (
            "Repeatability",
            "Share of answers with the same score in two readings.",
            "repeat_agreement",
            "judge, quantity",
        ),
        (
            "Known-bad accepted",
            "Share of known-bad answers with a prompt injection that it accepted; lower is better.",
            "probe_fooled",
            "judge",
        ),
        (
            "Changed verdicts",
            "Share of anchor samples with another verdict than at the first reading.",
            "drift_flips",
            "judge",
        ),
    )
    return [
        line(
            title,
            description,
            "percentunit",
            f"avg by ({by}) (ragwatch_judge_{name}_ratio{{{JOB}}})",
            _legend(by),
            width=6,
        )
        for title, description, name, by in ratios
    ]


def operation() -> Rows:
    """Health of ragwatch itself: reading, sampling, background loops."""
    return (("Reading", _reading()), ("Sampling", _sampling()), ("ragwatch itself", _internals()))


def _reading() -> Sequence[Panel]:
    seen = rate("ragwatch_requests_seen_total", "source")
    rejected = rate("ragwatch_requests_rejected_total", "source, reason")
    lag = f"max by (source) (ragwatch_source_lag_seconds{{{JOB}}})"
    return (
        line("Records", "Records read per second.", "reqps", seen, "{{source}}"),
        line("Rejected", "Records rejected per second, by reason.", "reqps", rejected, "{{source}} {{reason}}"),
        line("Lag", "Age of the oldest unread record.", "s", lag, "{{source}}"),
    )


def _sampling() -> Sequence[Panel]:
    drawn = rate("ragwatch_samples_drawn_total", "route", ROUTE)
    probability = f"avg by (route) (ragwatch_sampling_probability{{{ROUTE}}})"
    return (
        line("Draws", "Answers sampled for judging per second.", "reqps", drawn, "{{route}}"),
        line("Probability", "Inclusion probability of an answer.", "percentunit", probability, "{{route}}"),
        line("Pending", "Draws waiting for a judge.", "none", f"sum(ragwatch_samples_pending{{{JOB}}})", "pending"),
    )


def _state() -> Sequence[Panel]:
    return (
        line(
            "Free disk",
            "Free bytes on the disk of the state directory; below store.min_free ragwatch stops reading.",
            "bytes",
            f"min by (instance) (ragwatch_state_free_bytes{{{JOB}}})",
            "{{instance}}",
        ),
        line(
            "Damaged rows",
            "Number of damaged rows in the state; a value above 0 means that the disk returned wrong data.",
            "none",
            f"max by (instance) (ragwatch_state_damaged_rows{{{JOB}}})",
            "{{instance}}",
        ),
    )


def _internals() -> Sequence[Panel]:
    return (
        line(
            "Failed steps",
            "Failed steps of background loops per second; failed steps are retried.",
            "reqps",
            rate("ragwatch_step_failures_total", "loop"),
            "{{loop}}",
        ),
        line(
            "Invariant violations",
            "Digests per second in which a counter invariant was violated; any value above 0 is a bug.",
            "reqps",
            rate("ragwatch_invariant_violations_total", "law"),
            "{{law}}",
        ),
        *_state(),
        line(
            "Configuration",
            "1: the last load succeeded; 0: it failed.",
            "none",
            f"min by (instance) (ragwatch_config_last_reload_successful{{{JOB}}})",
            "{{instance}}",
        ),
        line(
            "Time since the last digest",
            "Age of the exported figures; a few seconds are normal.",
            "s",
            f"max by (instance) (time() - ragwatch_last_digest_timestamp_seconds{{{JOB}}})",
            "{{instance}}",
        ),
        Panel(
            "Versions",
            "Running versions of ragwatch and Python.",
            "none",
            (Query(f"count by (version, python_version) (ragwatch_build_info{{{JOB}}})", ""),),
            kind="table",
        ),
    )
