"""The pages of trends and of before and after: values, gaps, events, evidence in words."""

from collections import Counter
from dataclasses import replace
from typing import Any

import httpx
import pytest
from support import asked
from support.asked import judged
from support.kit import AT, JUDGE, a_draw, a_reading, an_evidence
from support.snapshots import estimate, small

from ragwatch.model.estimate import Addends
from ragwatch.model.quantities import Quantity
from ragwatch.ports import Peak, RecordedEvent, Store, StoredRun
from ragwatch.statistics.snapshot import EstimateRow, Gauge, Snapshot
from ragwatch.statistics.trends import COARSE, DAY, FINE, HOUR, RANGES, BucketKey, TrendKey, TrendKind, add_to, start_of
from ragwatch.web import PageScope
from ragwatch.web.pages.changes_page import ChangeRequest, changes
from ragwatch.web.pages.charts import WIDTH
from ragwatch.web.pages.trends_page import TrendRequest, trends

SCOPE = PageScope(routes=("search",), judges=(JUDGE,), suites=("docs",), thresholds={"faithfulness": 0.85})
LATEST = replace(small(), judges={JUDGE: ("scripted", "scripted-1")})
FAITHFULNESS = TrendKey(TrendKind.SCORE, "search", "faithfulness", JUDGE, "scripted-1")


def add(store: Store, series: TrendKey, at: float, sums: Addends) -> None:
    """Store sums as if they came from a run."""
    rows: dict[BucketKey, Addends] = {}
    add_to(rows, series, at, sums)
    store.record_run(StoredRun("canary", "x", at, failing=False, body={}), Counter(), rows)


def scored(ones: int, zeros: int) -> Addends:
    """Sums of yes and no."""
    return Addends.of([(1.0, 1.0)] * ones + [(0.0, 1.0)] * zeros)


def view(store: Store | None, snapshot: Snapshot | None = LATEST, **wanted: str) -> dict[str, Any]:
    """Data of the page of trends."""
    return trends(TrendRequest(**wanted), store, snapshot, SCOPE, now=AT)[0]


async def get(
    store: Store | None, path: str, *, scope: PageScope = SCOPE, snapshot: Snapshot = LATEST
) -> httpx.Response:
    """A page of the application."""
    return await asked.get(store, path, scope=scope, snapshot=snapshot)


def test_a_chart_shows_what_was_judged_and_gaps_where_nothing_was(store: Store) -> None:
    """Each answer is in the bucket of its time; a bucket without one has no point, and the line is interrupted."""
    for index, hours in enumerate((1, 2, 20)):
        draw = a_draw(f"r{index}", at=AT - hours * HOUR)
        judged(store, draw, an_evidence((index > 0, 0)))
    shown = view(store, range="1d")
    (chart,) = [chart for chart in shown["charts"] if chart["name"] == "faithfulness"]
    assert chart["mean"]["n"] == chart["n"] == 3
    assert chart["mean"]["value"] == pytest.approx(2 / 3)
    assert [
        (point["start"] <= AT - hours * HOUR < point["start"] + shown["step"])
        for point, hours in zip(chart["points"], (20, 2, 1), strict=True)
    ] == [True] * 3
    assert [point["value"] for point in chart["points"]] == [1.0, 1.0, 0.0]
    (line,) = chart["shapes"]["lines"]
    assert line["path"].count("M") == line["band"].count("M") == 3
    assert "need_recall" in shown["silent"]


@pytest.mark.parametrize("name", RANGES)
def test_every_range_counts_all_of_its_time(store: Store, name: str) -> None:
    """The first and the last instant of a range are on the chart, and nothing before it; it ends now."""
    since, until, step = (view(store, range=name)[end] for end in ("since", "until", "step"))
    assert until == AT + 1
    assert RANGES[name].seconds - step < until - since <= RANGES[name].seconds
    for at in (since - 1, since, AT):
        add(store, FAITHFULNESS, at, scored(1, 0))
    (chart,) = view(store, range=name)["charts"]
    assert chart["mean"]["n"] == 2
    last = chart["columns"][-1]
    assert last["x"] + last["width"] == pytest.approx(WIDTH)


