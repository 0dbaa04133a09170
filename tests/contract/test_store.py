"""The contract of `ports.Store`, for every kind: draws, verdicts, windows, searches, retention, and trends."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.kit import AT, JUDGE, a_draw, a_reading, a_verdict, an_admission, an_evidence, an_unjudged
from support.stores import AGES, DAY, admit_and_settle, found_by, open_store

from ragwatch.errors import StoreError
from ragwatch.model.estimate import Addends
from ragwatch.model.evidence import Evidence
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Context
from ragwatch.pipeline.windows import SlidingWindows
from ragwatch.ports import Erasure, Peak, Query, RecordedEvent, Retention, Store, StoredRun, TrendQuery, VersionValue
from ragwatch.statistics.estimators import hajek
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.tally import Tally
from ragwatch.statistics.trends import COARSE, FINE, HOUR, TrendKey, TrendKind, add_to, start_of

GOOD, BAD = an_evidence((1, 0)), an_evidence((0, 0))
START = start_of(AT, HOUR)


def settle(store: Store, name: str, evidence: Evidence | None = GOOD, **parts: Any) -> None:
    """Admit and settle one draw; evidence None leaves it unjudged."""
    draw = a_draw(name, **parts)
    admit_and_settle(store, an_unjudged(draw) if evidence is None else a_verdict(draw, evidence))


def of_hours(hours: int = 1, *, span: int = COARSE) -> TrendQuery:
    """The trends of route `search` in some hours."""
    return TrendQuery(TrendKind.SCORE, "search", span, HOUR, START, START + hours * HOUR)


def test_an_empty_cursor_ends_its_stream(store: Store) -> None:
    """A stream that is gone for good leaves no cursor behind; others keep theirs."""
    store.admit(an_admission(cursor="1"))
    store.admit(replace(an_admission(cursor="2"), stream="log2"))
    store.admit(an_admission(cursor=""))
    assert store.cursors("app") == {"log2": "2"}


def test_draws_come_back_as_they_went(opened: Callable[[], Store]) -> None:
    """A leased draw is the draw that was admitted, also after a restart, with that judge's probability."""
    draw = a_draw(
        "é\u2028\ud800",
        probability=0.5,
        question=None,
        reference="ref",
        metadata={"k": [1, {"x": None}], "trace_id": "t"},
        contexts=(Context("one", "id", 0.25), "two"),
    )
    opened().admit(an_admission(draw))
    assert opened().lease(JUDGE, 1, now=AT, seconds=60) == [draw]


def test_settling_twice_at_once_is_once(store: Store) -> None:
    """Of two verdicts of a judge on a draw in one call the first counts: in tallies, trends, replies and searches."""
    draw, other = a_draw("a"), a_draw("b")
    store.admit(an_admission(draw, other))
    first, second = an_evidence((1, 0), replies=("first",)), an_evidence((0, 0), replies=("second",))
    assert store.settle([a_verdict(draw, first), a_verdict(other), a_verdict(draw, second)]) == 2
    assert store.tallies()[Tally.JUDGED, ("search", JUDGE)] == 2
    assert store.pending() == {}
    assert {row.sums.n for row in store.trends(of_hours()) if row.series.name == "faithfulness"} == {2}
    (found,) = [entry for entry in store.entries(Query()) if entry.place["key"] == draw.key]
    assert found.verdict.scores[Quantity.FAITHFULNESS] == 1.0
    assert store.replies(found.seq) == ("first",)


def test_window(store: Store) -> None:
    """Score rows come in order of settling, behind a row, not older than an instant, at most so many."""
    for name, at in (("a", AT), ("b", AT - 100), ("c", AT + 5)):
        settle(store, name, at=at)
    settle(store, "d", None)
    rows = store.window(0, 0.0, 10)
    assert [row.at for row in rows] == [AT, AT - 100, AT + 5, AT]
    assert [row.seq for row in rows] == sorted({row.seq for row in rows})
    assert [row.at for row in store.window(rows[0].seq, AT, 10)] == [AT + 5, AT]
    assert store.window(rows[-1].seq, 0.0, 10) == []
    assert len(store.window(0, 0.0, 2)) == 2
    judged, missed = rows[0], rows[3]
    assert judged.scores is not None
    assert (judged.scores[Quantity.FAITHFULNESS], judged.scores[Quantity.NEED_RECALL]) == (1.0, None)
    assert (missed.scores, missed.probability, missed.route) == (None, 1.0, "search")
    assert (judged.reason, missed.reason) == (None, "timeout")


