"""Canary reports: every way in which a reply succeeds, degrades or says nothing."""

from collections.abc import Callable
from difflib import SequenceMatcher
from typing import Any

import pytest
from support.canaries import a_canary, a_failure, a_reply, a_report, a_text

from ragwatch.statistics.canary.definition import Category, Expected, Failure, Grade, Hit, Retrieved
from ragwatch.statistics.canary.history import gauges_of, sums_of
from ragwatch.statistics.canary.metric import CanaryMetric
from ragwatch.statistics.canary.report import CanaryOutcome, CanaryReport, SuiteReport, suite_line
from ragwatch.statistics.snapshot import Gauge

NEGATIVE = a_canary(category=Category.NEGATIVE, name="cooking")
SCORED = a_canary(category=Category.NEGATIVE, min_relevance_score=0.8)  # a vector store always returns something
NEAR = a_canary("a", min_relevance_score=0.3)
GOOD = a_report(a_canary("a", name="good"), a_reply("a", "x"))
HALF = a_report(a_canary("b", Expected("c", None, Grade.HIGHLY_RELEVANT), name="half"), a_reply("x", "b"))
DOWN = a_report(a_canary("a", name="down"), a_failure("connect"))
NOT_ASKED = a_report(a_canary(category=Category.NEGATIVE, name="negative"), a_reply("x"))
MIXED = SuiteReport("docs", (1, 2, 5), (GOOD, HALF, DOWN, NOT_ASKED))


def alike(one: str, other: str) -> float:
    """A similarity of the standard library."""
    return SequenceMatcher(None, one, other).ratio()


@pytest.mark.parametrize(
    ("canary", "retrieved", "reason"),
    [
        (a_canary("a"), a_reply("a"), None),
        (a_canary("a", "b"), a_reply("x", "b", "a"), None),
        (a_canary("a"), a_reply("x", "y"), "missing_from_top_k"),
        (a_canary("a"), a_reply(), "missing_from_top_k"),
        (a_canary("a", "b"), a_reply("a", "x"), "missing_from_top_k"),
        (a_canary("a", "b", min_recall=0.5), a_reply("a", "x"), None),
        (a_canary("a", "b", min_recall=0.5), a_reply("x"), "missing_from_top_k"),
        (a_canary("a"), a_reply("x", "x", "x", "x", "x", "a"), "missing_from_top_k"),
        (a_canary("a", min_relevance_score=0.9), a_reply("a"), None),
        (a_canary("a", min_relevance_score=0.91), a_reply("a"), "below_min_score"),
        (a_canary("a", min_relevance_score=0.85), a_reply("x", "a"), "below_min_score"),
        (a_canary("a", "b", min_relevance_score=0.85), a_reply("a", "b"), None),
        (NEAR, a_reply("a", scores=[0.3], direction="distance"), None),
        (NEAR, a_reply("a", scores=[0.31], direction="distance"), "below_min_score"),
        (NEAR, a_reply("a", direction=None), "failed:no_scores"),
        (NEAR, a_reply("a", scores=[None]), "failed:no_scores"),
        (a_canary("a"), a_reply("a", scores=[None], direction=None), None),
        (NEGATIVE, a_reply(), None),
        (NEGATIVE, a_reply("x"), "found_for_negative"),
        (a_canary("a"), a_failure("timeout"), "failed:timeout"),
        (NEGATIVE, a_failure("status"), "failed:status"),
        (SCORED, a_reply("x", scores=[0.79]), None),
        (SCORED, a_reply("x", "y", scores=[0.79, 0.8]), "found_for_negative"),
        (SCORED, a_reply("x", scores=[0.8], direction="distance"), "found_for_negative"),
        (SCORED, a_reply("x", scores=[0.81], direction="distance"), None),
        (SCORED, a_reply("x", "y", scores=[None, 0.9]), "found_for_negative"),
        (SCORED, a_reply("x", "y", scores=[None, 0.1]), "failed:no_scores"),
        (SCORED, a_reply("x", direction=None), "failed:no_scores"),
    ],
)
def test_outcomes(canary: Any, retrieved: Retrieved, reason: str | None) -> None:
    """Success exactly where there is no reason; degraded only where the retriever answered."""
    report = a_report(canary, retrieved)
    assert report.reason == reason
    assert report.success is (reason is None)
    assert report.degraded is (reason is not None and not reason.startswith("failed:"))


