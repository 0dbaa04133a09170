"""The page of a route: three levels side by side, what moved, and what stands beside the figures of a judge.

Missing figures are named, not invented. Beside them stand scores of users, annotators of a correction, and criteria.
"""

from collections import Counter
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from support.asked import XSS, Reading, get, judged
from support.kit import a_draw, a_verdict, an_admission, an_evidence
from support.snapshots import AT, JUDGE, estimate, small

from ragwatch.exporter.families import AllowedLabels, of_snapshot
from ragwatch.model.evidence import CriterionAnswer, CriterionReading
from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.ports import Feedback
from ragwatch.statistics.estimators.corrected import AnnotatorShares, WithoutAnnotator
from ragwatch.statistics.estimators.interval import CountedInterval
from ragwatch.statistics.feedback import JudgeCorrelation, UserScoreRow, UserScores
from ragwatch.statistics.snapshot import EstimateRow, Gauge, SegmentRow, Snapshot
from ragwatch.statistics.tally import Tally
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web import PageScope
from ragwatch.web.pages.overview import overview
from ragwatch.web.pages.route_page import CRITERIA, END_TO_END, GENERATION, RETRIEVAL, route_levels

HOSTILE = "a\"b'<script>alert(1)</script>&route=x"


def scored(quantity: Quantity, value: float, *, route: str = "search") -> EstimateRow:
    """An estimate with an interval of .1."""
    return EstimateRow(quantity, route, JUDGE, "1h", estimate(value))


def showing(*rows: EstimateRow, baselines: dict[Quantity, float] | None = None, **changes: Any) -> Snapshot:
    """The small Snapshot with these estimates and baselines on route `search`."""
    gauges = {(Gauge.DRIFT_BASELINE, (str(name), "search")): value for name, value in (baselines or {}).items()}
    return replace(small(), estimates=rows, **{"gauges": gauges, **changes})


def view(snapshot: Snapshot | None, route: str = "search") -> dict[str, Any]:
    """The data of the page."""
    return route_levels(snapshot, PageScope(routes=("search", HOSTILE), judges=(JUDGE,)), route, now=AT)


def moved(shown: dict[str, Any]) -> dict[str, str | None]:
    """What moved, by name."""
    return {row["name"]: row["moved"] for level in shown["levels"] for row in level["rows"]}


def test_retrieval_comes_first() -> None:
    """What falls with a fall of retrieval is no fault of generation."""
    for precision, faithfulness, headline in (
        (0.5, 0.9, "Retrieval has become worse: look there first"),
        (0.5, 0.5, "Retrieval has become worse: look there first"),
        (0.9, 0.5, "Generation has become worse, and retrieval has not"),
        (0.9, 0.9, "Nothing has become worse than its baseline"),
    ):
        rows = scored(Quantity.CONTEXT_PRECISION, precision), scored(Quantity.FAITHFULNESS, faithfulness)
        baselines = {Quantity.CONTEXT_PRECISION: 0.9, Quantity.FAITHFULNESS: 0.9}
        assert view(showing(*rows, baselines=baselines))["headline"] == headline


def test_a_figure_is_worse_when_its_whole_interval_is() -> None:
    """The baseline is .8; which side is worse depends on the metric.

    An alarm counts whatever the interval: the detector sees the worst part of a day, which a window has left behind.
    """
    for quantity, value, expected in (
        (Quantity.FAITHFULNESS, 0.5, "worse"),
        (Quantity.FAITHFULNESS, 0.99, "not worse"),
        (Quantity.FAITHFULNESS, 0.82, "not worse"),
        (Quantity.TOP_RANKED_IGNORED, 0.5, "not worse"),
        (Quantity.TOP_RANKED_IGNORED, 0.99, "worse"),
    ):
        snapshot = showing(scored(quantity, value), baselines={quantity: 0.8})
        assert (moved(view(snapshot)), value) == ({str(quantity): expected}, value)
        alarm = {**snapshot.gauges, (Gauge.DRIFT_ALARM, (str(quantity), "search")): 1.0}
        assert moved(view(replace(snapshot, gauges=alarm))) == {str(quantity): "worse"}


