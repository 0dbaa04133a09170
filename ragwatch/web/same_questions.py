"""Compares answers before and after an instant by question, as `ragwatch compare --live` compares variants."""

from __future__ import annotations

from ragwatch.core.compare_line import ComparedAnswer, answer_of, compare_answers, compare_line
from ragwatch.model.quantities import Quantity
from ragwatch.ports import Query, Store

MAX_ANSWERS = 200
"""Of either side, the newest ones: each is decoded with its question, in about a third of a millisecond."""


def same_questions(
    store: Store, *, route: str, judge: str, at: float, seconds: float, confidence: float
) -> dict[str, object]:
    """Compare the newest answers of both sides by question.

    Answers by another version of the judge than the newest one are left out.

    Args:
        store: Store of the verdicts.
        route: The route.
        judge: The judge.
        at: The instant, in seconds since the epoch.
        seconds: Length of either side.
        confidence: Level at which all intervals hold together.

    Raises:
        StoreError: The verdicts cannot be read.
    """
    after = _answers(store, Query(route=route, judge=judge, since=at, until=at + seconds, limit=MAX_ANSWERS))
    before = _answers(store, Query(route=route, judge=judge, since=at - seconds, until=at, limit=MAX_ANSWERS))
    version = next((version for version, _ in (*after, *before)), "")
    first, second = ([answer for other, answer in side if other == version] for side in (before, after))
    level = 1.0 - (1.0 - confidence) / len(Quantity)
    line = compare_line(compare_answers(first, second, level), "before", "after")
    return {**line, "limited": max(len(before), len(after)) >= MAX_ANSWERS}


def _answers(store: Store, query: Query) -> list[tuple[str, ComparedAnswer]]:
    """Judged answers with the version of their judge. Without their texts they have no question, and are left out."""
    return [
        (stored.verdict.judge_version, answer_of(stored.verdict, stored.sample))
        for stored in store.find(query)
        if stored.verdict.judged and stored.sample is not None
    ]
