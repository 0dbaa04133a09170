"""The contract of `ports.Store` beside verdicts: runs, labels, states, rights, parts, feedback, erasure."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission
from support.stores import AGES, DAY, ONE_DAY, admit_and_settle

from ragwatch.errors import ReceivedMeanwhileError, StoreError
from ragwatch.model.evidence import ClaimVerdict
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Draw
from ragwatch.ports import Admission, Erasure, Feedback, Part, Query, RecordedEvent, Store, StoredRun
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.sampling import key_of
from ragwatch.statistics.tally import Tally

HOUR = 3600.0


def a_run(at: float = AT, *, failing: bool = False, name: str = "docs") -> StoredRun:
    """A run of a suite."""
    return StoredRun("canary", name, at, failing, {"ks": [1, 5], "text": "naïve \ud800"})


def a_label(key: str = "k1", annotator: str = "ada", at: float = AT, **parts: object) -> Label:
    """A person's word that an answer is faithful by half."""
    whole = {"claims": (ClaimVerdict.SUPPORTED, None), "probability": 0.25} | parts
    return Label(key, annotator, at, {Quantity.FAITHFULNESS: 0.5}, **whole)  # type: ignore[arg-type]


def test_runs_come_back_newest_first_and_whole(store: Store) -> None:
    """Each kind and name has its own; good and bad ones can be asked for apart; counts are kept with them.

    Retention takes a good run after `days`, a failing one after `failing_days`.
    """
    tallies = Counter({(Tally.CANARY_RUNS, ("docs",)): 1})
    for index in range(3):
        store.record_run(a_run(AT + index, failing=index == 1), tallies)
    store.record_run(a_run(name="other"), Counter())
    assert [run.at for run in store.runs("canary", "docs", 10)] == [AT + 2, AT + 1, AT]
    assert [run.at for run in store.runs("canary", "docs", 10, failing=True)] == [AT + 1]
    assert [run.at for run in store.runs("canary", "docs", 1, failing=False)] == [AT + 2]
    assert store.runs("canary", "docs", 1)[0] == a_run(AT + 2)
    assert store.runs("anchor", "docs", 10) == []
    for days, left in ((31, [AT + 1]), (91, [])):
        store.prune(AGES, now=AT + days * DAY)
        assert [run.at for run in store.runs("canary", "docs", 10)] == left
    assert store.tallies()[Tally.CANARY_RUNS, ("docs",)] == 3


def test_a_person_has_one_word_on_a_sample(store: Store) -> None:
    """A second one replaces the first; two people have one each."""
    assert store.add_labels([a_label(), a_label("k2"), a_label(annotator="bob", at=AT + 1)]) == 3
    assert store.add_labels([a_label(at=AT + 2, note="changed")]) == 0
    labels = store.labels(0.0)
    words = [(label.key, label.annotator, label.note) for label in labels]
    assert words == [("k2", "ada", ""), ("k1", "bob", ""), ("k1", "ada", "changed")]
    assert [label.annotator for label in store.labels(AT + 1)] == ["bob", "ada"]
    assert labels[0] == a_label("k2")


def test_a_label_outlives_its_sample(store: Store) -> None:
    """A person's word is kept; the text it was about goes with the last verdict, for it may be about a person.

    So the sample may come again, as one that was never seen.
    """
    draw = a_draw("a")
    admit_and_settle(store, draw)
    store.add_labels([a_label(draw.key)])
    store.prune(AGES, now=AT + 400 * DAY)
    assert store.find(Query()) == []
    assert [label.key for label in store.labels(0.0)] == [draw.key]
    assert store.admit(an_admission(draw)) == 1


def test_what_is_remembered_is_replaced(store: Store) -> None:
    """One state a name; nothing for a name that was never used."""
    assert store.recall("drift") is None
    store.remember("drift", {"seq": 1, "numbers": [0.5, 1e300]})
    store.remember("drift", {"seq": 2})
    assert store.recall("drift") == {"seq": 2}


