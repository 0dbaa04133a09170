"""Dashboards about answers: the overview, and generation."""

from __future__ import annotations

from collections.abc import Sequence

from ragwatch.exporter.oncall.panel import JOB, JUDGED, ROUTE, Panel, Query, line, quality, rate, spread, stacked

Rows = Sequence[tuple[str, Sequence[Panel]]]

_NOW = f'{JUDGED},window="$window"'


def overview() -> Rows:
    """Is it good, which stage is at fault, since when."""
    return (
        ("Is it good?", (_now(), _alerts())),
        (
            "Since when?",
            (
                quality("Faithfulness", "faithfulness", "Share of claims that the contexts support."),
                quality("Answer relevancy", "answer_relevancy", "How far answers address their question."),
                quality("Context precision", "context_precision", "How far up the ranking the helpful contexts stand."),
                quality(
                    "Top context ignored",
                    "top_ranked_ignored",
                    "Share that makes no use of the best ranked; low is good.",
                ),
            ),
        ),
        ("Which stage?", (_stages(), _drift(), _budget())),
        ("Today, however often one looks", (_today("faithfulness"), _today("context_precision"))),
    )


def _now() -> Panel:
    return Panel(
        "Quality now",
        "Mean over the chosen window and all routes, now. Empty: nothing was scored, which is not the same as bad.",
        "percentunit",
        (Query(f'all:ragwatch_quality:mean{{{JOB},judge="$judge",window="$window"}}', "{{quantity}}"),),
        kind="stat",
        width=14,
        options={"graphMode": "none", "colorMode": "none", "reduceOptions": {"calcs": ["lastNotNull"]}},
    )


def _alerts() -> Panel:
    return Panel(
        "Firing alerts",
        "What calls somebody at present; empty is good.",
        "none",
        (Query(f'ALERTS{{alertname=~"Ragwatch.+",alertstate="firing",{JOB}}}', ""),),
        kind="table",
        width=10,
    )


def _stages() -> Panel:
    return Panel(
        "Stage at fault",
        "Share of judged answers that name a faulty stage. What is not filled is good.",
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
        "Evidence against the baseline as a share of what raises an alarm; 1 is the alarm.",
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
        f"{quantity.replace('_', ' ').capitalize()} of the day",
        "Mean since midnight UTC on the route where the band ends lowest. The band is a confidence sequence: it holds"
        " at every look of the day, which the intervals above do not. Empty: not watched for drift.",
        "percentunit",
        (
            Query(f"min(ragwatch_drift_band_ratio{{{chosen}}})", "lowest mean"),
            Query(f"min(ragwatch_drift_band_ratio_high{{{chosen}}})", "upper end"),
            Query(f"min(ragwatch_drift_band_ratio_low{{{chosen}}})", "lower end"),
        ),
        width=12,
        bands=(("upper end", "lower end"),),
    )


def _budget() -> Panel:
    return line(
        "Measured share",
        "Judged share of the draws. Where it is low, the figures above say little about the rest.",
        "percentunit",
        f"route:ragwatch_coverage:ratio{{{_NOW}}}",
        "{{route}}",
    )


def generation() -> Rows:
    """What the generator makes of its contexts."""
    return (
        (
            "Quality",
            (
                quality("Faithfulness", "faithfulness", "Share of claims that the contexts support."),
                quality("Contradiction", "contradiction", "Share of claims that the contexts contradict; low is good."),
                quality("Answer relevancy", "answer_relevancy", "How far answers address their question."),
                quality("Context use", "context_use", "Share of the retrieved contexts that an answer uses."),
            ),
        ),
        ("Scores", (_scores(), _figures())),
        (
            "All traffic, no judge",
            (
                line(
                    "Abstentions",
                    "Answers that decline, a second.",
                    "reqps",
                    rate("ragwatch_traffic_abstentions_total", "route", ROUTE),
                    "{{route}}",
                    width=12,
                ),
                Panel(
                    "Length of answers",
                    "Characters: median, and the longest tenth.",
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
        "Faithfulness of single answers",
        "How many answers scored how much: a drop of all differs from a few that failed.",
        "none",
        (Query(rate("ragwatch_faithfulness_score_bucket", "le", JUDGED), "{{le}}"),),
        kind="heatmap",
        width=12,
        options={"calculate": False, "yAxis": {"unit": "none"}},
    )


def _figures() -> Panel:
    return line(
        "Effective samples",
        "Number of equally weighted answers that would tell as much; alarms need a minimum of them.",
        "none",
        f"route:ragwatch_quality:effective_samples{{{_NOW}}}",
        "{{route}} {{quantity}}",
        width=12,
    )