def test_scores_of_two_versions_of_a_judge_are_two_lines(store: Store) -> None:
    """The mean is that of the version in force; the other one is drawn as past, and named."""
    add(store, FAITHFULNESS._replace(version="older"), AT - DAY, scored(0, 9))
    add(store, FAITHFULNESS, AT - HOUR, scored(4, 0))
    (chart,) = view(store)["charts"]
    assert (chart["versions"], chart["mean"]["value"], chart["mean"]["n"]) == (["older", "scripted-1"], 1.0, 4)
    assert [line["current"] for line in chart["shapes"]["lines"]] == [False, True]


def test_evidence_is_drawn_on_a_log_scale_and_said_in_words(store: Store) -> None:
    """The present counts as part of the last bucket; a threshold is drawn at its height."""
    series = TrendKey(TrendKind.DRIFT, "search", "faithfulness")
    store.add_peaks([Peak(series, COARSE, start_of(AT - DAY, COARSE), 300.0, 270.0)])
    gauges = {
        (Gauge.DRIFT_EVIDENCE, ("faithfulness", "search")): 4.062e-05,
        (Gauge.DRIFT_THRESHOLD, ("faithfulness", "search")): 270.0,
        (Gauge.TRAFFIC_DRIFT_EVIDENCE, ("contexts", "search")): 20.0,
        (Gauge.TRAFFIC_DRIFT_THRESHOLD, ("contexts", "search")): 270.0,
        (Gauge.DRIFT_EVIDENCE, ("faithfulness", "support")): 5.0,
    }
    answers, traffic = view(store, replace(LATEST, gauges=gauges))["charts"]
    assert (answers["kind"], answers["level"], answers["words"]) == (
        "drift",
        "alarm",
        "no sign of a change (the alarm needs 270)",
    )
    assert answers["points"][-1]["peak"] == 4.062e-05
    assert 0 < answers["shapes"]["threshold_y"] < 50
    assert (traffic["kind"], traffic["level"]) == ("traffic_drift", "strong")


def test_canary_figures_are_charted_by_suite(store: Store) -> None:
    """One chart for each figure, with the number of runs and without an interval."""
    for hours in (1, 2):
        add(store, TrendKey(TrendKind.CANARY, "docs", "recall@5"), AT - hours * HOUR, Addends.one(0.5, 1.0))
    (chart,) = view(store, suite="docs")["charts"]
    assert (chart["name"], chart["mean"]) == ("recall@5", {"value": 0.5, "low": None, "high": None, "n": 2})
    assert chart["shapes"]["lines"][0]["band"] == ""


async def test_events_are_on_every_chart_and_lead_to_before_and_after(store: Store) -> None:
    """A click compares; the list below has the same links for keyboards."""
    for name in ("faithfulness", "context_use"):
        add(store, FAITHFULNESS._replace(name=name), AT - HOUR, scored(9, 1))
    store.record(RecordedEvent(AT - 2 * DAY, "release", "v2"))
    store.record(RecordedEvent(AT - 9 * DAY, "release", "v1"))
    page = (await get(store, "/trends?route=search")).text
    address = f"changes?route=search&amp;judge={JUDGE}&amp;at={AT - 2 * DAY:.3f}"
    assert page.count(f'<a href="{address}" tabindex="-1"') == 2
    assert page.count(f'<a href="{address}">before and after') == 1
    assert "release: v1" not in page
    assert "release: v2" in page
    assert 'http-equiv="refresh"' not in page


async def test_wrong_parameters_are_named(store: Store) -> None:
    """With what is wrong and what is allowed, on the page and as JSON."""
    for path, status, part in (
        ("/trends?range=2d", 400, "range: &#39;2d&#39; is not known; use one of: 1h, 6h, 1d, 7d, 30d, 90d"),
        ("/trends?colour=red", 400, "colour: is not known; use route, suite, judge, range"),
        ("/trends?route=nowhere", 404, "Trends of nowhere"),
        ("/changes", 400, "at: give a time of the past"),
        ("/changes?at=2099-01-01", 400, "at: give a time of the past"),
        ("/changes?at=1h&span=2d", 400, "span: &#39;2d&#39; is not known; use one of: 1h, 6h, 1d, 7d"),
        ("/changes?at=1h&colour=red", 400, "colour: is not known; use at, route, suite, judge, span, questions"),
        ("/changes?at=1h&route=search", 200, "Nothing to compare yet"),
    ):
        response = await get(store, path)
        assert (path, response.status_code, part in response.text) == (path, status, True)
        assert (await get(store, f"/api/v1{path}")).status_code == status