def test_find(store: Store) -> None:
    """Every field of a query narrows the search; the newest come first."""
    settle(store, "old", at=AT - 50)
    settle(store, "bad", BAD, at=AT - 40, route="support")
    settle(store, "missed", None, at=AT - 30)
    settle(store, "new", at=AT)
    key = a_draw("bad").key
    for query, expected in (
        (Query(), ["new", "missed", "bad", "old"]),
        (Query(limit=2), ["new", "missed"]),
        (Query(key=key), ["bad"]),
        (Query(route="support"), ["bad"]),
        (Query(judge="nobody"), []),
        (Query(stage="generation"), ["bad"]),
        (Query(outcome="unjudged"), ["missed"]),
        (Query(quantity=Quantity.FAITHFULNESS), ["new", "bad", "old"]),
        (Query(quantity=Quantity.FAITHFULNESS, below=1.0), ["bad"]),
        (Query(quantity=Quantity.FAITHFULNESS, above=0.0), ["new", "old"]),
        (Query(quantity=Quantity.FAITHFULNESS, above=0.0, below=1.0), []),
        (Query(quantity=Quantity.NEED_RECALL), []),
        (Query(quantity=Quantity.NEED_RECALL, above=0.0), []),
        (Query(since=AT - 40, until=AT), ["missed", "bad"]),
        (Query(route="search", since=AT - 30), ["new", "missed"]),
        (Query(below=0.5, above=0.5), ["new", "missed", "bad", "old"]),  # bounds of no quantity
    ):
        assert found_by(store, query) == expected, query


def test_labels_and_other_judges_narrow_a_search(store: Store) -> None:
    """Labelled or not; disputed are samples of which two judges name different stages, with every verdict on them."""
    settle(store, "plain", at=AT - 50)
    draw = a_draw("bad", at=AT - 40)
    admit_and_settle(store, a_verdict(draw, BAD), a_verdict(draw, reading=a_reading("claude")))
    store.add_labels([Label(a_draw("plain").key, "ann", AT, {})])
    for query, expected in (
        (Query(labelled=True), ["plain"]),
        (Query(labelled=False), ["bad", "bad"]),
        (Query(disputed=True), ["bad", "bad"]),
        (Query(disputed=True, judge="claude"), ["bad"]),
        (Query(disputed=False), ["plain"]),
        (Query(disputed=True, labelled=True), []),
    ):
        assert found_by(store, query) == expected, query


def test_found_verdicts_are_whole(store: Store) -> None:
    """A found verdict is the line of the contract with its place, and the sample in canonical form."""
    draw = a_draw("a", probability=0.25, metadata={"trace_id": "t1"})
    admit_and_settle(store, draw)
    (stored,) = store.find(Query())
    place = {"key": draw.key, "judge_name": JUDGE, "route": "search", "at": AT, "probability": 0.25, "trace_id": "t1"}
    assert {name: stored.line[name] for name in place} == place
    assert (stored.verdict.key, stored.verdict.judge, stored.verdict.trace_id) == (draw.key, JUDGE, "t1")
    assert (stored.line["scores"]["faithfulness"], stored.verdict.scores[Quantity.FAITHFULNESS]) == (1.0, 1.0)
    assert stored.sample == draw.sample.to_record()


def test_events(opened: Callable[[], Store]) -> None:
    """Events come back in order of time, from an instant on, also after a restart."""
    store = opened()
    events = [RecordedEvent(AT, "deploy", "v2"), RecordedEvent(AT - 5, "note", "é"), RecordedEvent(AT - 9, "old", "")]
    for event in events:
        store.record(event)
    store = opened()
    assert store.events(AT - 5) == [events[1], events[0]]
    store.record(RecordedEvent(AT - 1, "deploy", "v1"))
    assert store.last_events(AT - 5) == {"deploy": AT, "note": AT - 5}
    assert store.last_events(AT + 1) == {}