def test_every_level_shows_its_own_kind_of_figure() -> None:
    """Relevance judgements and canaries are retrieval; labels and expected answers are end to end."""
    snapshot = showing(
        scored(Quantity.CONTEXT_PRECISION, 0.9),
        scored(Quantity.ANSWER_RELEVANCY, 0.9),
        scored(Quantity.FAITHFULNESS, 0.9, route="support"),
        corrected=(replace(scored(Quantity.FAITHFULNESS, 0.7), corrected=True, labels=9, labels_given=9),),
        gauges={
            (Gauge.CANARY_RECALL, ("docs", "5")): 0.75,
            (Gauge.CANARY_RECIPROCAL_RANK, ("docs",)): 0.5,
            (Gauge.CANARY_ANSWER, ("docs", "correctness", "retrieved")): 0.6,
        },
        tallies=Counter(
            {(Tally.RANKED, ("search",)): 4, (Tally.RANKING_SCORE, ("search", "recall", "5")): 3.0}  # type: ignore[dict-item]
        ),
    )
    rows = {level["level"]: {row["name"]: row["value"] for row in level["rows"]} for level in view(snapshot)["levels"]}
    assert set(rows[RETRIEVAL]) == {"context_precision", "recall@5", "mrr"}
    assert rows[GENERATION] == {"answer_relevancy": 0.9}
    assert rows[END_TO_END] == {"faithfulness": 0.7, "correctness": 0.6}
    assert {"recall@5": 0.75, "mrr": 0.5}.items() <= rows[RETRIEVAL].items()


def test_what_is_missing_is_named() -> None:
    """Without data there are no figures, no state and no claim that all is well."""
    for snapshot in (None, showing()):
        shown = view(snapshot)
        assert (shown["state"], shown["headline"]) == ("silent", "No baseline to compare with yet")
        assert all(level["rows"] == [] for level in shown["levels"])
        assert [level["why"] is not None for level in shown["levels"]] == [True, False, False, True]


@pytest.mark.parametrize(("route", "status"), [("search", 200), (HOSTILE, 200), ("nowhere", 404), ("", 404)])
async def test_it_is_served(route: str, status: int) -> None:
    """The page and its data; a route that does not exist is told as such."""
    snapshot = showing(scored(Quantity.FAITHFULNESS, 0.5), baselines={Quantity.FAITHFULNESS: 0.8})
    scope, query = PageScope(routes=("search", HOSTILE), judges=(JUDGE,)), urlencode({"route": route})
    page, data = [
        await get(None, f"{path}?{query}", scope=scope, snapshot=snapshot) for path in ("/routes", "/api/v1/routes")
    ]
    assert (page.status_code, data.status_code, data.json()["known"]) == (status, status, status == 200)
    if route == "search":
        assert "samples?route=search&amp;judge=embedded&amp;quantity=faithfulness" in page.text


def test_segments_stand_below_in_the_configured_order() -> None:
    """A row for each quantity and value of the route; bad where the whole interval is beyond the threshold."""
    rows = tuple(
        SegmentRow(quantity, "release", value, route, JUDGE, "1h", estimate(mean))
        for quantity in (Quantity.FAITHFULNESS, Quantity.TOP_RANKED_IGNORED)
        for value, mean in (("other", 0.4), ("v1", 0.84), (HOSTILE, 0.2))
        for route in ("search", "support")
    )
    scope = PageScope(
        routes=("search",),
        judges=(JUDGE,),
        thresholds={"faithfulness": 0.85, "top_ranked_ignored": 0.3},
        segments={"tier": ("free",), "release": (HOSTILE, "v1")},
    )
    snapshot = replace(small(), segments=rows)
    (table,) = route_levels(snapshot, scope, "search", now=AT)["segments"]
    assert table["segment"] == "release"
    assert [(row["quantity"], row["value"], row["bad"]) for row in table["rows"]] == [
        ("faithfulness", HOSTILE, True),
        ("faithfulness", "v1", False),
        ("faithfulness", "other", True),
        ("top_ranked_ignored", HOSTILE, False),
        ("top_ranked_ignored", "v1", True),
        ("top_ranked_ignored", "other", True),
    ]


