"""What users say is shown beside what judges say, with the share of answers that it is about."""

from __future__ import annotations

from dataclasses import replace

from support.asked import get
from support.kit import a_draw, a_verdict, an_admission
from support.snapshots import AT, JUDGE, estimate, small

from ragwatch.core.feedback import Correlation, JudgeCorrelation, UserScoreRow, UserScores
from ragwatch.exporter.allowed_labels import AllowedLabels
from ragwatch.exporter.families import of_snapshot
from ragwatch.model.quantities import Quantity
from ragwatch.ports import Feedback
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web import PageScope
from ragwatch.web.overview import overview
from ragwatch.web.route_page import END_TO_END, route_levels

CORRELATION = Correlation(0.5, 0.25, 0.75, 80)
SCOPE = PageScope(routes=("search",), judges=(JUDGE,))
SNAPSHOT = replace(
    small(),
    user_scores=UserScores(
        (UserScoreRow("search", "1h", replace(estimate(0.8), coverage=0.25)),),
        (JudgeCorrelation(JUDGE, Quantity.FAITHFULNESS, CORRELATION),),
        {"search": AT},
    ),
)


def test_in_the_api() -> None:
    """The overview has the mean by route with the response rate, and the correlations by judge."""
    shown = overview(SNAPSHOT, SCOPE, now=AT)
    figures = shown["routes"][0]["user_score"]
    assert (figures["value"], figures["response"], figures["last_sample_at"]) == (0.8, 0.25, AT)
    correlations = {judge["judge"]: judge["user_correlations"] for judge in shown["judges"]}
    assert correlations[JUDGE] == {"faithfulness": {"value": 0.5, "low": 0.25, "high": 0.75, "n": 80}}
    assert overview(small(), SCOPE, now=AT)["routes"][0]["user_score"] is None


def test_on_the_route_page() -> None:
    """It stands among the end-to-end figures, and says what share of the answers it is about."""
    levels = {level["level"]: level["rows"] for level in route_levels(SNAPSHOT, SCOPE, "search", now=AT)["levels"]}
    (row,) = (row for row in levels[END_TO_END] if row["name"] == "user_score")
    assert (row["value"], row["source"]) == (0.8, "feedback of users on 25 % of the answers, which they chose")


async def test_on_the_overview() -> None:
    """The overview has one line for each route with feedback."""
    page = (await get(None, "/", scope=SCOPE, snapshot=SNAPSHOT)).text
    assert "User score <b>0.800</b>" in page
    assert "25 % of those sampled in 1h" in page


async def test_on_the_sample_page(store: SqliteStore) -> None:
    """The page of an answer says what its user said, and nothing where nothing was said."""
    rated, other = a_draw("a"), a_draw("b")
    store.admit(replace(an_admission(rated, other), feedback=(Feedback((rated.key,), 0.75, AT, "app"),)))
    store.settle([a_verdict(rated), a_verdict(other)])
    assert "user score <b>0.75</b>" in (await get(store, f"/samples/{rated.key}")).text
    assert "user score" not in (await get(store, f"/samples/{other.key}")).text
    assert (await get(store, f"/api/v1/samples/{rated.key}")).json()["feedback"] == {"user_score": 0.75, "at": AT}


def test_as_series() -> None:
    """Each figure is exported under its route and window, or its judge and quantity."""
    allowed = AllowedLabels(sources=["app"], routes=["search"], judges=[JUDGE])
    values = {sample.name: sample.value for metric in of_snapshot(SNAPSHOT, allowed) for sample in metric.samples}
    assert values["ragwatch_user_score_ratio"] == 0.8
    assert values["ragwatch_user_score_response_ratio"] == 0.25
    assert values["ragwatch_user_score_last_sample_timestamp_seconds"] == AT
    assert values["ragwatch_user_score_correlation_ratio_low"] == 0.25
    assert values["ragwatch_user_score_correlation_samples"] == 80