def test_age_takes_successes_first(store: Store) -> None:
    """Good verdicts go after `days`, faulty and unjudged ones after `failing_days`; their samples go with them.

    One whose stage is unknown names no fault.
    """
    unknown = an_evidence(relevant=(None, None), address=None)
    for age in (20, 40, 100):
        for name, evidence in (("good", GOOD), ("unknown", unknown), ("bad", BAD), ("missed", None)):
            settle(store, f"{name}{age}", evidence, at=AT - age * DAY)
    store.record(RecordedEvent(AT - 91 * DAY, "note", ""))
    counts = store.tallies()
    assert store.prune(AGES, now=AT) == 6
    assert sorted(found_by(store)) == ["bad20", "bad40", "good20", "missed20", "missed40", "unknown20"]
    assert all(stored.sample is not None for stored in store.find(Query()))
    assert (store.events(0.0), store.tallies(), store.prune(AGES, now=AT)) == ([], counts, 0)


def test_pruning_keeps_what_a_judge_waits_for(store: Store) -> None:
    """A sample that a second judge has not read yet stays, however old the first one's verdict and full the store."""
    draw = a_draw("a", at=AT - 100 * DAY)
    store.admit(an_admission(draw, judges=(JUDGE, "second")))
    store.settle([a_verdict(draw)])
    assert [store.prune(limits, now=AT) for limits in (AGES, replace(AGES, bytes=1))] == [1, 0]
    assert store.lease("second", 1, now=AT, seconds=1) == [draw]
    store.settle([a_verdict(draw, reading=a_reading("second"))])
    assert store.prune(AGES, now=AT) == 1
    assert store.find(Query()) == []


def test_a_second_owner_is_refused(opened: Callable[[], Store], store_kind: str, tmp_path: Path) -> None:
    """Two ragwatch on one state would count everything twice."""
    opened()
    with pytest.raises(StoreError, match="is locked by process"):
        open_store(store_kind, tmp_path / "state")


def test_what_retention_leaves_of_a_time_is_in_no_window(opened: Callable[[], Store]) -> None:
    """Failures outlive successes: their mean is nobody's. Younger answers count, and older ones that are settled since.

    So it is after a restart, too. Where there is room for failures only, what is kept says nothing of how often they
    are; what comes next does. A clock that was ahead then hides nothing for longer than until it is right.
    """
    store = opened()
    for age in (31, 40):
        for name, evidence in (("good", GOOD), ("bad", BAD), ("missed", None)):
            settle(store, f"{name}{age}", evidence, at=AT - age * DAY)
    settle(store, "young", at=AT - 20 * DAY)
    assert store.pruned_until() < 0.0
    assert store.prune(AGES, now=AT) == 2
    assert (len(store.find(Query())), store.pruned_until()) == (5, AT - 31 * DAY)
    settle(store, "late", BAD, at=AT - 35 * DAY)
    assert [row.at for row in store.window(0, 0.0, 10)] == [AT - 20 * DAY, AT - 35 * DAY]
    store = opened()
    assert [row.at for row in store.window(0, 0.0, 10)] == [AT - 20 * DAY, AT - 35 * DAY]
    assert store.pruned_until() == AT - 31 * DAY
    settle(store, "of tomorrow", at=AT + DAY)
    store.prune(Retention(1e6, 1e6, 1), now=AT)
    assert (store.window(0, 0.0, 10), store.pruned_until()) == ([], AT)
    settle(store, "next", at=AT + 1.0)
    assert [row.at for row in opened().window(0, 0.0, 10)] == [AT + 1.0]