CORRELATION = CountedInterval(0.5, 0.25, 0.75, 80)
SCOPE = PageScope(routes=("search",), judges=(JUDGE,))
SNAPSHOT = replace(
    small(),
    user_scores=UserScores(
        (UserScoreRow("search", "1h", replace(estimate(0.8), coverage=0.25)),),
        (JudgeCorrelation(JUDGE, Quantity.FAITHFULNESS, CORRELATION),),
        {"search": AT},
    ),
)


async def test_scores_of_users() -> None:
    """The mean by route with the response rate, correlations by judge; a line of the overview, a row of the route.

    It stands among the end-to-end figures, and says what share of the answers it is about.
    """
    shown = (await get(None, "/api/v1/snapshot", scope=SCOPE, snapshot=SNAPSHOT)).json()
    figures = shown["routes"][0]["user_score"]
    assert (figures["value"], figures["response"], figures["last_sample_at"]) == (0.8, 0.25, AT)
    correlations = {judge["judge"]: judge["user_correlations"] for judge in shown["judges"]}
    assert correlations[JUDGE] == {"faithfulness": {"value": 0.5, "low": 0.25, "high": 0.75, "n": 80}}
    assert overview(small(), SCOPE, now=AT)["routes"][0]["user_score"] is None
    levels = {level["level"]: level["rows"] for level in route_levels(SNAPSHOT, SCOPE, "search", now=AT)["levels"]}
    (row,) = (row for row in levels[END_TO_END] if row["name"] == "user_score")
    assert (row["value"], row["source"]) == (0.8, "feedback of users on 25 % of the answers, which they chose")
    page = (await get(None, "/", scope=SCOPE, snapshot=SNAPSHOT)).text
    assert ("User score <b>0.800</b>" in page, "25 % of those sampled in 1h" in page) == (True, True)


async def test_the_score_of_a_user(store: SqliteStore) -> None:
    """The page of an answer says what its user said, and nothing where nothing was said."""
    rated, other = a_draw("a"), a_draw("b")
    store.admit(replace(an_admission(rated, other), feedback=(Feedback((rated.key,), 0.75, AT, "app"),)))
    store.settle([a_verdict(rated), a_verdict(other)])
    assert "user score <b>0.75</b>" in (await get(store, f"/samples/{rated.key}")).text
    assert "user score" not in (await get(store, f"/samples/{other.key}")).text
    assert (await get(store, f"/api/v1/samples/{rated.key}")).json()["feedback"] == {"user_score": 0.75, "at": AT}


def test_scores_of_users_as_series() -> None:
    """Each figure is exported under its route and window, or its judge and quantity."""
    allowed = AllowedLabels(sources=["app"], routes=["search"], judges=[JUDGE])
    values = {sample.name: sample.value for metric in of_snapshot(SNAPSHOT, allowed) for sample in metric.samples}
    expected = {"ratio": 0.8, "response_ratio": 0.25, "last_sample_timestamp_seconds": AT}
    expected |= {"correlation_ratio_low": 0.25, "correlation_samples": 80}
    assert {name: values[f"ragwatch_user_score_{name}"] for name in expected} == expected


def a_corrected_row(stands_on: str | None = None) -> EstimateRow:
    """An estimate that two people have labelled for."""
    row = small().estimates[0]
    without = (
        WithoutAnnotator("ann", 40, replace(row.estimate, value=0.4, low=0.3, high=0.5)),
        WithoutAnnotator("bob", 20, None),
    )
    return replace(
        row, corrected=True, labels=60, labels_given=60, annotators=AnnotatorShares(2, without, stands_on, 0.2)
    )


