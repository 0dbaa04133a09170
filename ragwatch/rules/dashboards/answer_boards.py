"""Dashboards on answer quality: overview, with estimates by segment and criteria of the operator, and generation."""

from collections.abc import Sequence
from functools import partial

from ragwatch.model.quantities import Quantity
from ragwatch.model.quantity_row import Board
from ragwatch.model.signals import Signal
from ragwatch.rules.dashboards import page
from ragwatch.rules.dashboards.page import Page
from ragwatch.rules.dashboards.panel import LOGARITHMIC, Feature, Panel, Rows
from ragwatch.rules.dashboards.quality import level, now, over_all_traffic, over_time, title, today
from ragwatch.rules.dashboards.query import (
    JUDGE,
    ROUTE,
    Query,
    Style,
    grouped,
    keep,
    mean_with_ends,
    rate,
    recorded,
    scraped,
    windowed,
)

_HEADLINES = tuple(
    quantity for place in range(1, len(Quantity)) for quantity in Quantity if quantity.row.headline == place
)
_LOW_SCORES = ("0.3", "0.6", "0.9")
_SIGNALS = (
    Signal.ABSTENTIONS,
    Signal.EMPTY_ANSWERS,
    Signal.OTHER_LANGUAGE,
    Signal.REPEATED_ANSWERS,
    Signal.UNCITED_ANSWERS,
    Signal.DANGLING_CITATIONS,
    Signal.ANSWER_CHARS,
)


_STAGES = windowed("route:ragwatch_stage_samples:increase", ROUTE)
_AT_FAULT = windowed("route:ragwatch_stage_samples:increase", ROUTE, 'stage!="none"')
_EVIDENCE, _THRESHOLD = (
    grouped("max", scraped(f"ragwatch_drift_evidence{part}", ROUTE), "route", "quantity") for part in ("", "_threshold")
)
_FAULTS_AND_DRIFT = (
    Panel(
        "Stage at fault",
        "Share of judged answers by stage at fault; the rest is good.",
        "percentunit",
        (
            Query(
                f"sum by ({keep('stage')}) ({_AT_FAULT})"
                f" / on ({keep()}) group_left () (sum by ({keep()}) ({_STAGES}) > 0)",
                ("stage",),
            ),
        ),
        page.JUDGED,
        custom={"fillOpacity": 15},
    ),
    Panel(
        "Drift evidence",
        "Evidence of drift from the baseline / alarm threshold, on a logarithmic scale; below 0.001 it is drawn as "
        "0.001. An alarm is raised at the dashed line, at 1.",
        "none",
        (Query(f"clamp_min({_EVIDENCE.expr} / {_THRESHOLD.expr}, 0.001)", _EVIDENCE.labels),),
        page.DRIFT,
        custom=LOGARITHMIC,
        line=1.0,
    ),
    Panel(
        "Coverage",
        "Share of the draws that were judged. If it is low, the figures above may not represent the traffic.",
        "percentunit",
        (Query(windowed("route:ragwatch_coverage:ratio", JUDGE, ROUTE), ("route",)),),
        page.UNJUDGED,
    ),
    Panel(
        "Firing alerts",
        "Alerts that are firing now. Empty: none.",
        "none",
        (
            Query(
                recorded("ALERTS", 'alertname=~"Ragwatch.+"', 'alertstate="firing"'),
                ("alertname", "severity", "route", "suite"),
            ),
        ),
        page.JUDGED,
        kind="table",
        width=24,
        height=6,
        columns=("Time", "Value", "__name__", "alertstate"),
    ),
)


def overview() -> Rows:
    """Answer quality, the stage at fault, and how both have changed."""
    # the judge's mean, which shows changes, beside the level; there is none of what people are not asked about
    means = [
        panel
        for quantity in _HEADLINES
        for panel in (over_time(quantity), *([level(quantity)] if quantity.row.question is not None else []))
    ]
    return (
        ("Quality now, by route", tuple(map(now, _HEADLINES))),
        ("Change and level", means),
        ("Own criteria", own_criteria()),
        ("Segments", by_segment([quantity for quantity in _HEADLINES if not quantity.row.own_alert])),
        ("Stage at fault and drift", _FAULTS_AND_DRIFT),
        (
            "Today (valid at every look)",
            tuple(today(quantity) for quantity in (Quantity.FAITHFULNESS, Quantity.CONTEXT_PRECISION)),
        ),
    )


