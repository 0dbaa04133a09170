"""The corpus: passages from the docstrings of Python, how they are found, and questions about them."""

from __future__ import annotations

import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from ragwatch.demo import corpus
from ragwatch.demo.answerer import Answerer
from ragwatch.demo.corpus import CHUNK_WORDS, MODULES, Passage, chunks, read_corpus
from ragwatch.demo.index import PassageIndex
from ragwatch.demo.questions import ROUTES, handwritten, questions
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


def passage(title: str, body: str, number: int = 0) -> Passage:
    """A passage with the house's naming."""
    return Passage(f"{title}#{number}", title, title.split(".", maxsplit=1)[0], f"{title}: {body}")


PASSAGES = (
    passage("kettle.boil", "Heat the water until it bubbles."),
    passage("kettle.boils", "Whether the water bubbles by now."),
    passage("teapot.pour", "Let the tea run into a cup."),
    passage("teapot.pour", "The cup is filled to the brim, never beyond.", 1),
    passage("cup.wash", "Clean the cup with warm water."),
)


@pytest.fixture
def index() -> Iterator[PassageIndex]:
    """An index over five passages about tea."""
    made = PassageIndex(PASSAGES)
    yield made
    made.close()


def ids(index: PassageIndex, question: str, k: int = 5) -> list[str]:
    """Ids of what is found."""
    return [hit.id for hit in index.search(question, k)]


@pytest.mark.parametrize("question", ["", "???", "the of and", "a"])
def test_a_question_without_words_finds_nothing(index: PassageIndex, question: str) -> None:
    """No words, no passages, no error."""
    assert index.search(question) == []


@pytest.mark.parametrize(
    "question", ['tea" OR "x', "tea*", "tea NEAR cup", "title:tea", "(tea", "tea AND NOT cup", "té 茶 tea"]
)
def test_nothing_a_user_types_is_an_operator(index: PassageIndex, question: str) -> None:
    """Every word is quoted."""
    assert "teapot.pour#0" in ids(index, question)


def test_removed_passages_are_not_found_until_restored(index: PassageIndex) -> None:
    """Documents vanish and come back, and the rest stays."""
    before = ids(index, "water cup")
    assert index.remove(lambda passage: passage.module == "cup") == 1
    assert (len(index), ids(index, "water cup")) == (4, [passage for passage in before if passage != "cup.wash#0"])
    index.restore()
    assert (len(index), ids(index, "water cup")) == (5, before)


def test_without_full_text_search_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A SQLite built without FTS5 is named as the reason."""

    class Bare(sqlite3.Connection):
        def execute(self, *_: Any) -> sqlite3.Cursor:
            raise sqlite3.OperationalError("no such module: fts5")

    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path, **options: real(path, factory=Bare, **options))
    with pytest.raises(RagwatchError, match="FTS5"):
        PassageIndex(PASSAGES)


def module_of(about: str) -> str:
    """The module a qualified name lives in; names without one are builtins."""
    parts = about.split(".")
    dotted = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in dotted if name in MODULES), "builtins")


def test_every_handwritten_question_is_about_a_documented_name() -> None:
    """Every module is there, and every name but the few that another Python version calls differently."""
    titles = {passage.title for passage in read_corpus()}
    modules = {passage.module for passage in read_corpus()}
    abouts = [question.about for question in handwritten() if question.about]
    assert {module_of(about) for about in abouts} - modules == set()
    assert sum(about not in titles for about in abouts) <= 0.05 * len(abouts)


def test_the_mix_of_questions() -> None:
    """Enough by hand and in all, each once and always the same; both routes; one in twenty has no answer."""
    asked = questions(read_corpus())
    routes = Counter(question.route for question in asked)
    assert len(handwritten()) >= 120
    assert len(asked) == len({question.text for question in asked}) >= 300
    assert asked == questions(read_corpus())
    assert routes.keys() == set(ROUTES)
    assert min(routes.values()) > 0.4 * routes.total()
    assert 0.02 < sum(question.about is None for question in asked) / len(asked) < 0.07
    assert {question.about for question in questions(())} == {None}  # what this Python does not document is not asked


@pytest.mark.costly
def test_almost_every_answerable_question_is_answered_and_no_other() -> None:
    """Retriever, answerer and questions fit: the right name is found in the first five, nonsense is not answered."""
    corpus = read_corpus()
    index, answerer = PassageIndex(corpus), Answerer(corpus)
    counts, asked = Counter[str](), questions(corpus)
    for question in asked:
        passages = [hit.passage for hit in index.search(question.text)]
        counts["known"] += question.about is not None
        counts["right"] += question.about in {passage.title for passage in passages}
        abstained = answerer.answer(question.text, passages) is None
        counts["answered"] += question.about is not None and not abstained
        counts["guessed"] += question.about is None and not abstained
    index.close()
    assert counts["right"] > 0.9 * counts["known"]
    assert counts["answered"] > 0.97 * counts["known"]
    assert counts["guessed"] == 0
