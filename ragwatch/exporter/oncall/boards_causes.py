"""Dashboards about causes: retrieval, judges, operation."""

from __future__ import annotations

from collections.abc import Sequence

from ragwatch.exporter.oncall.panel import JOB, ROUTE, Panel, Query, line, quality, rate, spread, stacked

Rows = Sequence[tuple[str, Sequence[Panel]]]

_CANARY = (
    ("Recall", "Expected contexts within the first k.", "recall", "suite, k"),
    ("Normalised gain", "Expected contexts near the top weigh more.", "ndcg", "suite, k"),
    ("Reciprocal rank", "1 / rank of the first expected context.", "reciprocal_rank", "suite"),
    ("Health", "Grade of the first passage, of the highest that was expected.", "health", "suite"),
)


def _legend(by: str) -> str:
    return " ".join(f"{{{{{label}}}}}" for label in by.split(", "))


def retrieval() -> Rows:
    """Does the retriever still find what it must, and do answers use it."""
    canaries = [
        line(
            title,
            f"{told} Last run of the canaries.",
            "percentunit",
            f"avg by ({by}) (ragwatch_canary_{name}_ratio{{{JOB}}})",
            _legend(by),
            width=6,
        )
        for title, told, name, by in _CANARY
    ]
    return (
        ("Canaries: known questions", (*canaries, _degraded())),
        (
            "Judged answers",
            (
                quality("Context precision", "context_precision", "How far up the ranking the helpful contexts stand."),
                quality("Need recall", "need_recall", "Share of the parts of a question that the contexts answer."),
                quality("Top context ignored", "top_ranked_ignored", "Share that makes no use of it; low is good."),
                _faults(),
            ),
        ),
        ("All traffic, no judge", _signals()),
    )


def _degraded() -> Panel:
    return Panel(
        "Canaries now",
        "1: found at the last run what it must find; 0: did not.",
        "none",
        (Query(f"min by (suite, canary) (ragwatch_canary_success{{{JOB}}})", ""),),
        kind="table",
        width=24,
    )


def _faults() -> Panel:
    return Panel(
        "Whose fault the ignored top context is",
        "retriever: it was not relevant; generator: it was, and went unused; redundant: others said the same.",
        "reqps",
        (Query(rate("ragwatch_top_ranked_fault_samples_total", "fault", ROUTE), "{{fault}}"),),
        width=12,
        custom=stacked(),
    )


def _signals() -> Sequence[Panel]:
    return (
        line(
            "Empty retrievals",
            "Answers for which nothing was found, a second.",
            "reqps",
            rate("ragwatch_traffic_empty_retrievals_total", "route", ROUTE),
            "{{route}}",
            width=6,
        ),
        line(
            "Repeated contexts",
            "Answers with contexts that repeat one another, a second.",
            "reqps",
            rate("ragwatch_traffic_duplicate_contexts_total", "route", ROUTE),
            "{{route}}",
            width=6,
        ),
        *(
            Panel(
                title,
                told,
                "none",
                tuple(Query(spread(name, ROUTE, share), f"{share:.0%}") for share in (0.1, 0.5, 0.9)),
                width=6,
            )
            for title, told, name in (
                ("Score of the top context", "In the retriever's own scale.", "ragwatch_traffic_top_context_score"),
                ("Contexts", "Number retrieved for an answer.", "ragwatch_traffic_contexts"),
            )
        ),
        Panel(
            "Strange questions",
            "How strange the words of questions are beside those learnt first: 0 ordinary, 1 never seen.",
            "percentunit",
            tuple(
                Query(spread("ragwatch_traffic_question_strangeness_ratio", ROUTE, share), name)
                for share, name in ((0.5, "median"), (0.9, "90 %"))
            ),
            width=24,
        ),
    )


def judges() -> Rows:
    """What judging costs, what it misses, and how far it can be trusted."""
    return (("Work", _work()), ("Coverage", (_coverage(), _unjudged())), ("Money", _money()), ("Trust", _trust()))


def _work() -> Sequence[Panel]:
    calls = rate("ragwatch_judge_calls_total", "judge, model")
    failures = rate("ragwatch_judge_call_failures_total", "judge, reason")
    spans = tuple(
        Query(spread("ragwatch_judge_call_duration_seconds", JOB, share), f"{share:.0%}") for share in (0.5, 0.99)
    )
    return (
        line("Calls", "Calls a second.", "reqps", calls, "{{judge}} {{model}}"),
        line("Failures", "Calls a second that gave no reading.", "reqps", failures, "{{judge}} {{reason}}"),
        Panel("Duration of calls", "Median, and the slowest hundredth.", "s", spans),
    )


