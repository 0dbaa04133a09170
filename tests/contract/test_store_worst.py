"""The contract of `ports.Store` for searches that list the worst scores first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from support.kit import AT, a_claim, a_draw, a_reading, a_verdict, an_admission, an_evidence

from ragwatch.core.sample import Context, Draw
from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.ports import Erasure, Query, Retention, Store

DAY = 86400.0
SEARCHES: Sequence[dict[str, Any]] = (
    {},
    {"judge": "other"},
    {"stage": "generation"},
    {"below": 0.9},
    {"below": 1.5, "above": 0.2},
    {"above": 0.0},
    {"since": AT + 2, "until": AT + 5},
    {"disputed": True},
    {"disputed": False, "labelled": False},
    {"context": "doc-1"},
    {"words": (("cats",),), "above": 0.2},
    {"words": (("cats",),), "context": "doc-1", "judge": "embedded"},
    {"route": "nowhere"},
)


def an_answer(number: int) -> Draw:
    """Two answers of each second, from three documents."""
    contexts = [Context("Cats purr.", f"doc-{number % 3}", 0.5), Context("Dogs bark.", "doc-9", 0.25)]
    return a_draw(f"r{number}", at=AT + number // 2, contexts=contexts)


def fill(store: Store) -> None:
    """Fourteen answers, of which a judge reads all and another one every second."""
    draws = [an_answer(number) for number in range(14)]
    store.admit(an_admission(*draws[::2], judges=("embedded", "other")))
    store.admit(an_admission(*draws[1::2]))
    for judge, read in (("embedded", draws), ("other", draws[::2])):
        for number, draw in enumerate(read):
            cells = [(1, 0)] * (number % 4) + [(0, 0)] * (number % 3)
            claims = [a_claim(cell, None if sum(cell) or number % 5 else "contradicted") for cell in cells]
            store.settle([a_verdict(draw, an_evidence(*claims), a_reading(judge))])


def rows(store: Store, **filters: Any) -> list[tuple[str, str, float]]:
    """Key, judge and score of the verdicts that are found, in order."""
    found_rows = store.find(Query(**filters))
    scores = [(row.verdict.key, row.verdict.judge, row.verdict.scores[filters["quantity"]]) for row in found_rows]
    return [(key, judge, score) for key, judge, score in scores if score is not None]


def check(store: Store) -> int:
    """Compare each search with the same one by time. Returns how many verdicts were found."""
    count = 0
    for quantity in (Quantity.FAITHFULNESS, Quantity.CONTRADICTION, Quantity.NEED_RECALL):
        sign = -1.0 if quantity in LOW_IS_GOOD else 1.0
        for place, search in enumerate(SEARCHES):
            newest = rows(store, quantity=quantity, limit=500, **search)
            expected = sorted(newest, key=lambda row: sign * row[2])
            limit = (500, 4)[place % 2]
            assert rows(store, quantity=quantity, worst=True, limit=limit, **search) == expected[:limit], search
            count += len(newest)
    return count


def test_the_worst_scores_come_first_whatever_else_is_asked(store: Store) -> None:
    """In the order of the score, then of time, as many as are asked for; also after some verdicts were deleted."""
    fill(store)
    before = check(store)
    store.forget(Erasure(ids=frozenset({"r4", "r9"}), with_scores=True))
    after = check(store)
    store.prune(Retention(days=1, failing_days=30, bytes=1 << 30), now=AT + 9 * DAY)
    assert before > after > check(store) > 0