def test_a_report_has_ranks_and_scores_of_what_is_expected() -> None:
    """In the order in which it is expected. What is behind the cutoff is not kept; a failure has no ranking."""
    report = a_report(a_canary("a", "b", "c", min_recall=0.5), a_reply("x", "b", "a"))
    assert (report.ranks, report.scores) == ((3, 2, None), (pytest.approx(0.7), pytest.approx(0.8), None))
    cut = a_report(a_canary("a"), a_reply("x", "a"), 1)
    assert (cut.reason, len(cut.retrieved.hits), cut.ranks) == ("missing_from_top_k", 1, (None,))
    failed = a_report(a_canary("a"), a_failure())
    assert (failed.ranking, failed.ranks, failed.scores) == (None, (), ())
    assert (failed.retrieved.seconds, failed.retrieved.detail) == (10.0, "no reply")


def test_texts_are_matched_by_similarity() -> None:
    """The expected text came back with another ending; in an empty reply nothing is there unseen."""
    retrieved = Retrieved((Hit("x", "Prices rose."), Hit("y", "Cats sleep all day!")))
    report = a_report(a_canary(a_text("Cats sleep all day.")), retrieved, similar=alike, tau=0.9)
    assert (report.success, report.ranks) == (True, (2,))
    assert a_report(a_canary(a_text("Cats.")), Retrieved(), similar=alike).reason == "missing_from_top_k"


def test_texts_may_match_across() -> None:
    """One passage covers two expected texts, two passages one."""
    canary = a_canary(a_text("a"), a_text("b", 2))
    retrieved = Retrieved((Hit("x", "ab"), Hit("y", "b")))
    report = a_report(canary, retrieved, similar=lambda one, other: float(other in one))
    assert (report.ranking.hits, report.ranks) == (((0, 1), (1,)), (1, 1))


def test_tau_itself_is_enough() -> None:
    """In a canary as in `statistics.ranking`."""
    canary, retrieved = a_canary(a_text("Cats.")), Retrieved((Hit("x", "Cats!"),))
    reports = [a_report(canary, retrieved, similar=lambda *_: 0.5, tau=tau) for tau in (0.5, 0.51)]
    assert [report.success for report in reports] == [True, False]


def test_an_id_wins_over_its_text() -> None:
    """The text beside an id is for oracle runs; it is compared with nothing."""
    report = a_report(a_canary(Expected("a", "Text of x.")), a_reply("x"))
    assert report.outcome is CanaryOutcome.MISSING_FROM_TOP_K


def test_a_repeated_id_is_found_once_and_a_repeated_text_twice() -> None:
    """A retriever that repeats itself gains nothing by ids; passages that overlap may both hold a text."""
    retrieved = Retrieved((Hit("a", "Cats sleep."), Hit("a", "Cats sleep.")))
    by_id = a_report(a_canary("a"), retrieved)
    by_text = a_report(a_canary(a_text("Cats sleep.")), retrieved, similar=alike)
    assert (by_id.ranking.relevant, by_text.ranking.relevant) == ((True, False), (True, True))


@pytest.mark.parametrize(
    ("canary", "hits", "failure", "field"),
    [
        (a_canary("a"), [("b", "x"), (None, "y"), ("a", "z")], Failure.NO_IDS, "contexts[1].id"),
        (a_canary(a_text("z")), [("b", None), ("a", "z")], Failure.NO_TEXTS, "contexts[0].text"),
        (a_canary("a", a_text("Dogs bark.")), [("a", None)], Failure.NO_TEXTS, "contexts[0].text"),
    ],
)
def test_a_reply_that_cannot_be_compared_is_no_miss(
    canary: Any, hits: list[tuple[str | None, str | None]], failure: Failure, field: str
) -> None:
    """The expected context may be there unseen: no recall is invented, and the first passage at fault is named."""
    retrieved = Retrieved(tuple(Hit(*hit) for hit in hits), seconds=2.0)
    report = a_report(canary, retrieved, similar=alike)
    assert (report.failure, report.degraded, report.ranking) == (failure, False, None)
    assert report.retrieved.detail.startswith(f"{field}: is missing, and the canary expects")
    assert (report.retrieved.hits, report.retrieved.seconds) == (retrieved.hits, 2.0)


def test_means_are_over_known_rankings() -> None:
    """Negative canaries and failed ones leave no trace in them."""
    assert [MIXED.mean(CanaryMetric.RECALL, k) for k in (1, 2, 5)] == [0.5, 0.75, 0.75]
    assert [MIXED.mean(CanaryMetric.PRECISION, k) for k in (1, 2, 5)] == [0.5, 0.5, 0.2]
    whole = {"mrr": 0.75, "coverage": 1.0, "health": 0.5, "map": (1.0 + 0.25) / 2, "context_precision": (1.0 + 0.5) / 2}
    assert {name: MIXED.mean(CanaryMetric(name)) for name in whole} == whole
    assert (MIXED.mean(CanaryMetric.HIT_RATE, 1), MIXED.mean(CanaryMetric.NDCG, 1)) == (0.5, 0.5)
    assert MIXED.mean(CanaryMetric.F1, 2) == pytest.approx((2 / 3 + 0.5) / 2)