async def test_without_a_store_and_data_the_pages_say_so(store: Store) -> None:
    """No chart, no error; of a route without an answer, with what a chart needs."""
    assert "No data in this range" in (await get(None, "/trends")).text
    young = (await get(store, "/trends?route=search&range=1d")).text
    assert "A chart appears with the first judged answer of this route" in young
    assert "No data on either side" in (await get(None, "/changes?at=1h&route=search")).text


def compared(store: Store, at: float = AT - 12 * HOUR, **wanted: str) -> dict[str, Any]:
    """Data of the comparison."""
    return changes(ChangeRequest(at, **{"route": "search", **wanted}), store, SCOPE, now=AT)[0]


def test_before_and_after_have_an_interval_and_a_conclusion(store: Store) -> None:
    """A clear fall is worse; what chance explains is no clear difference; where lower is better, a fall is better."""
    at = AT - 12 * HOUR
    for name, before, after in (
        ("faithfulness", scored(95, 5), scored(60, 40)),
        ("contradiction", scored(60, 40), scored(5, 95)),
        ("context_use", scored(50, 50), scored(52, 48)),
    ):
        add(store, FAITHFULNESS._replace(name=name), at - HOUR, before)
        add(store, FAITHFULNESS._replace(name=name), at + HOUR, after)
    store.record(RecordedEvent(at, "release", "v2"))
    store.record(RecordedEvent(at + 600, "reload", "configuration changed: judges"))
    shown = compared(store)
    assert {row["name"]: row["conclusion"] for row in shown["rows"]} == {
        "faithfulness": "worse",
        "contradiction": "better",
        "context_use": "noise",
    }
    first = shown["rows"][0]
    assert (first["before"]["n"], first["after"]["n"]) == (100, 100)
    assert first["difference"]["low"] < first["difference"]["value"] < first["difference"]["high"] < 0
    assert (shown["state"], shown["headline"]) == ("bad", "Worse than before")
    assert [event["detail"] for event in shown["events"]] == ["v2"]
    assert [event["kind"] for event in shown["others"]] == ["reload"]
    add(store, FAITHFULNESS._replace(place="improved"), at - HOUR, scored(50, 50))
    add(store, FAITHFULNESS._replace(place="improved"), at + HOUR, scored(95, 5))
    good = compared(store, route="improved")
    assert (good["state"], good["headline"]) == ("good", "Better than before")


def test_of_many_quantities_none_is_worse_by_chance(store: Store) -> None:
    """Intervals of differences hold together: what is clear alone may not be clear beside eight others."""
    at = AT - 12 * HOUR
    for side, sums in ((-HOUR, scored(90, 10)), (HOUR, scored(80, 20))):
        add(store, FAITHFULNESS, at + side, sums)
    assert compared(store)["rows"][0]["conclusion"] == "worse"
    for index in range(8):
        for side in (-HOUR, HOUR):
            add(store, FAITHFULNESS._replace(name=f"other {index}"), at + side, scored(80, 20))
    assert {row["conclusion"] for row in compared(store)["rows"]} == {"noise"}


def test_scores_of_another_version_of_the_judge_are_not_compared(store: Store) -> None:
    """The row says so instead of a difference; the bucket of the change is split where it happened."""
    at = AT - 12 * HOUR + 60.0
    add(store, FAITHFULNESS._replace(version="older"), at - HOUR, scored(50, 0))
    add(store, FAITHFULNESS, at + HOUR, scored(0, 50))
    add(store, FAITHFULNESS, at, scored(7, 0))
    (row,) = compared(store, at)["rows"]
    assert (row["difference"], row["other_version"], row["after"]["n"]) == (None, "older", 50)


async def test_answers_to_the_same_questions_are_compared_in_pairs(store: Store) -> None:
    """With the interval of pairs and who won; answers to questions of one side only, or by another version, are not."""
    at = AT - 12 * HOUR
    for side, cells in ((-HOUR, (1, 0)), (HOUR, (0, 0))):
        for index in range(40):
            draw = a_draw(f"r{side}{index}", at=at + side + index, question=f"Question {index}?")
            judged(store, draw, an_evidence(cells))
    for name, seconds, version in (("alone", -HOUR, "scripted-1"), ("older", -HOUR - 1, "older")):
        draw = a_draw(name, at=at + seconds, question=f"{name}?")
        judged(store, draw, reading=a_reading(version=version))
    same = compared(store, at, judge=JUDGE, questions="same")["same_questions"]
    assert (same["paired"], same["shared"], same["only_a"], same["only_b"]) == (True, 40, 1, 0)
    rows = {row["metric"]: row for row in same["metrics"]}
    assert (rows["faithfulness"]["losses"], rows["faithfulness"]["conclusion"]) == (40, "worse")
    path = f"/changes?route=search&at={at}&questions="
    assert "0, 0, 40" in (await get(store, f"{path}same")).text
    assert "questions=same" in (await get(store, path)).text
    assert (await get(store, f"{path}other")).status_code == 400