def test_a_right_belongs_to_one_until_it_runs_out(store: Store) -> None:
    """The holder may keep it; another one gets it once it has run out or was given back, also on a clock set back."""
    for name, holder, at, seconds, gets in (
        ("docs", "a", 0, 60, True),
        ("docs", "b", 59, 60, False),
        ("docs", "a", 59, 60, True),
        ("docs", "b", 118, 60, False),
        ("docs", "b", 119, 60, True),
        ("other", "a", 0, 60, True),
        ("docs", "b", 119, 0, True),
        ("docs", "a", -3600, 60, True),
    ):
        assert store.claim(name, holder, now=AT + at, seconds=seconds) is gets, (holder, at)


def holding(*parts: Part, release: tuple[str, ...] = (), received: tuple[str, ...] = (), at: float = AT) -> Admission:
    """An admission that holds and releases parts."""
    return replace(an_admission(), hold=parts, release=release, received=received, at=at)


def part(group: str, name: str = "a", payload: bytes = b"{}") -> Part:
    """A part."""
    return Part(group, name, payload, AT)


def test_parts_wait_until_their_group_is_released(opened: Callable[[], Store]) -> None:
    """Parts come back whole and in order after a restart; released groups do not, and other sources have their own.

    Of parts of one name in one group, the first is kept; those that come with the release of it are gone.
    """
    store = opened()
    parts = [part("t1", "b", bytes(range(256)) * 50), part("t2"), part("t1", "a", b"")]
    store.admit(holding(*parts))
    store.admit(holding(part("t2", payload=b"second"), part("t2", payload=b"third")))
    store.admit(replace(holding(part("t1", "a", b"other")), source="app2"))
    store = opened()
    assert list(store.parts("app")) == parts
    store.admit(holding(part("t3"), part("t1", "c"), release=("t1", "unknown")))
    assert list(opened().parts("app")) == [parts[1], part("t3")]
    assert [one.payload for one in opened().parts("app2")] == [b"other"]


def test_received_ids_are_recognised_by_source(opened: Callable[[], Store]) -> None:
    """An id is known after its admission, for its source alone, also after a restart."""
    opened().admit(holding(received=("r1", "r2", *(f"other{number}" for number in range(1000)))))
    store = opened()
    assert store.received("app", ["r1", "r2", "r3", "r1"]) == {"r1", "r2"}
    assert store.received("other", ["r1"]) == set()
    many = [f"r{number}" for number in range(1500)]  # more than one statement can name
    assert (store.received("app", []), store.received("app", many)) == (set(), {"r1", "r2"})
    with pytest.raises(ReceivedMeanwhileError):  # another worker was faster: nothing is written
        store.admit(holding(part("t1"), received=("r3", "r2")))
    assert (list(store.parts("app")), store.received("app", ["r3"])) == ([], set())


def test_an_admission_is_written_whole_or_not_at_all(store: Store) -> None:
    """Parts, ids, draws, counts and cursor are one transaction: a client that was not answered sends all of it again.

    Ids are remembered for a day, and parts of a source that releases none do not stay for ever.
    """
    good = an_admission(a_draw("b"), a_draw("c")).draws
    broken = an_admission(a_draw("x", metadata={"x": object()})).draws
    for bad in ({"draws": [*good, *broken]}, {"draws": good, "tallies": {("bad",): 1}}):
        with pytest.raises((StoreError, ValueError, TypeError)):
            store.admit(replace(holding(part("t1"), received=("r1",)), **bad))  # type: ignore[arg-type]
    assert (list(store.parts("app")), store.received("app", ["r1"]), store.cursors("app")) == ([], set(), {})
    assert store.tallies_and_pending() == ({}, {})
    assert store.admit(replace(an_admission(), draws=good)) == 2
    store.admit(holding(part("t1"), received=("old",)))
    store.admit(holding(replace(part("t2"), at=AT + DAY), received=("new",), at=AT + DAY))
    store.prune(AGES, now=AT + DAY + 1)
    assert store.received("app", ["old", "new"]) == {"new"}
    assert [one.group for one in store.parts("app")] == ["t2"]


def said(name: str, score: float = 1.0, *, at: float = AT, sources: tuple[str, ...] = ("app",)) -> Feedback:
    """Feedback on an answer of one of these sources."""
    return Feedback(tuple(key_of(source, name) for source in sources), score, at, "app")