def _money() -> Sequence[Panel]:
    cost = f'judge:ragwatch_judge_cost_dollars_per_day:rate{{{JOB},window="$window"}}'
    left = f"min by (judge) (ragwatch_judge_budget_remaining_ratio{{{JOB}}})"
    tokens = rate("ragwatch_judge_tokens_total", "judge, direction")
    return (
        line("Cost a day", "US dollars a day at the pace of the window.", "currencyUSD", cost, "{{judge}}"),
        line("Budget left", "Of the span that is shortest of it.", "percentunit", left, "{{judge}}"),
        line("Tokens", "Tokens a second.", "none", tokens, "{{judge}} {{direction}}"),
    )


def _coverage() -> Panel:
    return line(
        "Measured share",
        "Judged share of the draws.",
        "percentunit",
        f'all:ragwatch_coverage:ratio{{{JOB},window="$window"}}',
        "{{judge}}",
        width=12,
    )


def _unjudged() -> Panel:
    return line(
        "Unjudged",
        "Draws a second that could not be judged, by reason.",
        "reqps",
        rate("ragwatch_samples_unjudged_total", "judge, reason", ROUTE),
        "{{judge}} {{reason}}",
        width=12,
    )


def _trust() -> Sequence[Panel]:
    ratios = (
        ("Agreement with people", "Share of labelled answers on which both agree.", "agreement", "judge, quantity"),
        ("Agreement with itself", "Share scored alike when read twice.", "repeat_agreement", "judge, quantity"),
        ("Fooled", "Share of known bad answers that it accepted on order; low is good.", "probe_fooled", "judge"),
        ("Changed verdicts", "Share of fixed samples judged otherwise than before.", "drift_flips", "judge"),
    )
    return [
        line(title, told, "percentunit", f"avg by ({by}) (ragwatch_judge_{name}_ratio{{{JOB}}})", _legend(by), width=6)
        for title, told, name, by in ratios
    ]


def operation() -> Rows:
    """Does ragwatch itself run."""
    return (("Reading", _reading()), ("Sampling", _sampling()), ("ragwatch itself", _itself()))


def _reading() -> Sequence[Panel]:
    seen = rate("ragwatch_requests_seen_total", "source")
    rejected = rate("ragwatch_requests_rejected_total", "source, reason")
    lag = f"max by (source) (ragwatch_source_lag_seconds{{{JOB}}})"
    return (
        line("Records", "Records read a second.", "reqps", seen, "{{source}}"),
        line("Rejected", "Records a second that are no sample, by reason.", "reqps", rejected, "{{source}} {{reason}}"),
        line("Lag", "Age of the oldest unread record.", "s", lag, "{{source}}"),
    )


def _sampling() -> Sequence[Panel]:
    drawn = rate("ragwatch_samples_drawn_total", "route", ROUTE)
    probability = f"avg by (route) (ragwatch_sampling_probability{{{ROUTE}}})"
    return (
        line("Drawn", "Answers drawn a second.", "reqps", drawn, "{{route}}"),
        line("Probability", "With which an answer is drawn.", "percentunit", probability, "{{route}}"),
        line("Waiting", "Draws that wait for a judge.", "none", f"sum(ragwatch_samples_pending{{{JOB}}})", "waiting"),
    )


def _itself() -> Sequence[Panel]:
    return (
        line(
            "Failed steps",
            "Steps of loops a second that failed and are repeated.",
            "reqps",
            rate("ragwatch_step_failures_total", "loop"),
            "{{loop}}",
        ),
        line(
            "Broken laws",
            "Digests a second that found our counts out of balance; anything but 0 is a bug.",
            "reqps",
            rate("ragwatch_invariant_violations_total", "law"),
            "{{law}}",
        ),
        line(
            "Free disk",
            "Bytes free on the disk of the state directory; below store.min_free nothing more is read.",
            "bytes",
            f"min by (instance) (ragwatch_state_free_bytes{{{JOB}}})",
            "{{instance}}",
        ),
        line(
            "Configuration",
            "1: the last load succeeded.",
            "none",
            f"min by (instance) (ragwatch_config_last_reload_successful{{{JOB}}})",
            "{{instance}}",
        ),
        line(
            "Age of the figures",
            "Seconds since the last digest; a few are ordinary.",
            "s",
            f"max by (instance) (time() - ragwatch_last_digest_timestamp_seconds{{{JOB}}})",
            "{{instance}}",
        ),
        Panel(
            "Versions",
            "What runs.",
            "none",
            (Query(f"count by (version, python_version) (ragwatch_build_info{{{JOB}}})", ""),),
            kind="table",
        ),
    )