def test_no_moment_of_what_was_taken_comes_back(opened: Callable[[], Store]) -> None:
    """Whatever the digits of a time: answers of the very moment of the last one that was taken are left out too."""
    store = opened()
    for days, part in enumerate((0.1234567, 0.7654321, 0.5000004, 0.9999996)):
        at = AT - (40 - days) * DAY + part
        settle(store, f"good{days}", at=at)
        settle(store, f"bad{days}", BAD, at=at)
        assert store.prune(AGES, now=at + 31 * DAY) == 1
        assert (store.pruned_until() >= at, store.window(0, 0.0, 10)) == (True, [])


DRIFT = TrendKey(TrendKind.DRIFT, "search", "faithfulness")


def test_a_chart_of_an_hour_shows_the_gauge_of_that_hour(opened: Callable[[], Store]) -> None:
    """Value, interval and number are those of the sliding window, for every quantity, also after a restart."""
    store = opened()
    for index in range(12):
        at = START + 299.0 * index
        settle(store, f"r{index}", at=at, evidence=an_evidence((index % 3 > 0, 0)), probability=(0.25, 1.0)[index % 2])
    settle(store, "of another hour", at=START + HOUR + 1.0)
    windows = SlidingWindows({"1h": float(HOUR)}, {JUDGE: "scripted-1"}, 0.95)
    windows.add(store.window(0, 0.0, 99))
    gauges = {row.quantity: row.estimate for row in windows.summary(START + HOUR - 1.0)[0]}
    for span in (COARSE, FINE):
        charted = {row.series.name: hajek.estimate(row.sums) for row in opened().trends(of_hours(span=span))}
        assert set(charted) == set(map(str, gauges))
        for quantity, gauge in gauges.items():
            point = charted[str(quantity)]
            assert point is not None
            assert (point.value, point.low, point.high) == pytest.approx((gauge.value, gauge.low, gauge.high))
            assert (point.n, point.n_eff) == (gauge.n, pytest.approx(gauge.n_eff))


def test_hours_without_answers_are_absent(store: Store) -> None:
    """A bucket without a score has no row; an answer that no judge could read adds none. Nothing counts twice."""
    settle(store, "early", at=START + 1.0)
    settle(store, "late", at=START + 3.5 * HOUR)
    draw = a_draw("missed", at=START + 1.5 * HOUR)
    store.admit(an_admission(draw))
    for verdict in (an_unjudged(draw), a_verdict(draw)):  # settled once, so the second one is not new
        store.settle([verdict])
    rows = [row for row in store.trends(of_hours(9)) if row.series.name == "faithfulness"]
    assert [(row.start, row.sums.n) for row in rows] == [(START, 1), (START + 3 * HOUR, 1)]


def test_merged_buckets_hold_the_sums_of_all(store: Store) -> None:
    """A step of several buckets adds them up; versions of a judge stay apart."""
    day = start_of(AT, DAY)
    probabilities = (0.1, 0.5, 1.0)
    for index, probability in enumerate(probabilities):
        settle(store, f"r{index}", at=day + index * HOUR, probability=probability)
    admit_and_settle(store, a_verdict(a_draw("newer", at=day + 1.0), reading=a_reading(version="scripted-2")))
    query = replace(of_hours(), step=DAY, since=day, until=day + DAY)
    rows = {row.series.version: row for row in store.trends(query) if row.series.name == "faithfulness"}
    whole = Addends.of((1.0, probability) for probability in probabilities)
    for name in Addends.__slots__:
        assert getattr(rows["scripted-1"].sums, name) == pytest.approx(getattr(whole, name))
    assert rows["scripted-2"].sums == Addends.one(1.0, 1.0)
    assert {row.start for row in rows.values()} == {day}
    assert store.trends(replace(query, place="support")) == []


def test_figures_of_a_run_are_stored_with_it(store: Store) -> None:
    """Canary metrics come with their run, in the same buckets."""
    sums = dict[object, Addends]()
    add_to(sums, TrendKey(TrendKind.CANARY, "docs", "recall@5"), AT, Addends.one(0.5, 1.0))  # type: ignore[arg-type]
    for seconds in (0, 60):
        store.record_run(StoredRun("canary", "docs", AT + seconds, failing=False, body={}), Counter(), sums)  # type: ignore[arg-type]
    store.record_run(StoredRun("canary", "docs", AT + 120, failing=False, body={}), Counter())
    (row,) = store.trends(TrendQuery(TrendKind.CANARY, "docs", COARSE, HOUR, START, START + HOUR))
    assert (row.series.name, row.sums.n, row.sums.wx) == ("recall@5", 2, 1.0)


