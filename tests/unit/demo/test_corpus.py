"""The corpus: passages from the docstrings of Python."""

from __future__ import annotations

import sys

import pytest

from ragwatch.demo import corpus
from ragwatch.demo.corpus import CHUNK_WORDS, chunks, read_corpus
from ragwatch.errors import RagwatchError


@pytest.mark.costly
def test_reading_again_gives_the_same_passages() -> None:
    """The corpus depends on the Python version only."""
    assert read_corpus.__wrapped__() == read_corpus()


def test_every_passage_has_an_id_of_its_own_and_starts_with_its_name() -> None:
    """Ids are unique, and the text a generator is given says what it is about."""
    passages = read_corpus()
    assert len({passage.id for passage in passages}) == len(passages)
    assert all(passage.text == f"{passage.title}: {passage.body}" for passage in passages)


def test_passages_are_many_and_none_is_long() -> None:
    """Some thousands of passages, none far beyond the size that was asked for."""
    passages = read_corpus()
    assert len(passages) > 2000
    assert max(len(passage.body.split()) for passage in passages) <= CHUNK_WORDS


def test_well_known_names_are_there() -> None:
    """Functions in C, in Python, behind a front module, methods and modules are all found under their public names."""
    titles = {passage.title for passage in read_corpus()}
    expected = {
        "len",
        "str.join",
        "textwrap.dedent",
        "os.path.join",
        "os.listdir",
        "heapq.merge",
        "random.choice",
        "json",
    }
    assert expected - titles == set()


@pytest.mark.costly
def test_reading_warns_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    """Old names that Python will drop are looked at without a word on the terminal."""
    read_corpus.__wrapped__()
    assert list(recwarn) == []


def test_examples_signatures_and_rulers_are_left_out() -> None:
    """What is no sentence cannot be an answer."""
    doc = """frobnicate(x[, y]) -> int

    Title of it
    ===========

    Turns the crank once. Then rests

    >>> frobnicate(1)
    2

    heap = []     # makes a heap
    """
    assert chunks(doc) == ["Title of it. Turns the crank once. Then rests."]


def test_a_long_text_is_cut_between_sentences() -> None:
    """Pieces end where sentences end, and together hold all of them."""
    lines = [f"Sentence number {number} says a few things about crank {number}." for number in range(40)]
    pieces = chunks(" ".join(lines))
    assert len(pieces) > 2
    assert " ".join(pieces) == " ".join(lines)


def test_too_short_a_text_is_no_passage() -> None:
    """Two words tell nobody anything."""
    assert chunks("Noop here.") == []


def test_without_documentation_strings_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python run with -OO has nothing to answer from; so has one without these modules."""
    monkeypatch.setattr(corpus, "MODULES", ("ragwatch_no_such_module",))
    with pytest.raises(RagwatchError, match="-OO"):
        read_corpus.__wrapped__()


def test_no_window_is_opened() -> None:
    """Reading the corpus needs no display."""
    read_corpus()
    assert "tkinter" not in sys.modules
