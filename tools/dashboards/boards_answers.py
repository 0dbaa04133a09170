"""Dashboards on answer quality: overview and generation."""

from __future__ import annotations

from collections.abc import Sequence

from tools.dashboards.panel import JOB, JUDGED, ROUTE, Panel, Query, line, quality, rate, spread, stacked

Rows = Sequence[tuple[str, Sequence[Panel]]]

_NOW = f'{JUDGED},window="$window"'


def overview() -> Rows:
    """Answer quality, the stage at fault, and how both have changed."""
    return (
        ("Current quality", (_now(), _alerts())),
        (
            "Quality over time",
            (
                quality("Faithfulness", "faithfulness", "Share of claims in answers that the contexts support."),
                quality("Answer relevancy", "answer_relevancy", "How completely answers address their question."),
                quality("Context precision", "context_precision", "Rank-weighted precision of the contexts."),
                quality(
                    "Top context ignored",
                    "top_ranked_ignored",
                    "Share of answers that do not use the top-ranked context; lower is better.",
                ),
            ),
        ),
        ("Stage at fault", (_stages(), _drift(), _coverage())),
        ("Today (valid at every look)", (_today("faithfulness"), _today("context_precision"))),
    )


def _now() -> Panel:
    return Panel(
        "Quality now",
        "Mean over the selected window and all routes. Empty: no answer was scored, so quality is unknown.",
        "percentunit",
        (Query(f'all:ragwatch_quality:mean{{{JOB},judge="$judge",window="$window"}}', "{{quantity}}"),),
        kind="stat",
        width=14,
        options={"graphMode": "none", "colorMode": "none", "reduceOptions": {"calcs": ["lastNotNull"]}},
    )


def _alerts() -> Panel:
    return Panel(
        "Firing alerts",
        "Alerts that are firing now. Empty: none.",
        "none",
        (Query(f'ALERTS{{alertname=~"Ragwatch.+",alertstate="firing",{JOB}}}', ""),),
        kind="table",
        width=10,
    )


def _stages() -> Panel:
    return Panel(
        "Stage at fault",
        "Share of judged answers by stage at fault. The unfilled rest is good.",
        "percentunit",
        (
            Query(
                f'sum by (stage) (route:ragwatch_stage_samples:increase{{{ROUTE},window="$window",stage!="none"}})'
                f" / on () group_left ()"
                f' (sum(route:ragwatch_stage_samples:increase{{{ROUTE},window="$window"}}) > 0)',
                "{{stage}}",
            ),
        ),
        custom=stacked(),
    )


def _drift() -> Panel:
    return Panel(
        "Drift evidence",
        "Evidence of drift from the baseline / alarm threshold. An alarm is raised at 1.",
        "none",
        (
            Query(
                f"max by (route, quantity) (ragwatch_drift_evidence{{{ROUTE}}})"
                f" / max by (route, quantity) (ragwatch_drift_evidence_threshold{{{ROUTE}}})",
                "{{route}} {{quantity}}",
            ),
        ),
    )


def _today(quantity: str) -> Panel:
    chosen = f'{ROUTE},quantity="{quantity}"'
    return Panel(
        f"{quantity.replace('_', ' ').capitalize()} today",
        "Mean since midnight UTC on the route with the lowest band. The band is a confidence sequence: it is valid at"
        " every look, which the intervals above are not. Empty: the quantity is not monitored for drift.",
        "percentunit",
        (
            Query(f"min(ragwatch_drift_band_ratio{{{chosen}}})", "lowest mean"),
            Query(f"min(ragwatch_drift_band_ratio_high{{{chosen}}})", "upper end"),
            Query(f"min(ragwatch_drift_band_ratio_low{{{chosen}}})", "lower end"),
        ),
        width=12,
        bands=(("upper end", "lower end"),),
    )


def _coverage() -> Panel:
    return line(
        "Coverage",
        "Share of the draws that were judged. If it is low, the figures above may not represent the traffic.",
        "percentunit",
        f"route:ragwatch_coverage:ratio{{{_NOW}}}",
        "{{route}}",
    )


def generation() -> Rows:
    """How faithfully and completely the generator answers from its contexts."""
    return (
        (
            "Quality",
            (
                quality("Faithfulness", "faithfulness", "Share of claims in answers that the contexts support."),
                quality(
                    "Contradiction",
                    "contradiction",
                    "Share of claims in answers that the contexts contradict; lower is better.",
                ),
                quality("Answer relevancy", "answer_relevancy", "How completely answers address their question."),
                quality("Context use", "context_use", "Share of the retrieved contexts that answers use."),
                quality(
                    "Citation precision",
                    "citation_precision",
                    "Share of the cited contexts that support the claims citing them. Empty: answers cite nothing.",
                ),
            ),
        ),
        ("Scores", (_scores(), _effective_samples())),
        (
            "All traffic (no judge needed)",
            (
                line(
                    "Abstentions",
                    "Answers per second that decline to answer.",
                    "reqps",
                    rate("ragwatch_traffic_abstentions_total", "route", ROUTE),
                    "{{route}}",
                    width=12,
                ),
                Panel(
                    "Answer length",
                    "Number of characters: median and 90th percentile.",
                    "none",
                    tuple(
                        Query(spread("ragwatch_traffic_answer_chars", ROUTE, share), name)
                        for share, name in ((0.5, "median"), (0.9, "90 %"))
                    ),
                    width=12,
                ),
            ),
        ),
    )


def _scores() -> Panel:
    return Panel(
        "Faithfulness of individual answers",
        "Distribution of scores over time: tells a drop of all answers from a few failed ones.",
        "none",
        (Query(rate("ragwatch_faithfulness_score_bucket", "le", JUDGED), "{{le}}"),),
        kind="heatmap",
        width=12,
        options={"calculate": False, "yAxis": {"unit": "none"}},
    )


def _effective_samples() -> Panel:
    return line(
        "Effective sample size",
        "Number of equally weighted answers with the same precision. Alerts require a minimum.",
        "none",
        f"route:ragwatch_quality:effective_samples{{{_NOW}}}",
        "{{route}} {{quantity}}",
        width=12,
    )