def test_the_highest_evidence_of_a_bucket_counts(opened: Callable[[], Store]) -> None:
    """Whoever writes last, the peak stays; the threshold is the newest one."""
    store = opened()
    for value, threshold in ((3.0, 270.0), (40.0, 270.0), (0.5, 90.0)):
        store.add_peaks([Peak(DRIFT, COARSE, START, value, threshold)])
    store.add_peaks([Peak(DRIFT, COARSE, START + HOUR, 7.0, None), Peak(DRIFT, FINE, START, 1e9, 90.0)])
    query = replace(of_hours(2), kind=TrendKind.DRIFT)
    store = opened()
    assert store.peaks(query) == [Peak(DRIFT, HOUR, START, 40.0, 90.0), Peak(DRIFT, HOUR, START + HOUR, 7.0, None)]
    start = start_of(START, 2 * DAY)
    wide = replace(query, step=2 * DAY, since=start, until=start + 2 * DAY)
    assert store.peaks(wide) == [Peak(DRIFT, 2 * DAY, start, 40.0, 90.0)]


def test_old_sums_are_deleted(store: Store) -> None:
    """Fine buckets stay for two days, hours for `trend_days`; verdicts that retention deletes leave their sums.

    Sums hold no text and no id of anybody: erasing an answer leaves them, like the counters.
    """
    for days in (1, 3, 89, 91):
        settle(store, f"r{days}", at=AT - days * DAY)
        for span in (FINE, COARSE):
            store.add_peaks([Peak(DRIFT, span, start_of(AT - days * DAY, span), 1.0, None)])
    store.forget(Erasure(ids=frozenset({"r1"}), with_scores=True))
    store.prune(replace(AGES, days=0.5, failing_days=0.5), now=AT)
    assert store.window(0, 0.0, 99) == []

    def left(kind: TrendKind, span: int) -> list[int]:
        query = TrendQuery(kind, "search", span, span, 0, int(AT) + DAY)
        starts = {row.start for row in (store.trends(query) if kind is TrendKind.SCORE else store.peaks(query))}
        return sorted(round((AT - start) / DAY) for start in starts)

    for kind in (TrendKind.SCORE, TrendKind.DRIFT):
        assert (left(kind, FINE), left(kind, COARSE)) == ([1], [1, 3, 89])
    store.prune(replace(AGES, trend_days=2), now=AT)
    assert left(TrendKind.SCORE, COARSE) == [1]


def versions(*values: str, field: str = "release", at: float = AT) -> tuple[VersionValue, ...]:
    """Values of a metadata key."""
    return tuple(VersionValue(field, value, at) for value in values)


def test_a_new_version_is_one_event(opened: Callable[[], Store]) -> None:
    """The first value of a key is no change; each later one is an event once, over restarts too."""
    store = opened()
    for values, at in ((("v1",), AT), (("v1", "v2"), AT + 60), (("v2",), AT + 61), (("v1", "v2"), AT + 62)):
        store.admit(replace(an_admission(), at=at, versions=versions(*values, at=at)))
        store = opened()
    store.admit(replace(an_admission(), at=AT + 70, versions=versions("v9", field="model")))
    assert store.events(0.0) == [RecordedEvent(AT + 60, "version", "release: v2")]
    # A key with a value for each record is no version: events of one key are limited by the day.
    for day, values in ((1, [f"r{index}" for index in range(50)]), (3, ["next day"])):
        at = AT + day * DAY
        store.admit(replace(an_admission(), at=at, versions=versions(*values, field="request", at=at)))
        assert len(store.events(AT + 61)) == (19 if day == 1 else 20)
    assert store.events(0.0)[-1] == RecordedEvent(AT + 3 * DAY, "version", "request: next day")