def test_the_json_names_annotators_with_their_share() -> None:
    """Number, the estimate without each, the greatest change; nothing where nothing is corrected."""

    def corrections(*rows: EstimateRow) -> list[Any]:
        shown = overview(replace(small(), corrected=rows), SCOPE, now=AT, window="1h")["routes"][0]["judges"]
        figures = [figure for judge in shown for figure in judge["figures"]]
        return [figure["corrected"] for figure in figures if figure.get("corrected") is not None]

    assert corrections() == []
    row = a_corrected_row()
    (shown,) = corrections(row)
    assert (shown["value"], shown["annotators"], shown["greatest_change"]) == (row.estimate.value, 2, 0.2)
    assert shown["without"][0] == {"annotator": "ann", "labels": 40, "value": 0.4, "low": 0.3, "high": 0.5}
    assert shown["without"][1]["value"] is None
    (plain,) = corrections(replace(row, annotators=None))
    assert "annotators" not in plain


def test_the_page_of_a_route_has_a_row_without_each() -> None:
    """And says where a figure stands on one person."""
    without = "the same without the 40 labels of ann"
    for row, sources in (
        (a_corrected_row(), ["labels of 2 people and judge", without]),
        (a_corrected_row("ann"), ["labels of 2 people and judge; stands on ann alone", without]),
        (replace(a_corrected_row(), annotators=None), ["labels of people and judge"]),
    ):
        snapshot, scope = replace(small(), corrected=(row,)), PageScope(routes=(row.route,))
        shown = route_levels(snapshot, scope, row.route, now=snapshot.at, window=row.window)
        rows = [one for level in shown["levels"] if level["level"] == END_TO_END for one in level["rows"]]
        assert [one["source"] for one in rows] == sources
        assert [one["value"] for one in rows[1:]] == [0.4] * (len(rows) - 1)


POLITE = quantity_of("polite")
CRITERIA_SCOPE = replace(SCOPE, criteria=("polite", "names_price"), thresholds={"polite": 0.9})


def test_figures_of_a_route() -> None:
    """The overview has each criterion with its threshold, and why one is unknown; the page of a route a level."""
    snapshot = replace(
        small(),
        estimates=(EstimateRow(POLITE, "search", JUDGE, "1h", estimate(0.6)),),
        gauges={(Gauge.DRIFT_BASELINE, ("polite", "search")): 0.9},
    )
    snapshot.tallies[Tally.UNKNOWN, ("names_price", "search", JUDGE, "does_not_apply")] = 2
    (route, *_) = overview(snapshot, CRITERIA_SCOPE, now=AT)["routes"]
    figures = {figure["quantity"]: figure for figure in route["judges"][0]["figures"]}
    assert (figures["polite"]["value"], figures["polite"]["state"]) == (0.6, "plain")
    assert figures["names_price"]["why"] == "the criterion does not apply to the answers"
    levels = route_levels(snapshot, CRITERIA_SCOPE, "search", now=AT)
    assert levels["headline"] == "Answers meet a criterion of yours less often"
    (level,) = [level for level in levels["levels"] if level["level"] == CRITERIA]
    assert [(row["name"], row["moved"]) for row in level["rows"]] == [("polite", "worse")]
    plain = route_levels(snapshot, replace(CRITERIA_SCOPE, criteria=()), "search", now=AT)
    assert CRITERIA not in [level["level"] for level in plain["levels"]]


async def test_answers_of_a_sample_and_searches(store: SqliteStore) -> None:
    """The page of a sample shows answer and quote as text; a search by a criterion works, by another name not."""
    readings = (
        CriterionReading("polite", CriterionAnswer.NO, XSS),
        CriterionReading("names_price", CriterionAnswer.DOES_NOT_APPLY),
        CriterionReading("kind", None),
    )
    draw = a_draw("a")
    judged(store, draw, an_evidence((1, 0), criteria=readings))
    page = await get(store, f"/samples/{draw.key}", scope=CRITERIA_SCOPE)
    seen = Reading(page.text)
    assert "polite: no" in " ".join(seen.text.split())
    assert "names price: does not apply" in " ".join(seen.text.split())
    assert "script" not in seen.tags
    assert XSS in seen.text
    assert "kind: " not in seen.text
    for path, status in (("quantity=polite&below=0.5", 200), ("quantity=charm", 400)):
        assert (await get(store, f"/samples?{path}", scope=CRITERIA_SCOPE)).status_code == status
        assert (await get(store, f"/api/v1/samples?{path}", scope=CRITERIA_SCOPE)).status_code == status
