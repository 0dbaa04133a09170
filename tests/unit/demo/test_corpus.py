"""The corpus: passages from docstrings of Python, how they are found, questions about them, and answers."""

import sqlite3
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from ragwatch.demo import corpus
from ragwatch.demo.answerer import (
    ABSTENTION,
    CLOSINGS,
    OFFERS,
    OPENINGS,
    Answerer,
    Quote,
    declined,
    spoken,
    with_inventions,
)
from ragwatch.demo.corpus import CHUNK_WORDS, MODULES, Passage, chunks, read_corpus
from ragwatch.demo.index import PassageIndex
from ragwatch.demo.questions import ROUTES, handwritten, questions
from ragwatch.errors import RagwatchError
from ragwatch.judges.claims.claims import claims_of
from ragwatch.statistics.text.phrases import is_abstention


@pytest.mark.costly
def test_reading_again_gives_the_same_passages(recwarn: pytest.WarningsRecorder) -> None:
    """It depends on the Python version only, needs no display, and old names are read without a warning."""
    assert read_corpus.__wrapped__() == read_corpus()
    assert list(recwarn) == []
    assert "tkinter" not in sys.modules


def test_passages() -> None:
    """Some thousands, none far beyond the size that was asked for, each with an id; well-known names are there."""
    passages = read_corpus()
    assert len(passages) == len({passage.id for passage in passages}) > 2000
    assert all(passage.text == f"{passage.title}: {passage.body}" for passage in passages)
    assert max(len(passage.body.split()) for passage in passages) <= CHUNK_WORDS
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


def test_nothing_a_user_types_is_an_operator(index: PassageIndex) -> None:
    """Every word is quoted; no words, no passages, no error."""
    for question in ('tea" OR "x', "tea*", "tea NEAR cup", "title:tea", "(tea", "tea AND NOT cup", "té 茶 tea"):
        assert "teapot.pour#0" in ids(index, question)
    for question in ("", "???", "the of and", "a"):
        assert index.search(question) == []


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


def test_the_mix_of_questions() -> None:
    """Those by hand are about documented names; each once and always the same; one in twenty has no answer."""
    titles = {passage.title for passage in read_corpus()}
    modules = {passage.module for passage in read_corpus()}
    abouts = [question.about for question in handwritten() if question.about]
    assert {module_of(about) for about in abouts} - modules == set()
    assert sum(about not in titles for about in abouts) <= 0.05 * len(abouts)
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


QUOTE = Quote(1, "teapot.brew", ("Brew leaves in hot water:", "The lid stays closed meanwhile."))
QUESTIONS = [f"How do I brew tea number {number}?" for number in range(200)]


@pytest.mark.parametrize(("route", "mark"), [*zip(ROUTES, ("[2]", "(source 2)"), strict=True)])
def test_courtesy_is_no_claim(route: str, mark: str) -> None:
    """What the judge reads are the cited sentences of the passage; each phrase is used, but not by every answer."""
    answers = [spoken(question, QUOTE, route) for question in QUESTIONS]
    assert answers == [spoken(question, QUOTE, route) for question in QUESTIONS]
    for answer in answers:
        assert [answer[claim.start : claim.end] for claim in claims_of(answer).claims] == [
            f"teapot.brew: Brew leaves in hot water {mark}.",
            f"The lid stays closed meanwhile {mark}.",
        ]
    for phrase in (*OPENINGS, *CLOSINGS):
        assert 0 < sum(phrase in answer for answer in answers) < len(answers), phrase


def test_an_abstention_has_an_offer() -> None:
    """It stays an abstention for the judge and for the signals of traffic."""
    answers = {declined(question) for question in QUESTIONS}
    assert answers == {f"{ABSTENTION} {offer}" for offer in OFFERS}
    for answer in answers:
        assert claims_of(answer).abstained
        assert is_abstention(answer)
