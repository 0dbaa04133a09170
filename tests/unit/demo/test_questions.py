"""Questions of the demo's users."""

from __future__ import annotations

from collections import Counter

import pytest

from ragwatch.demo.answerer import Answerer
from ragwatch.demo.corpus import MODULES, read_corpus
from ragwatch.demo.index import PassageIndex
from ragwatch.demo.questions import ROUTES, handwritten, questions


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
