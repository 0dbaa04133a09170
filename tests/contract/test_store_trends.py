"""The contract of `ports.TrendStore`: charts show the gauge of a window, and an empty hour is a gap."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from support.kit import AT, JUDGE, a_draw, a_reading, a_verdict, an_admission, an_evidence, an_unjudged
from support.stores import admit_and_settle

from ragwatch.model.estimate import Addends
from ragwatch.pipeline.windows import SlidingWindows
from ragwatch.ports import Erasure, Peak, RecordedEvent, Retention, Store, StoredRun, TrendQuery, VersionValue
from ragwatch.statistics.estimators import hajek
from ragwatch.statistics.trends import COARSE, DAY, FINE, HOUR, TrendKey, TrendKind, add_to, start_of

START = start_of(AT, HOUR)
AGES = Retention(days=30, failing_days=90, bytes=1 << 40)
DRIFT = TrendKey(TrendKind.DRIFT, "search", "faithfulness")


def of_hour(start: int = START, *, step: int = HOUR, span: int = COARSE, hours: int = 1) -> TrendQuery:
    """The trends of route `search` in some hours."""
    return TrendQuery(TrendKind.SCORE, "search", span, step, start, start + hours * HOUR)


def settle(store: Store, name: str, *, at: float, cells: Sequence[int] = (1, 0), probability: float = 1.0) -> None:
    """Admit and settle one answer."""
    draw = a_draw(name, at=at, probability=probability)
    admit_and_settle(store, draw, evidence=an_evidence(cells))


def test_a_chart_of_an_hour_shows_the_gauge_of_that_hour(opened: Callable[[], Store]) -> None:
    """Value, interval and number are those of the sliding window, for every quantity, also after a restart."""
    store = opened()
    for index in range(12):
        at = START + 299.0 * index
        settle(store, f"r{index}", at=at, cells=(index % 3 > 0, 0), probability=(0.25, 1.0)[index % 2])
    settle(store, "of another hour", at=START + HOUR + 1.0)
    windows = SlidingWindows({"1h": float(HOUR)}, {JUDGE: "scripted-1"}, 0.95)
    windows.add(store.window(0, 0.0, 99))
    gauges = {row.quantity: row.estimate for row in windows.summary(START + HOUR - 1.0)[0]}
    for span in (COARSE, FINE):
        charted = {row.series.name: hajek.estimate(row.sums) for row in opened().trends(of_hour(span=span))}
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
    rows = [row for row in store.trends(of_hour(hours=9)) if row.series.name == "faithfulness"]
    assert [(row.start, row.sums.n) for row in rows] == [(START, 1), (START + 3 * HOUR, 1)]


def test_merged_buckets_hold_the_sums_of_all(store: Store) -> None:
    """A step of several buckets adds them up; versions of a judge stay apart."""
    day = start_of(AT, DAY)
    probabilities = (0.1, 0.5, 1.0)
    for index, probability in enumerate(probabilities):
        settle(store, f"r{index}", at=day + index * HOUR, probability=probability)
    draw = a_draw("newer", at=day + 1.0)
    store.admit(an_admission(draw))
    store.settle([a_verdict(draw, reading=a_reading(version="scripted-2"))])
    query = TrendQuery(TrendKind.SCORE, "search", COARSE, DAY, day, day + DAY)
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
    query = TrendQuery(TrendKind.DRIFT, "search", COARSE, HOUR, START, START + 2 * HOUR)
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
