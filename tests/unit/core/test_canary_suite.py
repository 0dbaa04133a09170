"""A run of a suite in numbers, and as JSON."""

from __future__ import annotations

import pytest
from support.canaries import a_canary, a_failure, a_reply, a_report

from ragwatch.core.canary.definition import Category, Expected, Failure, Grade
from ragwatch.core.canary.gauges import gauges_of, sums_of
from ragwatch.core.canary.metric import CanaryMetric
from ragwatch.core.canary.report import CanaryReport, SuiteReport, suite_line
from ragwatch.core.snapshot import Gauge

GOOD = a_report(a_canary("a", name="good"), a_reply("a", "x"))
HALF = a_report(a_canary("b", Expected("c", None, Grade.HIGHLY_RELEVANT), name="half"), a_reply("x", "b"))
DOWN = a_report(a_canary("a", name="down"), a_failure("connect"))
NEGATIVE = a_report(a_canary(category=Category.NEGATIVE, name="negative"), a_reply("x"))
MIXED = SuiteReport("docs", (1, 2, 5), (GOOD, HALF, DOWN, NEGATIVE))


def test_means_are_over_known_rankings() -> None:
    """Negative canaries and failed ones leave no trace in them."""
    assert [MIXED.mean(CanaryMetric.RECALL, k) for k in (1, 2, 5)] == [0.5, 0.75, 0.75]
    assert [MIXED.mean(CanaryMetric.PRECISION, k) for k in (1, 2, 5)] == [0.5, 0.5, 0.2]
    assert (
        MIXED.mean(CanaryMetric.MRR),
        MIXED.mean(CanaryMetric.COVERAGE),
        MIXED.mean(CanaryMetric.HIT_RATE, 1),
        MIXED.mean(CanaryMetric.HEALTH),
    ) == (0.75, 1.0, 0.5, 0.5)
    assert MIXED.mean(CanaryMetric.MAP) == (1.0 + 0.25) / 2
    assert MIXED.mean(CanaryMetric.CONTEXT_PRECISION) == (1.0 + 0.5) / 2
    assert MIXED.mean(CanaryMetric.F1, 2) == pytest.approx((2 / 3 + 0.5) / 2)
    assert MIXED.mean(CanaryMetric.NDCG, 1) == 0.5


def test_a_suite_without_answers_knows_nothing() -> None:
    """Every endpoint down: no figure, only reasons."""
    down = SuiteReport("docs", (5,), (DOWN, DOWN))
    assert (
        down.mean(CanaryMetric.RECALL, 5),
        down.mean(CanaryMetric.MRR),
        down.mean(CanaryMetric.COVERAGE),
        down.mean(CanaryMetric.HEALTH),
        down.mean(CanaryMetric.NDCG, 5),
    ) == (None,) * 5
    assert down.failures == {Failure.CONNECT: 2}
    assert (down.success, down.degraded) == (False, ())


def test_who_is_degraded() -> None:
    """Those whose retriever answered, and wrongly."""
    assert [report.canary.name for report in MIXED.degraded] == ["half", "negative"]
    assert (MIXED.success, SuiteReport("docs", (5,), (GOOD,)).success, SuiteReport("docs", (5,), ()).success) == (
        False,
        True,
        False,
    )


def test_a_larger_k_than_was_asked_for_is_a_mistake() -> None:
    """What was cut off cannot be counted."""
    with pytest.raises(ValueError, match="only the first 5"):
        MIXED.mean(CanaryMetric.RECALL, 10)


@pytest.mark.parametrize("ks", [(), (0, 5)])
def test_ks_are_numbers_from_one(ks: tuple[int, ...]) -> None:
    """Without any there is no top k."""
    with pytest.raises(ValueError, match="ks must be numbers from 1"):
        SuiteReport("docs", ks, ())


def test_reports_share_the_cutoff() -> None:
    """One looked at fewer passages would pull recall down for no fault of the retriever."""
    with pytest.raises(ValueError, match="cut off at the largest k, 10"):
        SuiteReport("docs", (1, 10), (GOOD,))


