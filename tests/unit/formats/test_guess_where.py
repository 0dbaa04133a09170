"""The proposed condition: true for every answer, false for what else is in the log, and silent about broken answers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.formats.expressions import predicate
from ragwatch.formats.guess_where import propose_where

ANSWER = {"event": "request", "http": {"status": 200, "path": "/ask"}, "cached": False, "answer": "a", "took": 5}
ANSWERS = [{**ANSWER, "id": number, "at": f"12:00:{number}"} for number in range(8)]
HEALTH = {"event": "health", "http": {"status": 200, "path": "/healthz"}}
BAD_GATEWAY = {"event": "request", "http": {"status": 502, "path": "/ask"}, "error": "x"}


@pytest.mark.parametrize(
    ("answers", "others", "where"),
    [
        (ANSWERS, [HEALTH], "event == 'request'"),
        (ANSWERS, [BAD_GATEWAY], "http.status == `200`"),
        (ANSWERS, [HEALTH, HEALTH, BAD_GATEWAY], "event == 'request' && http.status == `200`"),
        (ANSWERS, [{"cached": True}], "event == 'request'"),
        ([{**row, "event": n} for n, row in enumerate(ANSWERS)], [{**HEALTH, "cached": True}], "http.path == '/ask'"),
        ([{"kind": "it's", "q": "y", "r": 1}], [{"kind": "x"}], "q != `null`"),
        ([{"answer": "x", "n": n} for n in "ab"], [{"level": "info"}], "answer != `null`"),
    ],
)
def test_what_tells_answers_apart_is_proposed(answers: Any, others: Any, where: str) -> None:
    """Fields of telling names first, then any constant field, then a field that only answers have."""
    assert propose_where(answers, others) == where


@pytest.mark.parametrize(
    ("answers", "others", "texts", "where"),
    [
        (ANSWERS, [], 0, None),
        (ANSWERS, [], 3, "@"),
        ([], [HEALTH], 3, None),
        (ANSWERS, [{**ANSWER, "answer": None}], 0, None),
        ([{"a": "x", "b": 1, "c": 2}], [{"b": 1, "c": 2}], 0, None),
        ([{"a b": "x"}], [{"c": 1}], 0, None),
    ],
)
def test_nothing_is_proposed_that_hides_answers(answers: Any, others: Any, texts: int, where: str | None) -> None:
    """An answer that lacks a field stays a rejection; lines without JSON alone need no condition on fields."""
    assert propose_where(answers, others, texts) == where


_RECORDS = st.lists(
    st.dictionaries(st.sampled_from(["event", "status", "answer", "x"]), st.sampled_from([None, 1, True, "a", "b'"])),
    min_size=1,
    max_size=6,
)


@given(_RECORDS, _RECORDS)
def test_every_answer_fulfils_the_condition(answers: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
    """Whatever the records: a proposed condition is valid and selects all answers."""
    where = propose_where(answers, others)
    if where is not None:
        assert all(map(predicate("where", where), answers))
