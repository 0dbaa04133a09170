"""Answers that are logged in pieces: `concat` joins all of them in order; without it none is taken for the whole."""

from pathlib import Path
from typing import Any

import pytest
from support.joined_parts import Reading, write
from support.kit import AT

SEARCH = {"request_id": "r1", "type": "search", "question": "Which?", "contexts": ["It is the old mill."]}
DONE = {"request_id": "r1", "type": "done"}
CONCAT = {"concat": {"answer": "delta"}}
ENDS = {**CONCAT, "complete": "type == 'done'"}


def delta(text: str, **more: Any) -> dict[str, Any]:
    """A piece of an answer."""
    return {"request_id": "r1", "type": "delta", "delta": text, **more}


PIECES = [delta(text) for text in ("the ", "old ", "the ", "mill")]


def test_pieces_are_joined_up_to_the_mark(tmp_path: Path) -> None:
    """Equal ones count; a kill between any two changes nothing; nothing is joined before the mark."""
    reading = Reading(tmp_path, **ENDS)
    for row in (SEARCH, *PIECES):
        write(tmp_path, "asked", row)
        assert reading.read() == []
        reading.kill()
    write(tmp_path, "asked", DONE)
    (record,) = reading.read()
    assert (record["answer"], record["question"]) == ("the old the mill", "Which?")
    assert (reading.outcomes(), reading.stored) == ({"joined": 6}, {})


@pytest.mark.parametrize(
    ("texts", "answer"),
    [
        (("The", "The old", "The old mill"), "The old mill"),
        (("", "The", "The", "The old"), "The old"),
        (("The ", "old ", "The old "), "The old "),
        (("ha", "ha", "ha"), "hahaha"),
        (("The", " old"), "The old"),
        (("a", "b", "c"), "abc"),
    ],
)
def test_pieces_that_repeat_those_before_them(tmp_path: Path, texts: tuple[str, ...], answer: str) -> None:
    """Of snapshots of a growing answer, and of pieces with the whole behind them, the last one is the answer."""
    reading = Reading(tmp_path, **ENDS)
    write(tmp_path, "asked", SEARCH, *map(delta, texts), DONE)
    (record,) = reading.read()
    assert record["answer"] == answer


def test_silence_ends_an_answer_without_a_mark(tmp_path: Path) -> None:
    """It is counted from the newest piece on."""
    reading = Reading(tmp_path, **CONCAT)
    write(tmp_path, "asked", SEARCH, PIECES[0])
    assert reading.read() == []
    reading.clock.now = AT + 299
    write(tmp_path, "asked", PIECES[3])
    assert reading.read() == []
    reading.clock.now = AT + 300 + 298
    assert reading.read() == []
    reading.clock.now = AT + 300 + 299
    assert [record["answer"] for record in reading.read()] == ["the mill"]


def test_an_answer_without_its_end_is_none(tmp_path: Path) -> None:
    """Where a mark is configured, what was cut off is orphaned, not judged."""
    reading = Reading(tmp_path, **ENDS)
    write(tmp_path, "asked", SEARCH, *PIECES)
    assert reading.read() == []
    reading.clock.now = AT + 300
    assert reading.read() == []
    assert reading.outcomes() == {"orphaned": 5}


@pytest.mark.parametrize("order", [None, "index"])
def test_pieces_are_in_their_order(tmp_path: Path, order: str | None) -> None:
    """By `order`, else by time; not by arrival."""
    reading = Reading(tmp_path, **ENDS, **({} if order is None else {"order": order}))
    key = "ts" if order is None else order
    write(tmp_path, "asked", delta("mill", **{key: 1_767_225_602}), delta("old ", **{key: 1_767_225_601}), SEARCH, DONE)
    assert [record["answer"] for record in reading.read()] == ["old mill"]


def test_pieces_of_a_provider(tmp_path: Path) -> None:
    """An expression finds the text; a part without one adds nothing."""
    reading = Reading(tmp_path, concat={"answer": "choices[].delta.content"}, complete="choices[0].finish_reason")
    chunks = [
        {"delta": {"content": "By "}},
        {"delta": {"content": "the river."}},
        {"delta": {}, "finish_reason": "stop"},
    ]
    write(tmp_path, "asked", SEARCH, *({"request_id": "r1", "choices": [chunk]} for chunk in chunks))
    assert [record["answer"] for record in reading.read()] == ["By the river."]


@pytest.mark.parametrize("complete", [{"parts": 6}, {"complete": "type == 'done'"}, {"complete": "`false`"}])
def test_the_last_piece_is_not_the_answer(tmp_path: Path, complete: dict[str, Any]) -> None:
    """Without `concat`, a request whose answer would be one of several pieces is left out, and counted."""
    mapping = {"question": "question", "contexts": "contexts", "answer": "delta"}
    reading = Reading(tmp_path, format="custom", mapping=mapping, **complete)
    write(tmp_path, "asked", SEARCH, PIECES[0], PIECES[1], PIECES[3], delta("!"), DONE)
    reading.read()
    reading.clock.now = AT + 300
    reading.read()
    assert (reading.records, reading.outcomes()) == ([], {"piece": 6})


def test_pieces_that_come_late_are_told_from_other_late_parts(tmp_path: Path) -> None:
    """One that is like a joined part is a piece; what only follows an answer is late."""
    mapping = {"question": "question", "contexts": "contexts", "answer": "delta"}
    reading = Reading(tmp_path, format="custom", mapping=mapping)
    write(tmp_path, "asked", SEARCH, *PIECES, DONE)
    assert len(reading.read()) == 1
    assert reading.outcomes() == {"joined": 2, "piece": 2, "repeated": 1, "late": 1}


def test_spans_of_a_trace_are_no_pieces(tmp_path: Path) -> None:
    """They name their parents; of their outputs the last one may well be the answer."""
    spans = [
        {"request_id": "r1", "type": "chain", "parent_id": f"p{n}", "ts": 1_767_225_600 + n, "answer": f"output {n}"}
        for n in range(4)
    ]
    reading = Reading(tmp_path, complete="`false`")
    write(tmp_path, "asked", SEARCH, *spans)
    reading.read()
    reading.clock.now = AT + 300
    assert [record["answer"] for record in reading.read()] == ["output 3"]