def test_line() -> None:
    """The shape of the contract, with figures unrounded and unknown ones null."""
    line = suite_line(SuiteReport("docs", (1, 5), (HALF, DOWN)))
    items = line.pop("items")
    ndcg, categories = line.pop("ndcg"), line.pop("categories")
    assert line == {
        "suite": "docs",
        "recall": {"1": 0.0, "5": 0.5},
        "precision": {"1": 0.0, "5": 0.2},
        "f1": {"1": 0.0, "5": pytest.approx(2 / 7)},
        "mrr": 0.5,
        "hit_rate": {"1": 0.0, "5": 1.0},
        "map": 0.25,
        "context_precision": 0.5,
        "coverage": 1.0,
        "health": 0.0,
        "degraded": ["What about half?"],
        "failures": {"connect": 1},
        "answers": None,
    }
    assert ndcg == {"1": 0.0, "5": pytest.approx(0.6309297535714574 / 2.6309297535714573)}
    figures = {name: line[name] for name in ("recall", "precision", "f1", "mrr", "map", "coverage", "health")}
    assert categories["simple_factual"].items() >= {"canaries": 2, "degraded": 1, "failed": 1, **figures}.items()
    assert items[1] == {
        "canary": "down",
        "query": "What about down?",
        "category": "simple_factual",
        "success": False,
        "reason": "failed:connect",
        "detail": "no reply",
        "ranks": [],
        "grades": [],
        "scores": [],
        "scores_fell": False,
        "seconds": 10.0,
    }
    assert (items[0]["reason"], items[0]["ranks"], items[0]["scores"]) == ("missing_from_top_k", [2, None], [0.8, None])


def test_a_line_of_unknowns() -> None:
    """Null, not zero."""
    line = suite_line(SuiteReport("docs", (5,), (DOWN,)))
    assert (line["recall"], line["mrr"], line["health"]) == ({"5": None}, None, None)


def test_figures_by_category() -> None:
    """Each category has the figures of its canaries alone; the suite's are over all of them."""
    steps = a_report(a_canary("s1", "s2", name="steps", category=Category.PROCEDURAL), a_reply("s1", "x"))
    run = SuiteReport("docs", (1, 2, 5), (GOOD, NEGATIVE, steps))
    categories = suite_line(run)["categories"]
    assert list(categories) == ["simple_factual", "procedural", "negative"]
    assert [categories[name]["recall"]["5"] for name in categories] == [1.0, 0.5, None]
    assert categories["procedural"]["f1"]["2"] == 0.5
    assert (categories["negative"]["degraded"], categories["negative"]["mrr"]) == (1, None)
    gauges = gauges_of(run, at=1.0, last_success=None, ks=(5,))
    assert gauges[Gauge.CANARY_F1, ("docs", "5")] == pytest.approx((1 / 3 + 2 * 0.2 * 0.5 / 0.7) / 2)
    assert gauges[Gauge.CANARY_CATEGORY_RECALL, ("docs", "procedural", "5")] == 0.5
    assert gauges[Gauge.CANARY_CATEGORY_F1, ("docs", "procedural", "5")] == pytest.approx(2 * 0.2 * 0.5 / 0.7)
    assert gauges[Gauge.CANARY_CATEGORY_RECIPROCAL_RANK, ("docs", "simple_factual")] == 1.0
    assert gauges[Gauge.CANARY_CATEGORY_DEGRADED, ("docs", "negative")] == 1
    assert (Gauge.CANARY_CATEGORY_RECALL, ("docs", "negative", "5")) not in gauges
    assert (Gauge.CANARY_RECALL, ("docs", "1")) not in gauges


def test_a_category_without_a_reply_has_no_figure() -> None:
    """Neither a number of degraded canaries nor a ratio: nothing is known."""
    gauges = gauges_of(SuiteReport("docs", (5,), (GOOD, DOWN)), at=1.0, last_success=None)
    assert gauges[Gauge.CANARY_CATEGORY_DEGRADED, ("docs", "simple_factual")] == 0
    down = gauges_of(SuiteReport("docs", (5,), (DOWN,)), at=1.0, last_success=2.0)
    assert {gauge for gauge, _ in down} == {Gauge.CANARY_LAST_RUN, Gauge.CANARY_LAST_SUCCESS}


@pytest.mark.parametrize(
    ("reports", "share"),
    [
        ((HALF, *[DOWN] * 9), 1.0),
        ((GOOD, HALF, NEGATIVE, NEGATIVE, DOWN), 0.75),
        ((GOOD, DOWN), 0.0),
        ((DOWN, DOWN), None),
        ((), None),
    ],
)
def test_the_trend_of_degraded_canaries_is_over_those_that_got_a_reply(
    reports: tuple[CanaryReport, ...], share: float | None
) -> None:
    """Nine that failed say nothing of the tenth; the mean of a category and of the suite leave them out too."""
    sums = sums_of(SuiteReport("docs", (5,), reports), 0.0)
    assert {addends.wx for bucket, addends in sums.items() if bucket.series.name == "degraded"} == (
        set() if share is None else {share}
    )
