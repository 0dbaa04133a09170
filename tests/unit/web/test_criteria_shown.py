"""Criteria on pages: figures of each route, answers of each sample, searches; whatever a quote holds stays text."""

from __future__ import annotations

from dataclasses import replace

from support.asked import XSS, Reading, get, judged
from support.kit import AT, a_draw, an_evidence
from support.snapshots import JUDGE, estimate, small

from ragwatch.core.evidence import CriterionAnswer, CriterionReading
from ragwatch.core.snapshot import EstimateRow, Gauge
from ragwatch.core.tally import Tally
from ragwatch.model.quantities import quantity_of
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web import PageScope
from ragwatch.web.overview import overview
from ragwatch.web.route_page import CRITERIA, route_levels

POLITE = quantity_of("polite")
SCOPE = PageScope(routes=("search",), judges=(JUDGE,), criteria=("polite", "names_price"), thresholds={"polite": 0.9})


def test_figures_of_a_route() -> None:
    """The overview has each criterion with its threshold, and why one is unknown; the page of a route a level."""
    snapshot = replace(
        small(),
        estimates=(EstimateRow(POLITE, "search", JUDGE, "1h", estimate(0.6)),),
        gauges={(Gauge.DRIFT_BASELINE, ("polite", "search")): 0.9},
    )
    snapshot.tallies[Tally.UNKNOWN, ("names_price", "search", JUDGE, "does_not_apply")] = 2
    (route, *_) = overview(snapshot, SCOPE, now=AT)["routes"]
    figures = {figure["quantity"]: figure for figure in route["judges"][0]["figures"]}
    assert (figures["polite"]["value"], figures["polite"]["state"]) == (0.6, "plain")
    assert figures["names_price"]["why"] == "the criterion does not apply to the answers"
    levels = route_levels(snapshot, SCOPE, "search", now=AT)
    assert levels["headline"] == "Answers meet a criterion of yours less often"
    (level,) = [level for level in levels["levels"] if level["level"] == CRITERIA]
    assert [(row["name"], row["moved"]) for row in level["rows"]] == [("polite", "worse")]
    plain = route_levels(snapshot, replace(SCOPE, criteria=()), "search", now=AT)
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
    page = await get(store, f"/samples/{draw.key}", scope=SCOPE)
    seen = Reading(page.text)
    assert "polite: no" in " ".join(seen.text.split())
    assert "names price: does not apply" in " ".join(seen.text.split())
    assert "script" not in seen.tags
    assert XSS in seen.text
    assert "kind: " not in seen.text
    for path, status in (("quantity=polite&below=0.5", 200), ("quantity=charm", 400)):
        assert (await get(store, f"/samples?{path}", scope=SCOPE)).status_code == status
        assert (await get(store, f"/api/v1/samples?{path}", scope=SCOPE)).status_code == status