def test_a_suite_without_answers_knows_nothing() -> None:
    """Every endpoint down: no figure, only reasons."""
    down = SuiteReport("docs", (5,), (DOWN, DOWN))
    assert {down.mean(metric) for metric in CanaryMetric} == {None}
    assert suite_line(down).items() >= {"recall": {"5": None}, "mrr": None, "health": None}.items()
    assert down.failures == {Failure.CONNECT: 2}
    assert (down.success, down.degraded) == (False, ())


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda: a_report(a_canary(a_text("Cats.")), Retrieved((Hit("a", "Cats."),))), "needs a way to compare"),
        (lambda: a_report(a_canary("a"), a_reply("a"), 0), "cutoff must be 1 or more"),
        (lambda: MIXED.mean(CanaryMetric.RECALL, 10), "only the first 5"),
        (lambda: SuiteReport("docs", (), ()), "ks must be numbers from 1"),
        (lambda: SuiteReport("docs", (0, 5), ()), "ks must be numbers from 1"),
        (lambda: SuiteReport("docs", (1, 10), (GOOD,)), "cut off at the largest k, 10"),
    ],
)
def test_mistakes_of_wiring_are_refused(mistake: Callable[[], object], message: str) -> None:
    """None is counted as a miss of the retriever; what was cut off cannot be counted."""
    with pytest.raises(ValueError, match=message):
        mistake()


def test_who_is_degraded() -> None:
    """Those whose retriever answered, and wrongly."""
    assert [report.canary.name for report in MIXED.degraded] == ["half", "negative"]
    runs = (MIXED, SuiteReport("docs", (5,), (GOOD,)), SuiteReport("docs", (5,), ()))
    assert [run.success for run in runs] == [False, True, False]


def test_line() -> None:
    """The shape of the contract, with figures unrounded and unknown ones null."""
    line = suite_line(SuiteReport("docs", (1, 5), (HALF, DOWN)))
    items, categories = line.pop("items"), line.pop("categories")
    figures = {
        "recall": {"1": 0.0, "5": 0.5},
        "precision": {"1": 0.0, "5": 0.2},
        "f1": {"1": 0.0, "5": pytest.approx(2 / 7)},
        "ndcg": {"1": 0.0, "5": pytest.approx(0.6309297535714574 / 2.6309297535714573)},
    } | {"mrr": 0.5, "map": 0.25, "coverage": 1.0, "health": 0.0}
    whole = figures | {"suite": "docs", "hit_rate": {"1": 0.0, "5": 1.0}, "context_precision": 0.5, "answers": None}
    assert line == whole | {"degraded": ["What about half?"], "failures": {"connect": 1}}
    counts = {"canaries": 2, "degraded": 1, "failed": 1}
    assert {name: categories["simple_factual"][name] for name in (*counts, *figures)} == counts | figures
    half, down = items
    assert (half["reason"], half["ranks"], half["scores"]) == ("missing_from_top_k", [2, None], [0.8, None])
    said = {"canary": "down", "query": "What about down?", "category": "simple_factual"}
    failed = {"success": False, "reason": "failed:connect", "detail": "no reply", "seconds": 10.0}
    assert down == said | failed | {"ranks": [], "grades": [], "scores": [], "scores_fell": False}


def test_figures_by_category() -> None:
    """Each category has the figures of its canaries alone; the suite's are over all of them."""
    steps = a_report(a_canary("s1", "s2", name="steps", category=Category.PROCEDURAL), a_reply("s1", "x"))
    run = SuiteReport("docs", (1, 2, 5), (GOOD, NOT_ASKED, steps))
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
        ((GOOD, HALF, NOT_ASKED, NOT_ASKED, DOWN), 0.75),
        ((GOOD, DOWN), 0.0),
        ((DOWN, DOWN), None),
        ((), None),
    ],
)
def test_the_trend_of_degraded_canaries_is_over_replies(reports: tuple[CanaryReport, ...], share: float | None) -> None:
    """Nine that failed say nothing of the tenth; the mean of a category and of the suite leave them out too."""
    sums = sums_of(SuiteReport("docs", (5,), reports), 0.0)
    shares = {addends.wx for bucket, addends in sums.items() if bucket.series.name == "degraded"}
    assert shares == (set() if share is None else {share})
