"""The overview: states follow intervals, missing figures have a reason, alarms are never green."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.asked import get
from support.snapshots import AT, JUDGE, KEY, estimate, small

from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import OTHER
from ragwatch.statistics.snapshot import EstimateRow, Gauge, Lag, Snapshot
from ragwatch.statistics.tally import Tally
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.web.json_values import ParameterError
from ragwatch.web.pages.overview import overview
from ragwatch.web.pages.pages import clock, page
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
    return replace(small(), estimates=(row,), corrected=(replace(row, corrected=True, labels=50, labels_given=50),))


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
    wide = replace(row, estimate=estimate(0.8, half=0.2), corrected=True, labels=50, labels_given=50)
    in_words_of_another = replace(row, corrected=True, reference="claude")
    for levels, state in (
        ((), "plain"),
        ((replace(wide, labels=49, labels_given=49),), "plain"),
        ((in_words_of_another,), "plain"),
        ((in_words_of_another, wide), "unsure"),
    ):
        view = overview(replace(bad, corrected=levels), SCOPE, now=AT)
        assert (figure(view, "faithfulness")["state"], view["state"]) == (state, state)
        assert view["headline"].startswith("Not calibrated yet" if state == "plain" else "Inconclusive")


@pytest.mark.parametrize(("own", "state"), [(0.5, "good"), (0.7, "bad"), (None, "plain")])
def test_a_route_may_have_its_own_threshold(own: float | None, state: str) -> None:
    """It takes precedence, and None is no threshold; what cannot page is listed."""
    scope = replace(SCOPE, route_thresholds={"search": {"faithfulness": own}}, unpaged=("set `<b>`",))
    view = overview(with_estimate(Quantity.FAITHFULNESS, 0.6, 0.05), scope, now=AT)
    assert (figure(view, "faithfulness")["threshold"], figure(view, "faithfulness")["state"]) == (own, state)
    assert view["unpaged"] == ["set `<b>`"]
    assert "<li>set <code>&lt;b&gt;</code></li>" in page("overview.html", {"version": "1", **view})


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


@pytest.mark.parametrize(
    ("gauges", "is_learning"),
    [((Gauge.BAND_MEAN,), True), ((Gauge.BAND_MEAN, Gauge.DRIFT_EVIDENCE), False), ((), False)],
)
def test_nothing_compares_while_drift_learns(gauges: Sequence[Gauge], *, is_learning: bool) -> None:
    """Without a label and without a baseline the headline says that no alarm can come yet."""
    plain = replace(with_estimate(Quantity.FAITHFULNESS, 0.8, 0.2), corrected=())
    learning = dict.fromkeys(((gauge, ("faithfulness", "search")) for gauge in gauges), 0.5)
    headline = overview(replace(plain, gauges=learning), SCOPE, now=AT)["headline"]
    assert headline.endswith("raises no alarm yet") == is_learning, headline


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
    (support,) = [row for row in overview(small(), SCOPE, now=AT)["routes"] if row["route"] == "support"]
    assert ([judge["why"] for judge in support["judges"]], support["stages"]) == (["no answer sampled yet"], [])


def test_the_shortest_window_that_tells_something_is_shown() -> None:
    """Unless another one is asked for; one that is not configured is refused, with those that are."""
    assert overview(small(), SCOPE, now=AT)["window"] == "1h"
    assert overview(small(), SCOPE, now=AT, window="15m")["window"] == "15m"
    with pytest.raises(ParameterError, match=r"window: '<b>' is not known; use one of: 15m, 1h"):
        overview(small(), SCOPE, now=AT, window="<b>")
    assert overview(Snapshot(at=AT), SCOPE, now=AT)["window"] == "15m"
    assert overview(small(), replace(SCOPE, windows=()), now=AT)["windows"] == ["1h"]
    assert overview(None, PageScope(), now=AT)["window"] == ""


def test_other_is_shown_once_it_has_traffic() -> None:
    """The route `other` appears when something was drawn for it, or when no route is configured."""
    assert [row["route"] for row in overview(small(), SCOPE, now=AT)["routes"]] == ["search", "support"]
    snapshot = small()
    snapshot.tallies[Tally.DRAWN, (OTHER,)] += 1
    assert [row["route"] for row in overview(snapshot, SCOPE, now=AT)["routes"]] == ["search", "support", OTHER]
    assert [row["route"] for row in overview(None, PageScope(), now=AT)["routes"]] == [OTHER]


def test_sources_and_judges_account_for_everything() -> None:
    """What was seen, rejected, judged and left unjudged is listed by its reason, and each problem once."""
    snapshot = replace(small(), problems=("app cannot be read", "disk is full"))
    view = overview(snapshot, SCOPE, now=AT, problems=["app cannot be read"])
    (source,) = view["sources"]
    assert (source["seen"], source["rejected"], source["lag_bytes"]) == (10, {"torn_json": 2}, 2048)
    (judge,) = view["judges"]
    assert (judge["version"], judge["judged"], judge["unjudged"]) == ("lexical-1", 3, {"timeout": 1})
    assert judge["pending"] == 2
    assert view["problems"] == ["app cannot be read", "disk is full"]


def test_what_a_source_does_not_read_is_told() -> None:
    """A few of the files that cannot be read, with the reason, and how many there are.

    A source that skipped its log says so, but not once something of it was read, nor where nobody has looked.
    """

    def source(lag: Lag | None, seen: float = 0.0) -> dict[str, Any]:
        snapshot = None if lag is None else replace(small(), lags={"app": lag}, tallies=Counter({SEEN: seen}))
        (row,) = overview(snapshot, SCOPE, now=AT)["sources"]
        return dict(row)

    unreadable = source(Lag(7, None, {f"/log/{number}.jsonl": "Permission denied" for number in range(9)}))
    assert (unreadable["unreadable_files"], len(unreadable["unreadable"])) == (9, 5)
    assert unreadable["unreadable"]["/log/0.jsonl"] == "Permission denied"
    skipped = Lag(0, 0.0, skipped="0 of 9 existing records read")
    told = [source(skipped), source(skipped, 1.0), source(None)]
    assert [row["skipped"] for row in told] == ["0 of 9 existing records read", "", ""]


SEEN: Any = (Tally.SEEN, ("app",))
DRIFT = {(Gauge.DRIFT_ALARM, ("faithfulness", "search")): 1.0}


def html(question: str | None = "Why?", scope: PageScope = SCOPE) -> str:
    """The overview page with one failing answer."""
    place = {"key": KEY, "at": AT, "route": "search", "stage": "retrieval", "judge": JUDGE}
    score = {"quantity": "context_precision", "score": 0.25}
    failing: Any = [{**place, **score, "question": question, "answer": question}]
    view = overview(small(), scope, now=AT, problems=[f"problem {question}"], failing=failing)
    return page("overview.html", {"version": "1", **view})


def test_what_an_engineer_looks_for_is_there() -> None:
    """Figures and sample, also one whose text retention has taken, with links to the answers behind each figure."""
    shown = html("How long may I send it back?")
    for text in ("0.600", "0.550–0.650", "≥ 0.70", "coverage 75 %", "1 min ago", "generation 33 %", "torn json"):
        assert text in shown
    assert "this judge does not score it" not in shown  # rows that the judge cannot fill are hidden
    of_figure = f"samples?route=search&amp;judge={JUDGE}&amp;quantity=faithfulness&amp;below=0.7"
    links = (f"samples/{KEY}?judge={JUDGE}", "samples?stage=generation", "samples?outcome=unjudged", of_figure)
    assert [link for link in links if f'href="{link}"' not in shown] == []
    assert "How long may I send it back?" in shown
    assert "text no longer stored" in html(None)


def test_the_empty_page() -> None:
    """Before anything is known the page still stands; what an interval is good for is said where one is shown."""
    shown = page("overview.html", {"version": "1", **overview(None, PageScope(), now=AT)})
    assert "No data yet" in shown
    assert "No digest has run yet" in shown
    assert "An interval holds" not in shown
    assert "An interval holds for a single look at its window." in html()


def test_a_figure_that_is_past_is_marked() -> None:
    """Where the newest answer is older than the window, the figure is stale, and says so; else it does not."""
    stuck = small(AT - 4000)
    shown = page("overview.html", {"version": "1", **overview(stuck, SCOPE, now=AT, window="1h")})
    assert shown.count("⚠ stale") == 1
    assert "stale" not in html()


@pytest.mark.parametrize("at", [1e300, float("nan"), -1e18])
def test_an_impossible_instant_is_unknown(at: float) -> None:
    """A time that a log made up cannot break a page."""
    assert clock(at) == "unknown"


READS_THE_STORE = (
    *("/samples", f"/samples/{KEY}", f"/samples/{KEY}/prompt?judge={JUDGE}", "/samples.csv", "/samples.jsonl"),
    *("/causes", "/trends", "/changes?at=1h&route=search", "/segments/step", "/canaries"),
    *("/incident.md?since=1h", "/api/v1/samples", "/drift", "/api/v1/drift", "/"),
)


async def test_a_store_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """A 503 with the reason, not an empty page or file; figures of the overview and of drift stand without a store."""
    store = SqliteStore(tmp_path)
    store.close()
    for path in READS_THE_STORE:
        answer = await get(store, path, scope=replace(SCOPE, suites=("docs",)), snapshot=replace(small(), gauges=DRIFT))
        assert (path, answer.status_code, "closed" in answer.text) == (path, 200 if path == "/" else 503, True)
        if path in ("/", "/drift", "/api/v1/drift"):
            assert "the store cannot be read" in answer.text
            assert "Answer quality has drifted" in answer.text
        assert path != "/drift" or "since an unknown time" in answer.text


async def test_pages_load_again_where_that_was_chosen(store: SqliteStore) -> None:
    """A page that reloads takes a reader's place away: it does so with `refresh=yes` alone, and says how to stop."""
    for path in ("/", "/drift", "/canaries", "/causes", "/causes?window=6h", "/routes?route=search"):
        still = await get(store, path)
        assert (still.status_code, "http-equiv" in still.text) == (200, False)
        sign = "&" if "?" in path else "?"
        assert f"{sign.replace('&', '&amp;')}refresh=yes" in still.text
        moving = await get(store, f"{path}{sign}refresh=yes")
        assert '<meta http-equiv="refresh" content="30">' in moving.text, path
        assert "Stop</a>" in moving.text


