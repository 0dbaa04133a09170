"""The contract of `ports.Store`, for every kind."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.kit import AT, JUDGE, a_draw, a_reading, a_verdict, an_admission, an_evidence, an_unjudged
from support.stores import admit_and_settle, open_store

from ragwatch.errors import StoreError
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Context
from ragwatch.ports import Query, RecordedEvent, Retention, Store, TrendQuery
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.tally import Tally
from ragwatch.statistics.trends import COARSE, HOUR, TrendKind, start_of

DAY = 86400.0
AGES = Retention(days=30, failing_days=90, bytes=1 << 40)
GOOD, BAD = an_evidence((1, 0)), an_evidence((0, 0))


def keys(store: Store, query: Query) -> list[str]:
    """Ids of the samples found, in order."""
    return [stored.verdict.id for stored in store.find(query)]


def settle(store: Store, name: str, evidence: object = GOOD, *, at: float = AT, route: str = "search") -> None:
    """Admit and settle one draw; evidence None leaves it unjudged."""
    draw = a_draw(name, at=at, route=route)
    store.admit(an_admission(draw))
    store.settle([an_unjudged(draw) if evidence is None else a_verdict(draw, evidence)])  # type: ignore[arg-type]


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
    hour = start_of(AT, HOUR)
    trends = store.trends(TrendQuery(TrendKind.SCORE, "search", COARSE, HOUR, hour, hour + HOUR))
    assert {row.sums.n for row in trends if row.series.name == "faithfulness"} == {2}
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
        assert keys(store, query) == expected, query


def test_labels_and_other_judges_narrow_a_search(store: Store) -> None:
    """Labelled or not; disputed are samples of which two judges name different stages, with every verdict on them."""
    settle(store, "plain", at=AT - 50)
    draw = a_draw("bad", at=AT - 40)
    store.admit(an_admission(draw, judges=(JUDGE, "claude"), cursor="2"))
    store.settle([a_verdict(draw, BAD), a_verdict(draw, reading=a_reading("claude"))])
    store.add_labels([Label(a_draw("plain").key, "ann", AT, {})])
    for query, expected in (
        (Query(labelled=True), ["plain"]),
        (Query(labelled=False), ["bad", "bad"]),
        (Query(disputed=True), ["bad", "bad"]),
        (Query(disputed=True, judge="claude"), ["bad"]),
        (Query(disputed=False), ["plain"]),
        (Query(disputed=True, labelled=True), []),
    ):
        assert keys(store, query) == expected, query


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
    """Good verdicts go after `days`, faulty and unjudged ones after `failing_days`; their samples go with them."""
    for age in (20, 40, 100):
        for name, evidence in (("good", GOOD), ("bad", BAD), ("missed", None)):
            settle(store, f"{name}{age}", evidence, at=AT - age * DAY)
    store.record(RecordedEvent(AT - 91 * DAY, "note", ""))
    counts = store.tallies()
    assert store.prune(AGES, now=AT) == 4
    assert sorted(keys(store, Query())) == ["bad20", "bad40", "good20", "missed20", "missed40"]
    assert all(stored.sample is not None for stored in store.find(Query()))
    assert (store.events(0.0), store.tallies(), store.prune(AGES, now=AT)) == ([], counts, 0)


def test_pruning_keeps_what_a_judge_waits_for(store: Store) -> None:
    """A sample that a second judge has not read yet stays, however old the first one's verdict is."""
    draw = a_draw("a", at=AT - 100 * DAY)
    store.admit(an_admission(draw, judges=(JUDGE, "second")))
    store.settle([a_verdict(draw)])
    assert store.prune(AGES, now=AT) == 1
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
