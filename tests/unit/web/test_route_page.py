"""The page of a route: three levels side by side, and what moved; missing figures are named, not invented."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from support.asked import get
from support.snapshots import AT, JUDGE, estimate, small

from ragwatch.model.quantities import Quantity
from ragwatch.statistics.snapshot import EstimateRow, Gauge, SegmentRow, Snapshot
from ragwatch.statistics.tally import Tally
from ragwatch.web.pages.route_page import END_TO_END, GENERATION, RETRIEVAL, route_levels
from ragwatch.web.scope import PageScope

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


@pytest.mark.parametrize(
    ("precision", "faithfulness", "headline"),
    [
        (0.5, 0.9, "Retrieval has become worse: look there first"),
        (0.5, 0.5, "Retrieval has become worse: look there first"),
        (0.9, 0.5, "Generation has become worse, and retrieval has not"),
        (0.9, 0.9, "Nothing has become worse than its baseline"),
    ],
)
def test_retrieval_comes_first(precision: float, faithfulness: float, headline: str) -> None:
    """What falls with a fall of retrieval is no fault of generation."""
    snapshot = showing(
        scored(Quantity.CONTEXT_PRECISION, precision),
        scored(Quantity.FAITHFULNESS, faithfulness),
        baselines={Quantity.CONTEXT_PRECISION: 0.9, Quantity.FAITHFULNESS: 0.9},
    )
    assert view(snapshot)["headline"] == headline


@pytest.mark.parametrize(
    ("quantity", "value", "expected"),
    [
        (Quantity.FAITHFULNESS, 0.5, "worse"),
        (Quantity.FAITHFULNESS, 0.99, "not worse"),
        (Quantity.FAITHFULNESS, 0.82, "not worse"),
        (Quantity.TOP_RANKED_IGNORED, 0.5, "not worse"),
        (Quantity.TOP_RANKED_IGNORED, 0.99, "worse"),
    ],
)
def test_a_figure_is_worse_when_its_whole_interval_is(quantity: Quantity, value: float, expected: str) -> None:
    """The baseline is .8; which side is worse depends on the metric."""
    assert moved(view(showing(scored(quantity, value), baselines={quantity: 0.8}))) == {str(quantity): expected}


def test_an_alarm_counts_whatever_the_interval() -> None:
    """The detector sees the worst part of a day, which a window may have left behind."""
    snapshot = showing(scored(Quantity.FAITHFULNESS, 0.8), baselines={Quantity.FAITHFULNESS: 0.8})
    alarm = {**snapshot.gauges, (Gauge.DRIFT_ALARM, ("faithfulness", "search")): 1.0}
    assert moved(view(replace(snapshot, gauges=alarm))) == {"faithfulness": "worse"}


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
async def test_it_is_served_and_escaped(route: str, status: int) -> None:
    """The page and its data; a route that does not exist is told as such."""
    snapshot = showing(scored(Quantity.FAITHFULNESS, 0.5), baselines={Quantity.FAITHFULNESS: 0.8})
    scope, query = PageScope(routes=("search", HOSTILE), judges=(JUDGE,)), urlencode({"route": route})
    page, data = [
        await get(None, f"{path}?{query}", scope=scope, snapshot=snapshot) for path in ("/routes", "/api/v1/routes")
    ]
    assert (page.status_code, data.status_code, data.json()["known"]) == (status, status, status == 200)
    assert "<script>" not in page.text
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
