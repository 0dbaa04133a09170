"""Inventions: little is changed in a right answer, the same for the same question."""

from __future__ import annotations

import pytest

from ragwatch.demo.answerer import with_inventions


@pytest.mark.parametrize(
    ("sentence", "changed"),
    [
        ("It waits up to 5 seconds.", "It waits up to 16 seconds."),
        ("Return the first line.", "Return the last line."),
        ("Raise KeyError if the key is missing.", "Raise KeyError."),
        ("It does not close the file.", "It does close the file."),
        ("Join all threads.", "Join all threads, "),
    ],
)
def test_one_sentence_is_changed_and_one_is_added(sentence: str, changed: str) -> None:
    """A number, a word, a condition, a negation, else a clause; others stay, and the same question gets the same."""
    answer = with_inventions("Why?", [sentence])
    assert (answer[0][: len(changed)], len(answer)) == (changed, 2)
    three = [sentence, "Close it.", "Open it."]
    longer = with_inventions("Why?", three)
    assert sum(one != other for one, other in zip(longer, three, strict=False)) == 1
    assert with_inventions("Why?", three) == longer
