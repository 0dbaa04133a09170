"""The page of a segment: what is worst stands first, and thin values say that they are drawn."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from support.asked import Reading, get, settled
from support.kit import AT, JUDGE, a_claim, a_draw, a_reading, an_evidence
from support.snapshots import small

from ragwatch.model.sample import Context
from ragwatch.pipeline.windows import SegmentWindows
from ragwatch.ports import Store
from ragwatch.statistics.segments import Segments, period_of
from ragwatch.statistics.snapshot import Gauge
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web.pages.segments_page import LITTLE, PAGE_ROWS
from ragwatch.web.scope import PageScope

BAD = an_evidence(a_claim((0, 0)))
CELL = ("faithfulness", "search", "tenant", "acme")
SNAPSHOT = replace(
    small(), at=AT, judges={JUDGE: ("scripted", a_reading().version)}, gauges={(Gauge.SEGMENT_DRIFT_ALARM, CELL): 1.0}
)
TENANTS = ("acme", "bolt", "calm", "dune", "edge", "tiny")
SCOPE = PageScope(
    routes=("search", "faq"),
    judges=(JUDGE,),
    windows=("15m", "1h"),
    thresholds={"faithfulness": 0.8},
    segments={"tenant": TENANTS, "user.tier": ("free",)},
)
HOUR = 3600.0


def fill(store: Store, counts: dict[str, tuple[int, int, int, int]], **parts: Any) -> None:
    """Settle answers by tenant: good and bad ones of the hour before the last, then of the last."""
    draws, evidences = [], []
    for value, numbers in counts.items():
        for side, number in enumerate(numbers):
            for index in range(number):
                at = AT - (1.5 if side < 2 else 0.5) * HOUR - index
                one = a_draw(f"{value}-{side}-{index}", at=at, metadata={"tenant": value}, **parts)
                draws.append(replace(one, segments=(("tenant", value),)))
                evidences.append(BAD if side % 2 else None)
    settled(store, draws, evidences)


COUNTS = {
    "acme": (60, 0, 30, 30),
    "bolt": (60, 0, 60, 0),
    "calm": (60, 6, 60, 6),
    "dune": (60, 0, 58, 2),
    "edge": (60, 3, 60, 3),
    "tiny": (3, 0, 1, 1),
}


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    """A store with answers of six tenants, which is only read."""
    with closing(SqliteStore(tmp_path_factory.mktemp("tenants"))) as store:
        fill(store, COUNTS)
        yield store


async def view(store: Store | None, path: str = "tenant?window=1h", **parts: Any) -> dict[str, Any]:
    """The reply of the API."""
    reply = await get(store, f"/api/v1/segments/{path}", **{"scope": SCOPE, "snapshot": SNAPSHOT, **parts})
    return dict(reply.json())


async def page(store: Store, path: str = "tenant?window=1h") -> str:
    """The page."""
    return (await get(store, f"/segments/{path}", scope=SCOPE, snapshot=SNAPSHOT)).text


async def test_what_became_worse_stands_first(tenants: SqliteStore) -> None:
    """With level, change, volume, failing share, stage at fault and a line over both sides; and what the alarm says."""
    shown = await view(tenants)
    assert [row["value"] for row in shown["values"]][:1] == ["acme"]
    worst = shown["values"][0]
    assert (worst["moved"], worst["bad"], worst["alarm"], worst["stage"]) == ("worse", True, True, "generation")
    assert (worst["n"], worst["n_before"], worst["answers"], worst["failing"]) == (60, 60, 60.0, 0.5)
    assert worst["change"]["high"] < 0.0
    assert worst["level"]["own"] is None
    assert sum(point["n"] for point in worst["points"]) == 120
    assert {point["mean"] for point in worst["points"] if point["n"]} == {1.0, 0.5}
    assert all(row["moved"] is None for row in shown["values"][1:])
    body = await page(tenants)
    text = " ".join(Reading(body).text.split())
    assert "drift alarm: acme, faithfulness" in text
    assert "60 of 60" not in text
    assert "30 of 60" in text
    assert f'href="../samples?route=search&amp;judge={JUDGE}&amp;quantity=faithfulness&amp;sort=worst' in body


async def test_levels_are_those_of_the_page_of_the_route(tenants: SqliteStore) -> None:
    """Of values with enough answers: the mean, its interval and n are those that the digest computes."""
    for name, span in (("15m", 900.0), ("1h", HOUR)):
        rows = tenants.window(0, 0.0, 10_000)
        windows = SegmentWindows(Segments(SCOPE.segments), {name: span}, {JUDGE: a_reading().version}, SCOPE.confidence)
        windows.add(rows)
        digest = {
            row.value: row.estimate
            for row in windows.summary(AT)
            if row.quantity == "faithfulness" and row.window == name
        }
        shown = {row["value"]: row for row in (await view(tenants, f"tenant?window={name}"))["values"] if row["n"]}
        assert {value: one.n for value, one in digest.items()} == {value: row["n"] for value, row in shown.items()}
        for value, row in shown.items():
            if row["level"]["own"] is None:
                estimate = digest[value]
                assert row["level"]["value"] == pytest.approx(estimate.value)
                assert (row["level"]["low"], row["level"]["high"]) == pytest.approx((estimate.low, estimate.high))
    assert period_of(AT, HOUR)[1] >= AT


async def test_a_value_with_few_answers_is_drawn_toward_its_route_and_says_so(tenants: SqliteStore) -> None:
    """One of two answers fails: that is no level of .5."""
    rows = {row["value"]: row for row in (await view(tenants))["values"]}
    tiny = rows["tiny"]
    assert tiny["n"] < LITTLE
    assert tiny["level"]["own"] == 0.5
    assert 0.5 < tiny["level"]["value"] < 0.9
    assert tiny["level"]["low"] <= 0.5 < tiny["level"]["high"] <= 1.0
    assert (tiny["change"]["own"], tiny["moved"]) == (-0.5, None)
    assert -0.5 < tiny["change"]["value"] < 0.0
    assert "its answers alone: 0.50" in Reading(await page(tenants)).text


async def test_few_values_are_not_drawn(store: SqliteStore) -> None:
    """How much values differ is not known of two."""
    fill(store, {name: COUNTS[name] for name in ("acme", "tiny")})
    assert {row["level"]["own"] for row in (await view(store))["values"]} == {None}


async def test_orders_and_pages(tenants: SqliteStore, store: SqliteStore) -> None:
    """Each order has its own first value; a page holds a part, and the last one stays when more are asked for."""
    first = {"change": "acme", "level": "acme", "failing": "acme", "answers": "calm", "value": "acme"}
    shown = {sort: (await view(tenants, f"tenant?window=1h&sort={sort}"))["values"] for sort in first}
    assert {sort: rows[0]["value"] for sort, rows in shown.items()} == first
    assert [row["value"] for row in shown["value"]] == sorted(TENANTS)
    fill(store, {f"t{number:03}": (0, 0, 1, number % 2) for number in range(PAGE_ROWS + 3)})
    last = await view(store, "tenant?window=1h&sort=value&page=999")
    assert (last["page"], last["pages"], last["count"], len(last["values"])) == (2, 2, PAGE_ROWS + 3, 3)
    body = await page(store, "tenant?window=1h&page=2")
    assert ("page=1" in body, 'rel="next"' in body) == (True, False)
    values = (await view(store))["values"]
    assert {(row["change"], row["moved"]) for row in values} == {(None, None)}


async def test_a_new_value_that_is_bad_comes_first(store: SqliteStore) -> None:
    """A release has no time before: it is ordered by its distance from what the route was."""
    fill(store, {"v1": (40, 0, 40, 0), "v2": (0, 0, 40, 40)})
    values = (await view(store, "tenant?window=1h"))["values"]
    assert [(row["value"], row["change"] is None) for row in values] == [("v2", True), ("v1", False)]


async def test_retrieval_steps(store: SqliteStore) -> None:
    """Which step returned what answers use, and how much of its contexts no answer uses."""
    contexts = (Context("Cats purr.", "d1", None, "bm25"), Context("Dogs bark.", "d2", None, "dense"))
    fill(store, {"acme": (40, 0, 40, 0)}, contexts=contexts)
    shown = await view(store, "step?window=1h")
    assert {row["value"]: row["level"]["value"] for row in shown["values"]} == {"bm25": 1.0, "dense": 0.0}
    assert (shown["quantity"], shown["lower_is_better"], shown["threshold"]) == ("used", None, None)
    ignored = await view(store, "step?window=1h&quantity=ignored&sort=level")
    assert [(row["value"], row["level"]["value"]) for row in ignored["values"]] == [("dense", 1.0), ("bm25", 0.0)]
    body = await page(store, "step?window=1h")
    assert "Answers by retrieval step" in body
    assert (
        "No judged answer of this time has contexts" in (await get(store, "/segments/step?route=faq", scope=SCOPE)).text
    )


async def test_what_is_not_there_is_said(store: SqliteStore) -> None:
    """A key, a parameter, or data."""
    assert (await view(store, "tenant"))["values"] == []
    assert "has a value of user.tier" in await page(store, "user.tier")
    for path, status in (("none", 404), ("tenant?route=x", 400), ("tenant?window=2h", 400), ("tenant?page=0", 400)):
        reply = await get(store, f"/segments/{path}", scope=SCOPE, snapshot=SNAPSHOT)
        assert (path, reply.status_code) == (path, status)
        assert 'role="alert"' in reply.text
    assert (await view(store, "tenant?quantity=charm"))["error"].startswith("quantity: 'charm' is not known; use one")
    assert (await view(None, snapshot=None))["values"] == []


async def test_a_key_may_have_a_slash(store: SqliteStore) -> None:
    """Links of its page lead where they should."""
    nested = replace(SCOPE, segments={"a/b": ("c",)})
    deep = await get(store, "/segments/a/b", scope=nested, snapshot=SNAPSHOT)
    assert (deep.status_code, 'href="../../static/ragwatch.css"' in deep.text) == (200, True)