def admitting(*feedback: Feedback, draws: tuple[Draw, ...] = (), at: float = AT) -> Admission:
    """An admission with feedback."""
    return replace(an_admission(*draws), feedback=feedback, at=at)


def outcomes(store: Store) -> dict[str, float]:
    """What became of all feedback."""
    return {labels[1]: count for (tally, labels), count in store.tallies().items() if tally is Tally.FEEDBACK}


def scores(store: Store, *names: str) -> list[float | None]:
    """The scores by users that are stored for some answers."""
    stored = [store.feedback_of(key_of("app", name)) for name in names]
    return [None if one is None else one[0] for one in stored]


def test_feedback_joins_its_answer(opened: Callable[[], Store]) -> None:
    """In the batch of its answer or a later one, before and after the verdict, also over a restart."""
    opened().admit(admitting(said("a", 0.5), draws=(a_draw("a"), a_draw("b"))))
    store = opened()
    store.settle([a_verdict(a_draw("b"))])
    store.admit(admitting(said("b", 0.0, at=AT + 9)))
    assert scores(store, "a", "b", "c") == [0.5, 0.0, None]
    assert store.feedback_of(a_draw("b").key) == (0.0, AT + 9)
    assert outcomes(store) == {"joined": 2}


def test_the_last_feedback_counts(store: Store) -> None:
    """Later feedback replaces earlier; the same again, or older that arrives late, changes nothing."""
    store.admit(admitting(said("a", 1.0, at=AT + 1), draws=(a_draw("a"),)))
    store.admit(admitting(said("a", 0.0, at=AT + 5), said("a", 1.0, at=AT + 2), said("a", 0.0, at=AT + 6)))
    assert scores(store, "a") == [0.0]
    assert outcomes(store) == {"joined": 1, "replaced": 1, "repeated": 2}


def test_feedback_waits_for_its_answer(opened: Callable[[], Store]) -> None:
    """Feedback that arrives first is joined when its answer arrives, whichever source that comes from, and once."""
    opened().admit(admitting(said("a", 0.25, sources=("app", "other")), said("a", 0.5, at=AT + 1)))
    store = opened()
    assert (scores(store, "a"), outcomes(store)) == ([None], {"replaced": 1})
    store.admit(admitting(draws=(a_draw("a"),)))
    assert (scores(store, "a"), outcomes(store)) == ([0.5], {"replaced": 1, "joined": 1})
    store.prune(AGES, now=AT + 2 * HOUR)
    assert outcomes(store) == {"replaced": 1, "joined": 1}


def test_all_feedback_that_arrives_early_is_counted(store: Store) -> None:
    """As when it arrives after its answer; also if it is said of fewer or more sources, and if no answer comes.

    After an hour, feedback without an answer is counted once, and is gone.
    """
    both = ("app", "other")
    store.admit(admitting(said("a", 1.0, at=AT + 1), said("a", 0.0, at=AT + 5), said("a", 1.0, at=AT + 2)))
    store.admit(admitting(said("a", 0.0, at=AT + 6), said("b", 1.0), said("b", 0.0, at=AT + 1, sources=both)))
    store.admit(admitting(draws=(a_draw("a"),)))
    store.prune(AGES, now=AT + HOUR - 1)
    assert outcomes(store) == {"replaced": 2, "repeated": 2, "joined": 1}
    for _ in range(2):
        store.prune(AGES, now=AT + HOUR + 1)
    store.admit(admitting(draws=(a_draw("b"),)))
    assert scores(store, "a", "b") == [0.0, None]
    assert outcomes(store) == {"replaced": 2, "repeated": 2, "joined": 1, "unknown_answer": 1}


def test_rated_answers(store: Store) -> None:
    """Verdicts of answers with feedback come with the score by the user, by its time, as long as they live."""
    draws = tuple(a_draw(name, at=AT + place * HOUR, probability=0.5) for place, name in enumerate("abc"))
    store.admit(admitting(said("a", 0.25), said("c", 1.0), draws=draws))
    store.settle([a_verdict(draw) for draw in draws])
    rated = store.rated(AT, AT + HOUR)
    assert [(row.key, row.probability, score) for row, score in rated] == [(draws[0].key, 0.5, 0.25)]
    assert [score for _, score in store.rated(AT, AT + DAY)] == [0.25, 1.0]
    store.prune(ONE_DAY, now=AT + 2 * DAY)
    assert scores(store, "a", "c") == [None, None]


