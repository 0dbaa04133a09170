"""Dashboards on causes: retrieval, judges, operation."""

from collections.abc import Sequence
from dataclasses import replace

from ragwatch.model.quantities import Quantity
from ragwatch.model.quantity_row import Board
from ragwatch.model.signals import Signal
from ragwatch.rules.dashboards import page
from ragwatch.rules.dashboards.panel import Feature, Panel, Rows
from ragwatch.rules.dashboards.quality import over_all_traffic, over_time
from ragwatch.rules.dashboards.query import ROUTE, Query, grouped, keep, rate, scraped, spread, windowed
from ragwatch.statistics.canary.metric import EXPORTED

_QUARTER = 6
_SIGNALS = (
    (Signal.EMPTY_RETRIEVALS, _QUARTER),
    (Signal.DUPLICATE_CONTEXTS, _QUARTER),
    (Signal.TOP_SCORE, _QUARTER),
    (Signal.CONTEXTS, _QUARTER),
    (Signal.DOCUMENT_AGE, 12),
    (Signal.QUESTION_WORDS, 12),
)


def retrieval() -> Rows:
    """Retrieval quality from canaries, judged answers and traffic signals."""
    canaries = [
        Panel(
            row.title,
            f"{row.panel} Last run of the canaries.",
            "percentunit",
            (grouped("avg", scraped(f"ragwatch_canary_{row.series_name}_ratio"), *row.gauge.labels),),
            page.CANARIES,
            needs=Feature.CANARIES,
        )
        for row in (metric.row for metric in EXPORTED)
        if row.title
    ]
    degraded = Panel(
        "Canaries at the last run",
        "1: the expected contexts were retrieved; 0: they were not.",
        "none",
        (grouped("min", scraped("ragwatch_canary_success"), "suite", "canary"),),
        page.CANARIES,
        kind="table",
        width=24,
        needs=Feature.CANARIES,
        columns=("Time",),
    )
    faults = Panel(
        "Fault for the ignored top context",
        "retriever: not relevant; generator: relevant but not used; redundant: other contexts support the same claims.",
        "reqps",
        (rate("ragwatch_top_ranked_fault_samples_total", "fault", chosen=(ROUTE,)),),
        page.scored(Quantity.TOP_RANKED_IGNORED),
        width=12,
    )
    judged = (over_time(quantity) for quantity in Quantity if quantity.row.board is Board.RETRIEVAL)
    return (
        ("Canaries (known queries)", (*canaries, degraded)),
        ("Judged answers", (*judged, faults)),
        ("All traffic (no judge needed)", tuple(over_all_traffic(signal, width) for signal, width in _SIGNALS)),
    )


_CALLS = rate("ragwatch_judge_calls_total", "judge", "model")
_FAILED = rate("ragwatch_judge_call_failures_total", "judge", "reason")
_RELIABILITY = (
    (
        "Agreement with people",
        "Share of labelled answers on which judge and people agree.",
        "agreement",
        ("judge", "quantity"),
        Feature.LABELS,
    ),
    (
        "Repeatability",
        "Share of answers with the same score in two readings.",
        "repeat_agreement",
        ("judge", "quantity"),
        Feature.REPEAT,
    ),
    (
        "Known-bad accepted",
        "Share of known-bad answers with a prompt injection that it accepted; lower is better.",
        "probe_fooled",
        ("judge",),
        Feature.KNOWN_BAD,
    ),
    (
        "Padding preferred",
        "Share of known-bad answers that it scored higher when padded to three times the length; lower is better.",
        "padding_preferred",
        ("judge",),
        Feature.KNOWN_BAD,
    ),
    (
        "Changed verdicts",
        "Share of anchor samples with another verdict than at the first reading.",
        "drift_flips",
        ("judge",),
        Feature.ANCHORS,
    ),
)


def judges() -> Rows:
    """Calls, coverage, cost and reliability of the judges."""
    failures = replace(_FAILED, expr=f"{_FAILED.expr} or 0 * {rate('ragwatch_judge_calls_total', 'judge').expr}")
    spans = tuple(spread("ragwatch_judge_call_duration_seconds", share, f"{share:.0%}") for share in (0.5, 0.99))
    calls = (
        Panel("Calls", "Calls per second.", "reqps", (_CALLS,), page.JUDGED),
        Panel("Failures", "Failed calls per second, by reason.", "reqps", (failures,), page.UNJUDGED),
        Panel("Call duration", "Median and 99th percentile.", "s", spans, page.JUDGED),
    )
    covered = Query(windowed("all:ragwatch_coverage:ratio"), ("judge",))
    unjudged = rate("ragwatch_samples_unjudged_total", "judge", "reason", chosen=(ROUTE,))
    coverage = (
        Panel("Coverage", "Share of the draws that were judged.", "percentunit", (covered,), page.UNJUDGED, width=12),
        Panel(
            "Unjudged",
            "Draws per second that could not be judged, by reason.",
            "reqps",
            (unjudged,),
            page.UNJUDGED,
            width=12,
        ),
    )
    reliability = [
        Panel(
            title,
            description,
            "percentunit",
            (grouped("avg", scraped(f"ragwatch_judge_{name}_ratio"), *labels),),
            page.DRIFT if needs is Feature.ANCHORS else page.JUDGED,
            width=_QUARTER,
            needs=needs,
        )
        for title, description, name, labels, needs in _RELIABILITY
    ]
    return (("Calls", calls), ("Coverage", coverage), ("Cost", _cost()), ("Reliability", reliability))


