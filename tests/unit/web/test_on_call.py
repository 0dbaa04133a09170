"""What pages say to an engineer on call: what broke, since when, whether it is over, and where the reader is."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import httpx
import pytest
from support import asked
from support.asked import Reading
from support.kit import AT, JUDGE, a_draw, an_evidence
from support.snapshots import estimate, small

from ragwatch.model.estimate import Addends
from ragwatch.model.quantities import Quantity
from ragwatch.ports import Store, StoredRun
from ragwatch.statistics.snapshot import EstimateRow, Gauge, Snapshot
from ragwatch.statistics.trends import DAY, HOUR, BucketKey, TrendKey, TrendKind, add_to
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web import PageScope

SCOPE = PageScope(("app",), ("search",), (JUDGE,), ("1h",), {"faithfulness": 0.85}, ("docs",))
LATEST = replace(small(AT), judges={JUDGE: ("scripted", "scripted-1")})
PAGES = ("", "samples", "causes", "trends", "drift", "canaries")


async def get(path: str, store: Store | None = None, snapshot: Snapshot = LATEST) -> httpx.Response:
    """A page or a reply."""
    return await asked.get(store, path, scope=SCOPE, snapshot=snapshot)


async def test_six_links_and_the_current_page_is_marked() -> None:
    """One of the links of the head is the page itself; the words of the pages are explained on each."""
    for page in PAGES:
        body = (await get(f"/{page}")).text
        head = body.split('<nav aria-label="Pages">')[1].split("</nav>")[0]
        assert (page, head.count("<a "), head.count("aria-current")) == (page, len(PAGES), 1)
        assert f'href="{page or "."}" aria-current="page"' in head
        assert 'id="words"' in body, page


@pytest.mark.parametrize(
    ("usual", "named"),
    [({}, "generation"), ({"generation": 0.6}, "retrieval"), ({"generation": 0.6, "retrieval": 0.2}, "")],
)
async def test_the_headline_names_the_stage_that_broke_in_the_window(usual: dict[str, float], named: str) -> None:
    """The stage whose share rose most above the one of the baseline; counts of other windows do not matter."""
    place = "search", JUDGE
    stages = {
        **{(*place, "1h", stage): count for stage, count in (("none", 4), ("retrieval", 1), ("generation", 5))},
        (*place, "1d", "alignment"): 1000,
    }
    gauges = {(Gauge.DRIFT_ALARM, ("faithfulness", "search")): 1.0}
    gauges |= {(Gauge.STAGE_BASELINE, ("search", stage)): share for stage, share in usual.items()}
    shown = (await get("/api/v1/snapshot", None, replace(LATEST, stages=stages, gauges=gauges))).json()
    assert shown["headline"] == "Answer quality has drifted" + (f": {named} on search" if named else "")


def settle(store: Store, moments: list[float], *, fails: bool) -> None:
    """Judged answers of one release, which all fail or do not."""
    draws = [a_draw(f"r{at}", at=at, metadata={"release": "v2" if fails else "v1"}) for at in moments]
    asked.settled(store, draws, [an_evidence((0, 0)) if fails else None] * len(draws))


async def test_causes_end_with_their_incident(store: SqliteStore) -> None:
    """While answers fail the page is red; once they have not failed for long, it says when that ended."""
    settle(store, [AT - 7200 - 10 * number for number in range(60)], fails=False)
    settle(store, [AT - 3600 - 10 * number for number in range(60)], fails=True)
    red = (await get("/causes?window=24h", store)).text
    assert '<section class="banner bad">' in red
    settle(store, [AT - 10 * number for number in range(60)], fails=False)
    over = (await get("/causes?window=24h", store)).text
    assert '<section class="banner plain">' in over
    assert "of failing answers, ended " in Reading(over).text


async def test_a_release_is_compared_from_its_first_answer_on(store: SqliteStore) -> None:
    """The bucket that contains the release is split there: nobody waits for the next one."""
    at = AT - AT % 300 - 300 + 200.0
    settle(store, [at - 1 - number for number in range(60)], fails=False)
    settle(store, [at + number / 2 for number in range(40)], fails=True)
    shown = (await get(f"/api/v1/changes?route=search&judge={JUDGE}&at={at}", store)).json()
    row = next(row for row in shown["rows"] if row["name"] == "faithfulness")
    assert (row["before"]["n"], row["after"]["n"], row["conclusion"]) == (60, 40, "worse")
    assert (shown["sides"]["end"], shown["sides"]["start"], shown["state"]) == (at, at, "bad")


async def test_the_change_against_last_week_stands_beside_the_level(store: SqliteStore) -> None:
    """The same hours, by the same version of the judge; without answers then there is no such column."""
    rows: dict[BucketKey, Addends] = {}
    scores = [(1.0, 1.0)] * 360 + [(0.0, 1.0)] * 40
    for version, sums in (("scripted-1", Addends.of(scores)), ("older", Addends.of([(0.0, 1.0)] * 400))):
        add_to(rows, TrendKey(TrendKind.SCORE, "search", "faithfulness", JUDGE, version), AT - 7 * DAY - HOUR / 4, sums)
    estimates = (EstimateRow(Quantity.FAITHFULNESS, "search", JUDGE, "1h", estimate(0.6)),)
    latest = replace(LATEST, estimates=estimates)
    for path in ("/", "/routes?route=search"):
        assert "last week" not in (await get(path, store, latest)).text
    store.record_run(StoredRun("canary", "x", AT, failing=False, body={}), Counter(), rows)
    for path in ("/", "/routes?route=search"):
        assert "-0.30 ±0.0" in (await get(path, store, latest)).text


async def test_a_failing_answer_shows_its_score_its_beginning_and_its_age(store: SqliteStore) -> None:
    """The worst score about the stage at fault; the time itself is on the hover text."""
    settle(store, [AT - 130.0], fails=True)
    (row,) = (await get("/api/v1/snapshot", store)).json()["failing"]
    assert (row["stage"], row["quantity"], row["score"]) == ("generation", "faithfulness", 0.0)
    body = (await get("/", store)).text
    assert "2 min ago" in body
    assert 'UTC">2 min ago</time>' in body
    assert row["answer"] in body
