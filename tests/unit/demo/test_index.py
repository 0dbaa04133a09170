"""The index: BM25 over SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from ragwatch.demo.corpus import Passage
from ragwatch.demo.index import PassageIndex
from ragwatch.errors import RagwatchError


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