def _cost() -> Sequence[Panel]:
    cost = Query(windowed("judge:ragwatch_judge_cost_dollars_per_day:rate"), ("judge",))
    left = grouped("min", scraped("ragwatch_judge_budget_remaining_ratio"), "judge")
    tokens = rate("ragwatch_judge_tokens_total", "judge", "direction")
    rows = (
        ("Cost per day", "US dollars per day at the rate of the window.", "currencyUSD", cost, Feature.PAID),
        ("Budget remaining", "Share left in the scarcest budget period.", "percentunit", left, Feature.BUDGET),
        ("Tokens", "Tokens per second.", "none", tokens, Feature.PAID),
    )
    return [Panel(title, text, unit, (query,), page.JUDGED, needs=needs) for title, text, unit, query, needs in rows]


_MIXED, _JOINED, _TRACES = Feature.MIXED, Feature.JOINED, Feature.TRACES


def operation() -> Rows:
    """Health of ragwatch itself: reading, sampling, background loops."""
    return (("Reading", _reading()), ("Sampling", _sampling()), ("ragwatch itself", _internals()))


def _reading() -> Sequence[Panel]:
    seen = rate("ragwatch_requests_seen_total", "source")
    rejected = rate("ragwatch_requests_rejected_total", "source", "reason")
    lag = grouped("max", scraped("ragwatch_source_lag_seconds"), "source")
    waiting = grouped("max", scraped("ragwatch_export_waiting_seconds"), "signal")
    records = rate("ragwatch_export_records_total", "signal", "outcome")
    return (
        Panel("Records", "Records read per second.", "reqps", (seen,)),
        Panel("Rejected", "Records rejected per second, by reason.", "reqps", (rejected,)),
        Panel("Lag", "Age of the oldest unread record.", "s", (lag,)),
        *_parts_and_traces(),
        Panel("Scores sent", "Scores sent per second, by outcome.", "reqps", (records,), needs=Feature.EXPORT),
        Panel(
            "Scores waiting", "Time for which scores wait for their endpoint.", "s", (waiting,), needs=Feature.EXPORT
        ),
    )


def _parts_and_traces() -> Sequence[Panel]:
    """What becomes of lines that are no records, and of requests that arrive in parts."""
    counts = (
        ("Skipped lines", "Lines per second that are no records of answers.", "source_lines_skipped", "reason", _MIXED),
        ("Parts", "Parts of requests per second, by outcome; orphaned is lost.", "source_parts", "outcome", _JOINED),
        ("Traced requests", "Requests in traces per second, by outcome.", "otlp_requests", "outcome", _TRACES),
        (
            "Traces without texts",
            "Requests per second whose spans hold no texts; `ragwatch check` prints the switch.",
            "otlp_requests_without_texts",
            "instrumentation",
            _TRACES,
        ),
    )
    return [
        Panel(title, text, "reqps", (rate(f"ragwatch_{name}_total", "source", label),), needs=needs)
        for title, text, name, label, needs in counts
    ]


def _sampling() -> Sequence[Panel]:
    drawn = rate("ragwatch_samples_drawn_total", "route", chosen=(ROUTE,))
    probability = grouped("avg", scraped("ragwatch_sampling_probability", ROUTE), "route")
    pending = grouped("sum", scraped("ragwatch_samples_pending"), name="pending")
    return (
        Panel("Draws", "Answers sampled for judging per second.", "reqps", (drawn,), page.ANSWERS),
        Panel("Probability", "Inclusion probability of an answer.", "percentunit", (probability,), page.ANSWERS),
        Panel("Pending", "Draws waiting for a judge.", "none", (pending,)),
    )


_DIGEST_AGE = f"max by ({keep('instance')}) (time() - {scraped('ragwatch_last_digest_timestamp_seconds')})"
_OWN = (
    (
        "Failed steps",
        "Failed steps of background loops per second; failed steps are retried.",
        "reqps",
        rate("ragwatch_step_failures_total", "loop"),
    ),
    (
        "Invariant violations",
        "Digests per second in which a counter invariant was violated; any value above 0 is a bug.",
        "reqps",
        rate("ragwatch_invariant_violations_total", "law"),
    ),
    (
        "Free disk",
        "Free bytes on the disk of the state directory; below store.min_free ragwatch stops reading.",
        "bytes",
        grouped("min", scraped("ragwatch_state_free_bytes"), "instance"),
    ),
    (
        "Damaged rows",
        "Number of damaged rows in the state; a value above 0 means that the disk returned wrong data.",
        "none",
        grouped("max", scraped("ragwatch_state_damaged_rows"), "instance"),
    ),
    (
        "Configuration",
        "1: the last load succeeded; 0: it failed.",
        "none",
        grouped("min", scraped("ragwatch_config_last_reload_successful"), "instance"),
    ),
    (
        "Time since the last digest",
        "Age of the exported figures; a few seconds are normal.",
        "s",
        Query(_DIGEST_AGE, ("instance",)),
    ),
)
"""Panels of ragwatch itself: title, how to read it, unit, query."""


def _internals() -> Sequence[Panel]:
    versions = Panel(
        "Versions",
        "Running versions of ragwatch and Python.",
        "none",
        (grouped("count", scraped("ragwatch_build_info"), "version", "python_version"),),
        page.OVERVIEW,
        kind="table",
        columns=("Time",),
    )
    return (*(Panel(title, text, unit, (query,)) for title, text, unit, query in _OWN), versions)
