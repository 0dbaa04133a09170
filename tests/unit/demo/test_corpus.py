"""The corpus: passages from the docstrings of Python."""

from __future__ import annotations

import sys

import pytest

from ragwatch.demo import corpus
from ragwatch.demo.corpus import CHUNK_WORDS, chunks, read_corpus
from ragwatch.errors import RagwatchError


@pytest.mark.costly
def test_reading_again_gives_the_same_passages(recwarn: pytest.WarningsRecorder) -> None:
    """It depends on the Python version only, needs no display, and old names are read without a warning."""
    assert read_corpus.__wrapped__() == read_corpus()
    assert list(recwarn) == []
    assert "tkinter" not in sys.modules


def test_passages() -> None:
    """Some thousands, none far beyond the size that was asked for, each with an id, and with its name in its text."""
    passages = read_corpus()
    assert len(passages) == len({passage.id for passage in passages}) > 2000
    assert all(passage.text == f"{passage.title}: {passage.body}" for passage in passages)
    assert max(len(passage.body.split()) for passage in passages) <= CHUNK_WORDS


def test_well_known_names_are_there() -> None:
    """Functions in C, in Python, behind a front module, methods and modules are all found under their public names."""
    titles = {passage.title for passage in read_corpus()}
    expected = "len str.join textwrap.dedent os.path.join os.listdir heapq.merge random.choice json"
    assert set(expected.split()) <= titles


def test_examples_signatures_and_rulers_are_left_out() -> None:
    """What is no sentence cannot be an answer; a long text is cut between sentences."""
    doc = """frobnicate(x[, y]) -> int

    Title of it
    ===========

    Turns the crank once. Then rests

    >>> frobnicate(1)
    2

    heap = []     # makes a heap
    """
    assert chunks(doc) == ["Title of it. Turns the crank once. Then rests."]
    assert chunks("Noop here.") == []
    lines = [f"Sentence number {number} says a few things about crank {number}." for number in range(40)]
    assert " ".join(chunks(" ".join(lines))) == " ".join(lines)
    assert len(chunks(" ".join(lines))) > 2


def test_without_documentation_strings_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python run with -OO has nothing to answer from; so has one without these modules."""
    monkeypatch.setattr(corpus, "MODULES", ("ragwatch_no_such_module",))
    with pytest.raises(RagwatchError, match="-OO"):
        read_corpus.__wrapped__()
