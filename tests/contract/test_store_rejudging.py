"""The contract of `ports.RejudgeStore`: a reading again is stored once, is found, and is in no live figure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from support.kit import AT, JUDGE, a_draw, a_reading, a_verdict, an_admission, an_evidence, an_unjudged
from support.stores import admit_and_settle

from ragwatch.model.quantities import is_quantity_name
from ragwatch.model.sample import Draw
from ragwatch.ports import Assignment, Erasure, FollowUp, Query, RejudgeQuery, Retention, Store, TrendQuery
from ragwatch.statistics.tally import Tally
from ragwatch.statistics.trends import COARSE, HOUR, TrendKind, start_of
from ragwatch.statistics.verdict import Verdict

SECOND = "second"
ALL = RejudgeQuery(SECOND, JUDGE, 0.0, AT + 1e6)


def again(draw: Draw, version: str = "scripted-1") -> Verdict:
    """A verdict of the second judge: the answer is bad."""
    return a_verdict(draw, an_evidence((0, 0)), a_reading(SECOND, version))


def charted(store: Store) -> dict[str, int]:
    """Number of faithfulness scores in the charts, by judge."""
    start = start_of(AT, HOUR)
    query = TrendQuery(TrendKind.SCORE, "search", COARSE, HOUR, start, start + HOUR)
    return {row.series.judge: row.sums.n for row in store.trends(query) if row.series.name == "faithfulness"}


def test_a_reading_again_is_found_and_in_no_live_figure(opened: Callable[[], Store]) -> None:
    """Searches and causes have it, with its probability; windows, counters of scores and the balance do not."""
    store = opened()
    draws = [a_draw(name, probability=0.5) for name in ("a", "b")]
    admit_and_settle(store, *draws)
    before = store.tallies()
    rows = store.window(0, 0.0, 10)
    assert store.add_rejudged([again(replace(draws[0], probability=0.125))], charted_before=math.inf) == 1
    store = opened()
    assert store.window(0, 0.0, 10) == rows
    added = {key: value for key, value in store.tallies().items() if value != before[key]}
    assert added == {(Tally.REJUDGED, (SECOND,)): 1}
    assert store.pending() == {}
    (read,) = store.find(Query(judge=SECOND))
    assert (read.verdict.key, read.verdict.probability, read.verdict.stage) == (draws[0].key, 0.125, "generation")
    assert read.verdict.scores["faithfulness"] == 0.0  # type: ignore[index]  # a quantity is a text
    assert len(store.find(Query(disputed=True))) == 2
    assert charted(store) == {JUDGE: 2, SECOND: 1}


def test_each_answer_is_read_again_once(store: Store) -> None:
    """Not by a judge that has settled it or has it in its queue, nor once its texts are erased.

    A cascade does not queue what was read again: so that no draw is settled twice, and each judge's assigned ones are
    judged, unjudged or pending.
    """
    done, mine, queued, erased, fresh = draws = [a_draw(name) for name in ("done", "mine", "queued", "erased", "fresh")]
    admit_and_settle(store, *draws)
    store.admit(an_admission(a_draw("both"), judges=(JUDGE, SECOND)))
    store.settle([a_verdict(a_draw("both"))], [FollowUp(queued.key, JUDGE, Assignment(SECOND, 1.0), AT)])
    assert store.add_rejudged([again(done), again(mine)], charted_before=AT) == 2
    assert store.add_rejudged([again(done), again(mine, "scripted-2")], charted_before=AT) == 0
    store.forget(Erasure(ids=frozenset({"erased"})))
    assert store.add_rejudged([again(erased), again(a_draw("both")), again(fresh)], charted_before=AT) == 1
    assert store.tallies()[Tally.REJUDGED, (SECOND,)] == 3
    assert {row.verdict.key for row in store.find(Query(judge=SECOND))} == {done.key, mine.key, fresh.key}
    assert charted(store) == {JUDGE: 6}  # none is from before `charted_before`
    waiting, assigned = store.pending(), store.tallies()[Tally.ASSIGNED, (SECOND,)]
    first = a_draw("not read by the first")
    store.admit(an_admission(first))
    store.add_rejudged([again(first)], charted_before=AT)
    store.settle([a_verdict(first)], [FollowUp(first.key, JUDGE, Assignment(SECOND, 1.0), AT)])
    assert (store.pending(), store.tallies()[Tally.ASSIGNED, (SECOND,)]) == (waiting, assigned)


def test_candidates_say_what_became_of_each(store: Store) -> None:
    """By time; with the version that has read it, whether it was assigned, waits, or has lost its texts."""
    names = ("open", "again", "assigned", "waiting", "erased", "other")
    draws = {name: a_draw(name, at=AT + place) for place, name in enumerate(names)}
    draws["other"] = a_draw("other", at=AT + 5, route="other")
    both = [draws[name] for name in ("assigned", "waiting")]
    store.admit(an_admission(*both, judges=(JUDGE, SECOND)))
    store.settle([a_verdict(draw) for draw in both])
    store.settle([a_verdict(draws["assigned"], reading=a_reading(SECOND, "old"))])
    admit_and_settle(store, *(draws[name] for name in names if draws[name] not in both))
    store.add_rejudged([again(draws["again"])], charted_before=AT)
    store.forget(Erasure(ids=frozenset({"erased"})))
    rows = store.rejudge_candidates(ALL)
    assert [(row.key, row.at) for row in rows] == [(draw.key, draw.at) for draw in draws.values()]
    assert [row.version for row in rows] == [None, "scripted-1", "old", None, None, None]
    assert [(row.rejudged, row.waiting) for row in rows[:4]] == [(False, 0), (True, 0), (False, 0), (False, 1)]
    assert [row.has_texts for row in rows] == [True, True, True, True, False, True]
    assert [row.key for row in store.rejudge_candidates(replace(ALL, since=AT + 1, until=AT + 2))] == [rows[1].key]
    assert [row.key for row in store.rejudge_candidates(replace(ALL, route="other"))] == [rows[5].key]
    assert store.first_reading(SECOND) == AT + 2
    assert store.first_reading("nobody") == math.inf


def test_draws_come_with_their_probability_and_texts(store: Store) -> None:
    """Those of a judge, whether or not it could read them; without texts, or of another judge, there is none."""
    read, unread, other = a_draw("a", probability=0.25), a_draw("b"), a_draw("c")
    store.admit(an_admission(read, unread))
    store.settle([a_verdict(read), an_unjudged(unread)])
    store.admit(an_admission(other, judges=(SECOND,)))
    store.settle([again(other)])
    draws = {draw.key: draw for draw in store.draws_of(JUDGE, [read.key, unread.key, other.key, "0" * 32])}
    assert draws == {read.key: read, unread.key: unread}
    assert store.draws_of(JUDGE, []) == []


def test_a_time_of_which_some_are_deleted_is_left_out(store: Store) -> None:
    """What retention leaves of it fails more often than it all did."""
    admit_and_settle(store, a_draw("good", at=AT))
    bad = a_draw("bad", at=AT)
    admit_and_settle(store, bad, evidence=an_evidence((0, 0)))
    admit_and_settle(store, a_draw("new", at=AT + 40 * 86400.0))
    store.prune(Retention(days=30, failing_days=90, bytes=1 << 40), now=AT + 41 * 86400.0)
    rows = store.rejudge_candidates(replace(ALL, until=math.inf))
    assert [row.key for row in rows] == [a_draw("new").key]


def test_no_criterion_has_the_name_of_the_mark() -> None:
    """The mark stands beside the scores."""
    assert not any(map(is_quantity_name, ("rejudged", "expected")))
