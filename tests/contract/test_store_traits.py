"""The contract of `ports.Store` for traits of answers: read by time, deleted and forgotten with the answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from support.kit import AT, JUDGE, a_draw, a_reading, a_verdict, an_admission

from ragwatch.core.verdict import Unjudged, UnjudgedReason
from ragwatch.model.quantities import Quantity
from ragwatch.ports import AnswerQuery, Erasure, Retention, Store

ALL = AnswerQuery(0.0, AT + 1000)
DAY = 86400.0


def filled(store: Store, count: int = 4, **parts: object) -> list[str]:
    """Settle judged answers of two routes; their keys, the newest first."""
    draws = [
        a_draw(
            f"r{number}", at=AT + number, route=("search", "support")[number % 2], metadata={"release": f"v{number}"}
        )
        for number in range(count)
    ]
    store.admit(an_admission(*draws))
    store.settle([a_verdict(draw, **parts) for draw in draws])
    return [draw.key for draw in reversed(draws)]


def test_answers_are_read_newest_first_with_their_traits(store: Store) -> None:
    """Each judged answer has scores, stage and probability beside the traits of its sample."""
    keys = filled(store)
    answers = store.answers(ALL)
    assert [row.key for row, _ in answers] == keys
    row, traits = answers[0]
    assert (row.judge, row.route, row.probability, row.stage) == (JUDGE, "support", 1.0, "none")
    assert row.scores is not None
    assert row.scores[Quantity.FAITHFULNESS] == 1.0
    assert traits is not None
    assert (traits["metadata"], traits["retrieved"]) == ({"release": "v3"}, 2)


def test_answers_are_narrowed_and_paged(store: Store) -> None:
    """Time, route and judge narrow the result; pages neither skip nor repeat an answer, unjudged ones are left out."""
    keys = filled(store)
    unread = a_draw("unread", at=AT + 2)
    store.admit(an_admission(unread))
    store.settle([Unjudged(unread, a_reading(), UnjudgedReason.TIMEOUT)])
    assert [row.key for row, _ in store.answers(replace(ALL, since=AT + 1, until=AT + 3))] == keys[1:3]
    assert [row.key for row, _ in store.answers(replace(ALL, route="search"))] == keys[1::2]
    assert store.answers(replace(ALL, judge="other")) == []
    seen, query = [], replace(ALL, limit=1)
    while page := store.answers(query):
        seen += [row.key for row, _ in page]
        query = replace(query, before=(page[-1][0].at, page[-1][0].seq))
    assert seen == keys


def test_traits_go_with_the_answers(opened: Callable[[], Store]) -> None:
    """A forgotten person has no traits left; retention leaves neither the answer nor what it had in common."""
    store = opened()
    keys = filled(store)
    store.forget(Erasure(ids=frozenset({keys[0]})))
    assert [traits is None for _, traits in store.answers(ALL)] == [True, False, False, False]
    store.prune(Retention(days=1, failing_days=1, bytes=1 << 30), now=AT + 9 * DAY)
    assert store.answers(ALL) == []
