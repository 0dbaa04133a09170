"""Inventions: little is changed in a right answer, the same for the same question."""

from __future__ import annotations

import pytest

from ragwatch.demo.inventions import with_inventions

RIGHT = ("Return the first line.", "Wait up to 5 seconds if the queue does not answer.", "Close it.")


@pytest.mark.parametrize(
    ("sentence", "changed"),
    [
        ("It waits up to 5 seconds.", "It waits up to 16 seconds."),
        ("Return the first line.", "Return the last line."),
        ("Raise KeyError if the key is missing.", "Raise KeyError."),
        ("It does not close the file.", "It does close the file."),
    ],
)
def test_what_can_be_changed_is_changed(sentence: str, changed: str) -> None:
    """A number, a word, a condition, a negation."""
    assert with_inventions("Why?", [sentence])[0] == changed


def test_a_sentence_without_any_gets_a_clause() -> None:
    """The rest of it stays as it is, with its mark at the end."""
    changed, _ = with_inventions("Why?", ["Join all threads."])
    assert changed.startswith("Join all threads, ")
    assert changed.endswith(".")


@pytest.mark.parametrize("number", range(20))
def test_all_but_one_sentence_stay_right(number: int) -> None:
    """One is changed, one is added; the others can be read in the passage."""
    answer = with_inventions(f"Question {number}?", RIGHT)
    assert len(answer) == len(RIGHT) + 1
    assert sum(one == other for one, other in zip(answer, RIGHT, strict=False)) == len(RIGHT) - 1
    assert with_inventions(f"Question {number}?", RIGHT) == answer


def test_questions_differ_in_what_is_invented() -> None:
    """An operator who reads ten answers sees ten inventions."""
    assert len({with_inventions(str(number), RIGHT) for number in range(50)}) > 30