def test_changes_are_reported_in_order(store: Store) -> None:
    """New, replaced and erased feedback each have a sequence number above all earlier ones."""
    store.admit(admitting(said("a"), said("b"), draws=(a_draw("a"), a_draw("b", at=AT + HOUR))))
    first = store.feedback_after(0, 10)
    assert [at for _, at in first] == [AT, AT + HOUR]
    assert store.feedback_after(0, 1) == first[:1]
    store.admit(admitting(said("a", 0.0)))
    store.forget(Erasure(ids=frozenset({"b"})))
    changed = store.feedback_after(first[-1][0], 10)
    assert [at for _, at in changed] == [AT, AT + HOUR]


def test_erased_feedback_stays_away(store: Store) -> None:
    """Forgetting an answer erases what its user said, and refuses to store it again, also if nothing was said."""
    store.admit(admitting(said("a", 0.5), draws=(a_draw("a"), a_draw("b"))))
    erasure = Erasure(ids=frozenset({"a", "b"}))
    assert [store.forget(erasure, dry_run=dry).feedback for dry in (True, False, True)] == [1, 1, 0]
    store.admit(admitting(said("a", 1.0), said("b", 1.0)))
    assert scores(store, "a", "b") == [None, None]
    assert outcomes(store) == {"joined": 1, "unknown_answer": 2}
    assert store.rated(AT, AT + 1) == []


def test_a_person_is_forgotten_for_good(opened: Callable[[], Store]) -> None:
    """Texts go, scores stay, pending draws become unjudged, and nothing comes back after a restart.

    What labels, runs, states and events quote of her is gone as well, and so is her feedback.
    """
    store, text = opened(), "Where is the parcel of Anna Schmidt?"
    hers = [a_draw(name, question=text, metadata={"user": "anna"}) for name in ("judged", "pending")]
    his = a_draw("his", metadata={"user": "bob"})
    store.admit(admitting(said("judged"), draws=(*hers, his)))
    store.settle([a_verdict(hers[0]), a_verdict(his)])
    store.add_labels([a_label(hers[0].key, note=text), a_label(his.key, note="well said")])
    store.record_run(StoredRun("canary", "docs", AT, failing=False, body={"query": text}), Counter())
    store.remember("pool", {"queries": [text]})
    store.record(RecordedEvent(AT, "note", f"{text}!"))
    erasure = Erasure(metadata=frozenset({("user", "anna")}))
    counted = store.forget(erasure, dry_run=True)
    assert store.pending() == {JUDGE: 1}
    erased = store.forget(erasure)
    assert erased == counted
    assert set(erased.keys) == {draw.key for draw in hers}
    assert (erased.pending, erased.verdicts, erased.labels, erased.others, erased.complete) == (1, 1, 1, 3, True)
    store = opened()
    samples = {row.verdict.key: row.sample is None for row in store.find(Query(outcome="judged"))}
    assert samples == {hers[0].key: True, his.key: False}
    assert {label.key: label.note for label in store.labels(0.0)} == {hers[0].key: "", his.key: "well said"}
    assert (store.recall("pool"), store.runs("canary", "docs", 1)[0].body) == ({"queries": [""]}, {"query": ""})
    assert (store.events(0.0)[0].detail, store.feedback_of(hers[0].key)) == ("", None)
    tallies, pending = store.tallies_and_pending()
    assert (pending, tallies[Tally.ASSIGNED, (JUDGE,)]) == ({}, 3)
    assert tallies[Tally.UNJUDGED, ("search", JUDGE, "erased")] == 1
    assert store.forget(erasure).keys == ()
    assert store.admit(an_admission(hers[0])) == 0  # a source that delivers it again brings nothing back
    assert store.forget(Erasure(ids=frozenset({hers[0].key}), with_scores=True)).verdicts == 1
    assert {row.verdict.key for row in store.find(Query(outcome="judged"))} == {his.key}