PAGES = ("", "samples", "causes", "trends", "drift", "canaries")


async def test_six_links_and_the_current_page_is_marked() -> None:
    """One of the links of the head is the page itself; the words of the pages are explained on each."""
    for name in PAGES:
        body = (await get(None, f"/{name}", scope=SCOPE, snapshot=small())).text
        head = body.split('<nav aria-label="Pages">')[1].split("</nav>")[0]
        assert (name, head.count("<a "), head.count("aria-current")) == (name, len(PAGES), 1)
        assert f'href="{name or "."}" aria-current="page"' in head
        assert 'id="words"' in body, name


@pytest.mark.parametrize(
    ("usual", "named"),
    [({}, "generation"), ({"generation": 0.6}, "retrieval"), ({"generation": 0.6, "retrieval": 0.2}, "")],
)
def test_the_headline_names_the_stage_that_broke_in_the_window(usual: dict[str, float], named: str) -> None:
    """The stage whose share rose most above the one of the baseline; counts of other windows do not matter."""
    place = "search", JUDGE
    stages = {
        **{(*place, "1h", stage): count for stage, count in (("none", 4), ("retrieval", 1), ("generation", 5))},
        (*place, "1d", "alignment"): 1000,
    }
    gauges = {(Gauge.DRIFT_ALARM, ("faithfulness", "search")): 1.0}
    gauges |= {(Gauge.STAGE_BASELINE, ("search", stage)): share for stage, share in usual.items()}
    view = overview(replace(small(), stages=stages, gauges=gauges), SCOPE, now=AT)
    assert view["headline"] == "Answer quality has drifted" + (f": {named} on search" if named else "")


@pytest.mark.parametrize("changed", ["retrieval", "alignment", None])
def test_the_headline_names_the_stage_of_the_newest_answers(changed: str | None) -> None:
    """As texts of alerts do: the window may hold an earlier incident with more answers."""
    counts = (("none", 4), ("retrieval", 1), ("generation", 5))
    stages = {("search", JUDGE, "1h", stage): count for stage, count in counts}
    gauges = {(Gauge.DRIFT_ALARM, ("faithfulness", "search")): 1.0}
    for period, share in (("before", 0.1), ("since", 0.3)) if changed else ():
        gauges[Gauge.STAGE_CHANGED, ("search", changed, period)] = share
        gauges[Gauge.STAGE_CHANGED, ("support", "generation", period)] = 3 * share  # a route on which nothing is bad
    view = overview(replace(small(), stages=stages, gauges=gauges), SCOPE, now=AT)
    assert view["headline"] == f"Answer quality has drifted: {changed or 'generation'} on search"
