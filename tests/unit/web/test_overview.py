"""Data of the overview: states follow intervals, missing figures have a reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from support.snapshots import AT, JUDGE, estimate, small

from ragwatch.core.sample import OTHER
from ragwatch.core.snapshot import EstimateRow, Gauge, Lag, Snapshot
from ragwatch.core.tally import Tally
from ragwatch.model.quantities import Quantity
from ragwatch.web.overview import overview
from ragwatch.web.pages import page
from ragwatch.web.scope import PageScope

SCOPE = PageScope(("app",), ("search", "support"), (JUDGE,), ("15m", "1h"), {"faithfulness": 0.7})


def figure(view: dict[str, Any], quantity: str, route: str = "search") -> dict[str, Any]:
    """One figure of a view."""
    (view_of_route,) = [row for row in view["routes"] if row["route"] == route]
    (row,) = [row for row in view_of_route["judges"][0]["figures"] if row["quantity"] == quantity]
    return dict(row)


def with_estimate(quantity: Quantity, value: float, half: float) -> Snapshot:
    """The small Snapshot with another estimate, and a level that says the same."""
    row = EstimateRow(quantity, "search", JUDGE, "1h", estimate(value, half=half))
    return replace(small(), estimates=(row,), corrected=(replace(row, corrected=True, labels=50),))


@pytest.mark.parametrize(
    ("quantity", "value", "half", "state"),
    [
        (Quantity.FAITHFULNESS, 0.6, 0.05, "bad"),
        (Quantity.FAITHFULNESS, 0.68, 0.05, "unsure"),
        (Quantity.FAITHFULNESS, 0.72, 0.05, "unsure"),
        (Quantity.FAITHFULNESS, 0.9, 0.05, "good"),
        (Quantity.TOP_RANKED_IGNORED, 0.5, 0.05, "bad"),
        (Quantity.TOP_RANKED_IGNORED, 0.32, 0.05, "unsure"),
        (Quantity.TOP_RANKED_IGNORED, 0.1, 0.05, "good"),
        (Quantity.CONTEXT_USE, 0.1, 0.05, "plain"),
    ],
)
def test_only_a_whole_interval_is_good_or_bad(quantity: Quantity, value: float, half: float, state: str) -> None:
    """An interval across its threshold is neither; for some quantities lower is better."""
    scope = replace(SCOPE, thresholds={"faithfulness": 0.7, "top_ranked_ignored": 0.3})
    view = overview(with_estimate(quantity, value, half), scope, now=AT)
    assert figure(view, quantity)["state"] == state
    assert view["state"] == state


def test_the_mean_of_a_judge_is_not_compared_with_a_threshold() -> None:
    """As in rules: without a level, or with a wide one, a figure is inconclusive, whatever the judge thinks."""
    bad = with_estimate(Quantity.FAITHFULNESS, 0.5, 0.02)
    (row,) = bad.estimates
    wide = replace(row, estimate=estimate(0.8, half=0.2), corrected=True, labels=50)
    in_words_of_another = replace(row, corrected=True, reference="claude")
    for levels, state in (
        ((), "plain"),
        ((replace(wide, labels=49),), "plain"),
        ((in_words_of_another,), "plain"),
        ((in_words_of_another, wide), "unsure"),
    ):
        view = overview(replace(bad, corrected=levels), SCOPE, now=AT)
        assert (figure(view, "faithfulness")["state"], view["state"]) == (state, state)
        assert view["headline"].startswith("Not calibrated yet" if state == "plain" else "Inconclusive")


@pytest.mark.parametrize(("own", "state"), [(0.5, "good"), (0.7, "bad"), (None, "plain")])
def test_a_route_may_have_its_own_threshold(own: float | None, state: str) -> None:
    """It takes precedence, and None is no threshold; what cannot page is listed."""
    scope = replace(SCOPE, route_thresholds={"search": {"faithfulness": own}}, unpaged=("no drift pages",))
    view = overview(with_estimate(Quantity.FAITHFULNESS, 0.6, 0.05), scope, now=AT)
    assert (figure(view, "faithfulness")["threshold"], figure(view, "faithfulness")["state"]) == (own, state)
    assert view["unpaged"] == ["no drift pages"]


@pytest.mark.parametrize(
    ("gauge", "labels", "state", "headline"),
    [
        (Gauge.DRIFT_ALARM, ("faithfulness", "search"), "bad", "Answer quality has drifted: generation on search"),
        (Gauge.TRAFFIC_DRIFT_ALARM, ("contexts", "search"), "unsure", "A judge or the traffic has drifted"),
        (Gauge.JUDGE_DRIFT_ALARM, (JUDGE,), "unsure", "A judge or the traffic has drifted"),
    ],
)
def test_a_standing_drift_alarm_is_not_green(gauge: Gauge, labels: Any, state: str, headline: str) -> None:
    """However good all figures are: an alarm about answers turns the page red, with the route that it is about."""
    good = with_estimate(Quantity.FAITHFULNESS, 0.95, 0.02)
    assert overview(good, SCOPE, now=AT)["state"] == "good"
    calm = overview(replace(good, gauges={(gauge, labels): 0.0}), SCOPE, now=AT)
    assert (calm["state"], calm["drift"]) == ("good", [])
    view = overview(replace(good, gauges={(gauge, labels): 1.0}), SCOPE, now=AT)
    assert (view["state"], view["headline"]) == (state, headline)
    route = view["routes"][0]
    expected = ("bad", ["faithfulness"]) if state == "bad" else ("good", [])
    assert (route["state"], route["threshold_state"], route["drift"]) == (expected[0], "good", expected[1])
    shown = page("overview.html", {"version": "1", **view})
    assert f'<section class="banner {state}">' in shown
    assert labels[0] in shown.split("</section>")[0]


def test_drift_and_a_threshold_are_both_said() -> None:
    """One does not hide the other."""
    gauges = {
        (Gauge.DRIFT_ALARM, ("context_use", "search")): 1.0,
        (Gauge.TRAFFIC_DRIFT_ALARM, ("contexts", "search")): 1.0,
    }
    bad = replace(with_estimate(Quantity.FAITHFULNESS, 0.5, 0.02), gauges=gauges)
    assert overview(bad, SCOPE, now=AT)["headline"] == (
        "Answer quality has drifted, and is worse than a threshold: generation on search"
    )
    other = replace(bad, gauges={(Gauge.TRAFFIC_DRIFT_ALARM, ("contexts", "search")): 1.0})
    assert overview(other, SCOPE, now=AT)["headline"] == "Quality is worse than a threshold: generation on search"


def test_a_figure_carries_the_whole_estimate() -> None:
    """Value, interval, bounds, numbers and age stand side by side."""
    row = figure(overview(small(), SCOPE, now=AT + 10), "faithfulness")
    assert (row["value"], row["low"], row["high"]) == pytest.approx((0.6, 0.55, 0.65))
    assert (row["bound_low"], row["bound_high"]) == pytest.approx((0.54, 0.64))
    assert (row["n"], row["age_seconds"], row["threshold"]) == (40, 100.0, 0.7)


@pytest.mark.parametrize(
    ("tallies", "why"),
    [
        ({}, "no answer sampled yet"),
        ({(Tally.DRAWN, ("search",)): 5}, "no answer judged yet"),
        ({(Tally.UNKNOWN, ("need_recall", "search", JUDGE, "not_read")): 5}, "this judge does not score it"),
        (
            {
                (Tally.UNKNOWN, ("need_recall", "search", JUDGE, "abstained")): 9,
                (Tally.UNKNOWN, ("need_recall", "search", JUDGE, "not_read")): 5,
            },
            "the answers abstain",
        ),
        ({(Tally.N, ("need_recall", "search", JUDGE)): 5}, "no answer in the last 1h"),
    ],
)
def test_silence_has_a_reason(tallies: dict[Any, int], why: str) -> None:
    """A missing figure has no value at all, but says why."""
    snapshot = replace(small(), tallies=Counter(tallies))
    row = figure(overview(snapshot, SCOPE, now=AT), "need_recall")
    assert (row["state"], row["why"]) == ("silent", why)
    assert "value" not in row
    if why == "no answer in the last 1h":  # where no window is known the reason names none
        view = overview(replace(snapshot, estimates=()), replace(SCOPE, windows=()), now=AT)
        assert figure(view, "need_recall")["why"] == "no recent answer"


def test_a_route_without_any_figure_says_so_once() -> None:
    """A silent route carries the reason for all its figures."""
    (support,) = [row for row in overview(small(), SCOPE, now=AT)["routes"] if row["route"] == "support"]
    assert [judge["why"] for judge in support["judges"]] == ["no answer sampled yet"]
    assert support["stages"] == []


def test_the_shortest_window_that_tells_something_is_shown() -> None:
    """Unless a known window is asked for."""
    assert overview(small(), SCOPE, now=AT)["window"] == "1h"
    assert overview(small(), SCOPE, now=AT, window="15m")["window"] == "15m"
    assert overview(small(), SCOPE, now=AT, window="<b>")["window"] == "1h"
    assert overview(Snapshot(at=AT), SCOPE, now=AT)["window"] == "15m"
    assert overview(small(), replace(SCOPE, windows=()), now=AT)["windows"] == ["1h"]
    assert overview(None, PageScope(), now=AT)["window"] == ""


def test_shares_of_stages_add_up() -> None:
    """Stage shares begin where the one before ended, and end at 1."""
    (search, _) = overview(small(), SCOPE, now=AT)["routes"]
    assert [(part["stage"], part["count"]) for part in search["stages"]] == [("none", 2), ("generation", 1)]
    assert search["stages"][1]["start"] == pytest.approx(2 / 3)
    assert sum(part["share"] for part in search["stages"]) == pytest.approx(1.0)


def test_other_is_shown_once_it_has_traffic() -> None:
    """The route `other` appears when something was drawn for it, or when no route is configured."""
    assert [row["route"] for row in overview(small(), SCOPE, now=AT)["routes"]] == ["search", "support"]
    snapshot = small()
    snapshot.tallies[Tally.DRAWN, (OTHER,)] += 1
    assert [row["route"] for row in overview(snapshot, SCOPE, now=AT)["routes"]] == ["search", "support", OTHER]
    assert [row["route"] for row in overview(None, PageScope(), now=AT)["routes"]] == [OTHER]


def test_sources_and_judges_account_for_everything() -> None:
    """What was seen, rejected, judged and left unjudged is listed by its reason."""
    view = overview(small(), SCOPE, now=AT)
    (source,) = view["sources"]
    assert (source["seen"], source["rejected"], source["lag_bytes"]) == (10, {"torn_json": 2}, 2048)
    (judge,) = view["judges"]
    assert (judge["version"], judge["judged"], judge["unjudged"]) == ("lexical-1", 3, {"timeout": 1})
    assert judge["pending"] == 2


def test_files_that_cannot_be_read_are_named() -> None:
    """A few of them, with the reason, and how many there are."""
    unreadable = {f"/log/{number}.jsonl": "Permission denied" for number in range(9)}
    (source,) = overview(replace(small(), lags={"app": Lag(7, None, unreadable)}), SCOPE, now=AT)["sources"]
    assert (source["unreadable_files"], len(source["unreadable"])) == (9, 5)
    assert source["unreadable"]["/log/0.jsonl"] == "Permission denied"


def test_problems_are_named_once() -> None:
    """Problems of the digest and of the present are one list without repeats."""
    snapshot = replace(small(), problems=("app cannot be read", "disk is full"))
    view = overview(snapshot, SCOPE, now=AT, problems=["app cannot be read"])
    assert view["problems"] == ["app cannot be read", "disk is full"]


def test_before_the_first_digest_nothing_is_known() -> None:
    """Without a Snapshot the state is silent and there is no instant."""
    view = overview(None, SCOPE, now=AT)
    assert (view["state"], view["at"], view["bad"], view["judged_figures"]) == ("silent", None, 0, 0)


def test_records_that_are_passed_over_are_told_until_one_was_read() -> None:
    """A source that skipped its log says so, but not once something of it was read, nor where nobody has looked."""
    snapshot = replace(small(), lags={"app": Lag(0, 0.0, skipped="0 of 9 existing records read")}, tallies=Counter())
    (source,) = overview(snapshot, SCOPE, now=AT)["sources"]
    assert source["skipped"] == "0 of 9 existing records read"
    seen = replace(snapshot, tallies=Counter({(Tally.SEEN, ("app",)): 1.0}))
    assert overview(seen, SCOPE, now=AT)["sources"][0]["skipped"] == ""
    assert overview(None, SCOPE, now=AT)["sources"][0]["skipped"] == ""
