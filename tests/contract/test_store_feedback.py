"""The contract of `ports.Store` about feedback of users."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from support.kit import AT, a_draw, a_verdict, an_admission

from ragwatch.core.sample import Draw
from ragwatch.core.sampling import key_of
from ragwatch.core.tally import Tally
from ragwatch.ports import Admission, Erasure, Feedback, Retention, Store

HOUR, DAY = 3600.0, 86400.0


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
    store.prune(Retention(30, 30, 1 << 40), now=AT + 2 * HOUR)
    assert outcomes(store) == {"replaced": 1, "joined": 1}


def test_all_feedback_that_arrives_early_is_counted(store: Store) -> None:
    """As when it arrives after its answer; also if it is said of fewer or more sources, and if no answer comes."""
    both = ("app", "other")
    store.admit(admitting(said("a", 1.0, at=AT + 1), said("a", 0.0, at=AT + 5), said("a", 1.0, at=AT + 2)))
    store.admit(admitting(said("a", 0.0, at=AT + 6), said("b", 1.0), said("b", 0.0, at=AT + 1, sources=both)))
    assert outcomes(store) == {"replaced": 2, "repeated": 2}
    store.admit(admitting(draws=(a_draw("a"),)))
    store.prune(Retention(30, 30, 1 << 40), now=AT + HOUR + 1)
    assert scores(store, "a") == [0.0]
    assert outcomes(store) == {"replaced": 2, "repeated": 2, "joined": 1, "unknown_answer": 1}


def test_feedback_on_an_unknown_answer_is_counted_and_not_kept(store: Store) -> None:
    """After an hour, feedback without an answer is counted once, and is gone."""
    store.admit(admitting(said("a", sources=("app", "other")), said("b")))
    store.prune(Retention(30, 30, 1 << 40), now=AT + HOUR - 1)
    assert outcomes(store) == {}
    store.prune(Retention(30, 30, 1 << 40), now=AT + HOUR + 1)
    assert outcomes(store) == {"unknown_answer": 2}
    store.admit(admitting(draws=(a_draw("a"),)))
    assert scores(store, "a") == [None]


def test_rated_answers(store: Store) -> None:
    """Verdicts of answers with feedback come with the score by the user, by time of the answer."""
    draws = tuple(a_draw(name, at=AT + place * HOUR, probability=0.5) for place, name in enumerate("abc"))
    store.admit(admitting(said("a", 0.25), said("c", 1.0), draws=draws))
    store.settle([a_verdict(draw) for draw in draws])
    rated = store.rated(AT, AT + HOUR)
    assert [(row.key, row.probability, score) for row, score in rated] == [(draws[0].key, 0.5, 0.25)]
    assert [score for _, score in store.rated(AT, AT + DAY)] == [0.25, 1.0]


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


def test_retention_deletes_feedback_with_its_answer(store: Store) -> None:
    """Feedback lives as long as its sample."""
    store.admit(admitting(said("a"), draws=(a_draw("a"),)))
    store.settle([a_verdict(a_draw("a"))])
    store.prune(Retention(1, 1, 1 << 40), now=AT + 2 * DAY)
    assert scores(store, "a") == [None]
