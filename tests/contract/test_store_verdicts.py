"""The contract of `ports.Store` about what lies beside scores, and about readings again, in no live figure."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from support.kit import AT, JUDGE, a_claim, a_draw, a_reading, a_verdict, an_admission, an_evidence, an_unjudged
from support.stores import AGES, DAY, ONE_DAY, admit_and_settle, follow_up, found_by

from ragwatch.model.estimate import Addends
from ragwatch.model.evidence import CriterionAnswer, CriterionReading
from ragwatch.model.quantities import Quantity, quantity_of
from ragwatch.model.sample import Context, Draw
from ragwatch.ports import AnswerQuery, Erasure, Query, RejudgeQuery, SegmentQuery, Store, TrendQuery
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.segments import NO_STEP, STEP
from ragwatch.statistics.tally import Tally
from ragwatch.statistics.trends import COARSE, HOUR, TrendKind, start_of
from ragwatch.statistics.verdict import Verdict
from ragwatch.stores.settling import MAX_REPLY_BYTES

PLACE = ("release", "v1", "search", JUDGE)


def test_segments_come_back_with_scores_and_are_counted(opened: Callable[[], Store]) -> None:
    """Values stay with the scores over restarts, sums add up, and a verdict that is settled twice counts once."""
    first, second, third = (replace(a_draw(name, probability=0.5), segments=segments) for name, segments in NAMED)
    store = opened()
    admit_and_settle(store, first, second, an_unjudged(third))
    store = opened()
    store.settle([a_verdict(first)])
    rows = {row.key: row for row in store.window(0, 0.0, 9)}
    assert rows[first.key].segments == {"release": "v1"}
    assert rows[second.key].segments == {"release": "v1", "tier": "other"}
    assert rows[third.key].segments == {}
    tallies = store.tallies()
    assert tallies[Tally.SEGMENT_W, ("faithfulness", *PLACE)] == 4.0
    assert tallies[Tally.SEGMENT_JUDGED, PLACE] == 2
    assert tallies[Tally.SEGMENT_UNJUDGED, PLACE] == 1
    assert tallies[Tally.SEGMENT_LEFT_OUT, ("tier", "search", JUDGE)] == 1


def test_scores_without_segments_are_stored_as_ever(opened: Callable[[], Store]) -> None:
    """Without segments or criteria nothing is stored for them, and stored verdicts show quantities only.

    The language of a verdict without a measured accuracy comes with its row and its line; no other verdict has one.
    """
    plain, split, german = a_draw("a"), replace(a_draw("b"), segments=(("release", "v1"),)), a_draw("c")
    store = opened()
    admit_and_settle(store, plain, split, a_verdict(german, an_evidence((1, 0), language="de")))
    store = opened()
    found, rows = store.find(Query()), store.window(0, 0.0, 9)
    assert [("criteria" in row.line, tuple(row.verdict.scores)) for row in found] == [(False, tuple(Quantity))] * 3
    assert [(row.segments, row.language) for row in rows] == [({}, None), ({"release": "v1"}, None), ({}, "de")]
    assert {one.verdict.key: one.verdict.language for one in found} == {row.key: row.language for row in rows}


NAMED = (
    ("a", (("release", "v1"), ("tier", None))),
    ("b", (("release", "v1"), ("tier", "other"))),
    ("c", (("release", "v1"),)),
)


BAD = an_evidence(a_claim((0, 0)))
ASKED = SegmentQuery("release", "faithfulness", "search", JUDGE, a_reading().version, AT - 800, AT, steps=4, limit=100)


def fill(store: Store) -> None:
    """Settle answers of two releases in different steps of time; what `ASKED` leaves out is bad, and of v1."""
    kinds = (
        ("a", "v1", -800.0, 0.5, None, "search"),
        ("b", "v1", -601.0, 0.25, BAD, "search"),
        ("c", "v1", -200.0, 1.0, None, "search"),
        ("d", "v2", -1.0, 1.0, BAD, "search"),
        ("e", None, -1.0, 1.0, None, "search"),
        ("late", "v1", 0.0, 1.0, BAD, "search"),
        ("early", "v1", -801.0, 1.0, BAD, "search"),
        ("route", "v1", -1.0, 1.0, BAD, "faq"),
    )
    draws = [
        replace(a_draw(name, at=AT + at, probability=share, route=route), segments=(("release", value),))
        for name, value, at, share, _, route in kinds
    ]
    unread, other = (replace(a_draw(name, at=AT - 1), segments=(("release", "v1"),)) for name in ("u", "o"))
    read = [a_verdict(draw, kind[4]) for draw, kind in zip(draws, kinds, strict=True)]
    admit_and_settle(store, *read, an_unjudged(unread), a_verdict(other, BAD, a_reading(version="0")))


def test_sums_of_segments_by_step_of_time(store: Store) -> None:
    """Scores, answers before sampling, and stages at fault: of one route, judge, version and time, by value."""
    fill(store)
    rows = {(row.value, row.step): row for row in store.segments(ASKED)}
    assert set(rows) == {("v1", 0), ("v1", 3), ("v2", 3), (None, 3)}
    first = rows["v1", 0]
    assert first.scores == Addends.of([(0.0, 0.25), (1.0, 0.5)])
    assert (first.answers, first.weight, first.staged, first.failing) == (2, 6.0, 6.0, 4.0)
    assert sum(first.faults.values()) == 1
    assert (rows["v2", 3].failing, rows[None, 3].failing) == (1.0, 0.0)
    assert store.segments(replace(ASKED, key="tier", limit=1))[0].value is None
    assert sum(row.answers for row in store.segments(replace(ASKED, limit=3))) == 3
    unscored = store.segments(replace(ASKED, quantity="polite_tone"))
    assert {(row.scores, row.value is None or row.answers > 0) for row in unscored} == {(Addends(), True)}
    store.prune(ONE_DAY, now=AT + 9 * DAY)
    assert store.segments(ASKED) == []


def test_sums_of_retrieval_steps(store: Store) -> None:
    """Which step returned what was used: answers without steps, and those of which nothing is known, are left out."""
    contexts = (Context("Cats purr.", "d1", None, "bm25"), Context("Dogs bark.", "d2", None, "dense"))
    known = replace(a_draw("a", at=AT - 1, contexts=contexts), segments=())
    plain, abstained = a_draw("b", at=AT - 1), a_draw("c", at=AT - 1, contexts=contexts)
    mixed = a_draw("d", at=AT - 500, contexts=(contexts[0], Context("Dogs bark.", "d2")))
    admit_and_settle(store, known, plain, a_verdict(abstained, an_evidence()), mixed)
    for measure, of_first in (("used", 1.0), ("ignored", 0.0)):
        rows = store.segments(replace(ASKED, key=STEP, quantity=measure))
        last = {row.value: row.scores for row in rows if row.step == 3}
        shares = {"bm25": of_first, "dense": 1.0 - of_first}
        assert last == {step: Addends.one(x, 1.0) for step, x in shares.items()}
        assert {row.value: row.answers for row in rows if row.step < 3} == {"bm25": 1, NO_STEP: 1}
        assert all(row.failing == 0.0 for row in rows)


POLITE, PRICED = quantity_of("polite"), quantity_of("names_price")
YES, NO, DOES_NOT_APPLY = CriterionAnswer


def answered(name: str, polite: CriterionAnswer | None, price: CriterionAnswer | None = DOES_NOT_APPLY) -> Verdict:
    """A verdict with answers to two criteria, the first with a quote."""
    readings = (CriterionReading("polite", polite, "Cats purr."), CriterionReading("names_price", price))
    return a_verdict(a_draw(name), an_evidence((1, 0), criteria=readings))


def test_criteria_are_scores(store: Store) -> None:
    """Of a row, a summary and a verdict, with answer and quote; of a label; searches and counters know them."""
    verdicts = [answered("a", YES), answered("b", NO), answered("c", None, None)]
    admit_and_settle(store, *verdicts)
    rows = {row.key: row.scores for row in store.window(0, 0.0, 9)}
    scores = [(rows[a_draw(name).key] or {}) for name in "abc"]
    assert [(one[POLITE], one[PRICED]) for one in scores] == [(1.0, None), (0.0, None), (None, None)]
    found = {row.verdict.id: row.verdict for row in store.find(Query())}
    assert found["a"].criteria == verdicts[0].evidence.criteria  # type: ignore[union-attr]  # it is judged
    assert tuple(found["a"].scores) == (*Quantity, POLITE, PRICED)
    summaries = {row.verdict.id: row.verdict.scores[POLITE] for row in store.summaries(Query())}
    assert summaries == {"a": 1.0, "b": 0.0, "c": None}
    assert found_by(store, Query(quantity=POLITE, below=0.5)) == ["b"]
    assert found_by(store, Query(quantity=POLITE, worst=True))[:2] == ["b", "a"]
    tallies, place = store.tallies(), ("search", JUDGE)
    assert (tallies[Tally.WX, ("polite", *place)], tallies[Tally.N, ("polite", *place)]) == (1, 2)
    assert tallies[Tally.UNKNOWN, ("polite", *place, "not_read")] == 1
    assert tallies[Tally.UNKNOWN, ("names_price", *place, "does_not_apply")] == 2
    label = Label(a_draw("a").key, "ann", AT, {POLITE: 0.0, Quantity.FAITHFULNESS: 1.0})
    store.add_labels([label])
    assert store.labels(0.0) == [label]


ALL = AnswerQuery(0.0, AT + 1000)


def test_answers_are_read_newest_first_with_their_traits(store: Store) -> None:
    """Each judged answer has scores, stage and probability beside the traits of its sample.

    Time, route and judge narrow the result; pages neither skip nor repeat an answer, unjudged ones are left out. A
    forgotten person has no traits left; retention leaves neither the answer nor what it had in common.
    """
    places = ((number, ("search", "support")[number % 2]) for number in range(4))
    draws = [a_draw(f"r{n}", at=AT + n, route=route, metadata={"release": f"v{n}"}) for n, route in places]
    admit_and_settle(store, *draws)
    keys = [draw.key for draw in reversed(draws)]
    admit_and_settle(store, an_unjudged(a_draw("unread", at=AT + 2)))
    answers = store.answers(ALL)
    assert [row.key for row, _ in answers] == keys
    row, traits = answers[0]
    assert (row.judge, row.route, row.probability, row.stage) == (JUDGE, "support", 1.0, "none")
    assert row.scores is not None
    assert row.scores[Quantity.FAITHFULNESS] == 1.0
    assert traits is not None
    assert (traits["metadata"], traits["retrieved"]) == ({"release": "v3"}, 2)
    assert [row.key for row, _ in store.answers(replace(ALL, since=AT + 1, until=AT + 3))] == keys[1:3]
    assert [row.key for row, _ in store.answers(replace(ALL, route="search"))] == keys[1::2]
    assert store.answers(replace(ALL, judge="other")) == []
    seen, query = [], replace(ALL, limit=1)
    while page := store.answers(query):
        seen += [row.key for row, _ in page]
        query = replace(query, before=(page[-1][0].at, page[-1][0].seq))
    assert seen == keys
    store.forget(Erasure(ids=frozenset({keys[0]})))
    assert [traits is None for _, traits in store.answers(ALL)] == [True, False, False, False]
    store.prune(ONE_DAY, now=AT + 9 * DAY)
    assert store.answers(ALL) == []


REPLY = '{"address":"SECRETREPLY é"}'


def replied(store: Store, *replies: str) -> Draw:
    """Store an answer that a model and a judge without replies have read."""
    draw = a_draw("r1")
    admit_and_settle(store, a_verdict(draw, an_evidence((1, 0), replies=replies), a_reading("claude")), draw)
    return draw


def stored(store: Store) -> dict[str, tuple[str, ...]]:
    """Replies by judge."""
    return {entry.verdict.judge: store.replies(entry.seq) for entry in store.entries(Query())}


def test_replies_are_kept_beside_their_verdict(opened: Callable[[], Store]) -> None:
    """In the order of the calls, also after a restart; other verdicts have none, nor has one that does not exist."""
    replied(opened(), REPLY, "", "second")
    store = opened()
    assert stored(store) == {"claude": (REPLY, "", "second"), "embedded": ()}
    assert store.replies(1 << 40) == ()


def test_replies_of_a_reading_again_are_kept(store: Store) -> None:
    """`ragwatch rejudge` stores them as well.

    All replies to one sample together take a bounded number of bytes, and say what is left out.
    """
    draw = replied(store, "a" * (MAX_REPLY_BYTES - 3), "é" * 5, "third")
    again = a_verdict(draw, an_evidence((1, 0), replies=(REPLY,)), a_reading("other"))
    assert store.add_rejudged([again], charted_before=AT) == 1
    cut = ("a" * (MAX_REPLY_BYTES - 3), "é [7 bytes more]")
    assert stored(store) == {"claude": cut, "embedded": (), "other": (REPLY,)}


@pytest.mark.parametrize("with_scores", [False, True, None])
def test_replies_are_deleted_with_the_answer(store: Store, *, with_scores: bool | None) -> None:
    """Nothing that a model said of it remains, whether it is forgotten or (None) deleted by retention."""
    replied(store, REPLY)
    seqs = [entry.seq for entry in store.entries(Query())]
    if with_scores is None:
        store.prune(ONE_DAY, now=AT + 9 * DAY)
    else:
        store.forget(Erasure(ids=frozenset({"r1"}), with_scores=with_scores))
    assert [store.replies(seq) for seq in seqs] == [(), ()]


SECOND = "second"
EVERY_ANSWER = RejudgeQuery(SECOND, JUDGE, 0.0, AT + 1e6)


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
    store.settle([a_verdict(a_draw("both"))], [follow_up(queued)])
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
    store.settle([a_verdict(first)], [follow_up(first)])
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
    rows = store.rejudge_candidates(EVERY_ANSWER)
    assert [(row.key, row.at) for row in rows] == [(draw.key, draw.at) for draw in draws.values()]
    assert [row.version for row in rows] == [None, "scripted-1", "old", None, None, None]
    assert [(row.rejudged, row.waiting) for row in rows[:4]] == [(False, 0), (True, 0), (False, 0), (False, 1)]
    assert [row.has_texts for row in rows] == [True, True, True, True, False, True]
    assert store.rejudge_candidates(replace(EVERY_ANSWER, since=AT + 1, until=AT + 2)) == rows[1:2]
    assert store.rejudge_candidates(replace(EVERY_ANSWER, route="other")) == rows[5:]
    assert store.first_reading(SECOND) == AT + 2
    assert store.first_reading("nobody") == math.inf


def test_draws_come_with_their_probability_and_texts(store: Store) -> None:
    """Those of a judge, whether or not it could read them; without texts, or of another judge, there is none."""
    read, unread, other = a_draw("a", probability=0.25), a_draw("b"), a_draw("c")
    admit_and_settle(store, read, an_unjudged(unread), again(other))
    draws = {draw.key: draw for draw in store.draws_of(JUDGE, [read.key, unread.key, other.key, "0" * 32])}
    assert draws == {read.key: read, unread.key: unread}
    assert store.draws_of(JUDGE, []) == []


def test_a_time_of_which_some_are_deleted_is_left_out(store: Store) -> None:
    """What retention leaves of it fails more often than it all did."""
    bad, new = a_verdict(a_draw("bad"), an_evidence((0, 0))), a_draw("new", at=AT + 40 * DAY)
    admit_and_settle(store, a_draw("good"), bad, new)
    store.prune(AGES, now=AT + 41 * DAY)
    rows = store.rejudge_candidates(replace(EVERY_ANSWER, until=math.inf))
    assert [row.key for row in rows] == [new.key]