async def test_too_few_common_questions_are_said(store: Store) -> None:
    """No table of pairs that are none."""
    page = (await get(store, "/changes?route=search&at=1h&questions=same")).text
    assert "Nothing to compare yet" in page
    add(store, FAITHFULNESS, AT - 2 * HOUR, scored(5, 5))
    page = (await get(store, "/changes?route=search&at=1h&questions=same")).text
    assert "Too few questions are on both sides: 0; 0 only before, 0 only after." in page


def test_figures_of_canaries_are_compared_without_an_interval(store: Store) -> None:
    """Runs send the same queries; a suite without a run on one side has no difference."""
    at = AT - 12 * HOUR
    series = TrendKey(TrendKind.CANARY, "docs", "recall@5")
    add(store, series, at - HOUR, Addends.one(1.0, 1.0))
    add(store, series._replace(name="mrr"), at - HOUR, Addends.one(1.0, 1.0))
    add(store, series, at + HOUR, Addends.one(0.25, 1.0))
    rows = {row["name"]: row for row in compared(store, at, suite="docs")["rows"]}
    assert rows["recall@5"]["difference"] == {"value": -0.75, "low": None, "high": None}
    assert (rows["mrr"]["difference"], rows["mrr"]["after"], rows["mrr"]["samples"]) == (None, None, None)


def test_an_old_event_is_compared_by_hours(store: Store) -> None:
    """Fine buckets of its time are gone; the hour that contains it is split where it happened."""
    at = AT - 20 * DAY + 1.0
    assert (compared(store, AT - HOUR)["sides"]["span"], compared(store, at)["sides"]["span"]) == (FINE, COARSE)
    reading = a_reading(version="scripted-1")
    for index, seconds in enumerate((-2 * HOUR, 0, 2 * HOUR)):
        draw = a_draw(f"r{index}", at=at + seconds)
        judged(store, draw, reading=reading)
    row = compared(store, at)["rows"][0]
    assert (row["name"], row["before"]["n"], row["after"]["n"]) == ("faithfulness", 1, 2)
    assert (row["conclusion"], "only 1 scores on one side" in row["why"]) == ("noise", True)


async def test_a_release_is_compared_from_its_first_answer_on(store: Store) -> None:
    """The bucket that contains the release is split there: nobody waits for the next one."""
    at = AT - AT % 300 - 300 + 200.0
    asked.released(store, [at - 1 - number for number in range(60)], fails=False)
    asked.released(store, [at + number / 2 for number in range(40)], fails=True)
    shown = (await get(store, f"/api/v1/changes?route=search&judge={JUDGE}&at={at}")).json()
    row = next(row for row in shown["rows"] if row["name"] == "faithfulness")
    assert (row["before"]["n"], row["after"]["n"], row["conclusion"]) == (60, 40, "worse")
    assert (shown["sides"]["end"], shown["sides"]["start"], shown["state"]) == (at, at, "bad")


async def test_the_change_against_last_week_stands_beside_the_level(store: Store) -> None:
    """The same hours, by the same version of the judge; without answers then there is no such column."""
    row = EstimateRow(Quantity.FAITHFULNESS, "search", JUDGE, "1h", estimate(0.6))
    latest, at = replace(LATEST, estimates=(row,)), AT - 7 * DAY - HOUR / 4
    for path in ("/", "/routes?route=search"):
        assert "last week" not in (await get(store, path, snapshot=latest)).text
    add(store, FAITHFULNESS, at, scored(360, 40))
    add(store, FAITHFULNESS._replace(version="older"), at, scored(0, 400))
    for path in ("/", "/routes?route=search"):
        assert "-0.30 ±0.0" in (await get(store, path, snapshot=latest)).text