def generation() -> Rows:
    """How faithfully and completely the generator answers from its contexts."""
    scores = rate("ragwatch_faithfulness_score_count", chosen=(ROUTE, JUDGE)).expr
    below = {
        bound: rate("ragwatch_faithfulness_score_bucket", chosen=(ROUTE, JUDGE, f'le="{bound}"')).expr
        for bound in _LOW_SCORES
    }
    single = (
        Panel(
            "Low scores of faithfulness",
            "Share of individual answers that score at most so much: tells a drop of all answers from a few failed "
            "ones.",
            "percentunit",
            tuple(Query(f"{low} / ({scores} > 0)", (), f"at most {bound}") for bound, low in below.items()),
            page.scored(Quantity.FAITHFULNESS),
            width=12,
            needs=Quantity.FAITHFULNESS,
        ),
        Panel(
            "Effective sample size",
            "Number of equally weighted answers with the same precision. Alerts require a minimum.",
            "none",
            (Query(windowed("route:ragwatch_quality:effective_samples", JUDGE, ROUTE), ("route", "quantity")),),
            page.JUDGED,
            width=12,
        ),
    )
    return (
        ("Quality", [over_time(quantity) for quantity in Quantity if quantity.row.board is Board.GENERATION]),
        ("Scores", single),
        ("All traffic (no judge needed)", [over_all_traffic(signal, 6) for signal in _SIGNALS]),
    )


_OWN = f'quantity!~"{"|".join(Quantity)}"'
_SEGMENT = ("segment", "value")


def by_segment(quantities: Sequence[Quantity]) -> tuple[Panel, ...]:
    """Means of quantities by segment, and the size of each segment."""
    panel = partial(Panel, width=12, needs=Feature.SEGMENTS)
    samples = windowed("segment:ragwatch_quality:effective_samples", JUDGE, f'quantity="{Quantity.FAITHFULNESS}"')
    means = (
        panel(
            f"{title(quantity)} by segment",
            "Mean over all routes by configured value of a metadata key; `other` is every other value. Dotted: "
            "confidence interval, valid for a single look.",
            "percentunit",
            mean_with_ends("segment", (JUDGE, f'quantity="{quantity}"'), _SEGMENT),
            page.scored_by_segment(quantity),
        )
        for quantity in quantities
    )
    size = panel(
        "Effective sample size by segment",
        "Number of equally weighted answers with the same precision. Compare only segments that have some tens.",
        "none",
        (Query(samples, _SEGMENT),),
        page.JUDGED_BY_SEGMENT,
    )
    return (*means, size)


def own_criteria() -> tuple[Panel, ...]:
    """Means of the configured criteria: over all routes with the interval, and by route with the thresholds."""
    behind = Page(
        "Answers behind this", "/samples", (page.JUDGE, "sort=worst", *page.SHOWN_TIME), ("quantity", "route")
    )
    limits = recorded("route:ragwatch_quality:threshold", _OWN, ROUTE)
    by_route = (
        Query(windowed("route:ragwatch_quality:mean", JUDGE, _OWN, ROUTE), ("quantity", "route")),
        grouped("max", limits, "quantity", "route", name="threshold", style=Style.THRESHOLD),
    )
    own = partial(Panel, unit="percentunit", page=behind, width=12, needs=Feature.CRITERIA)
    return (
        own(
            "Own criteria",
            "Share of answers with yes to each configured question, over all routes. Dotted: confidence interval, "
            "valid for a single look. Empty: the selected judge reads no criteria.",
            queries=mean_with_ends("all", (JUDGE, _OWN), ("quantity",)),
        ),
        own(
            "Own criteria by route",
            "Share of answers with yes to each configured question, by route. Dashed: threshold.",
            queries=by_route,
        ),
    )
