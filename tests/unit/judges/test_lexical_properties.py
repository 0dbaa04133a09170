"""What holds for every text: exact offsets, bounded numbers, support that only grows, columns that only move."""

from __future__ import annotations

import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.draws import draws
from support.embedded import LEXICAL, an_answer, has_negation, read_by

from ragwatch.judges.claims.claims import claims_of
from ragwatch.judges.claims.words import identifiers, terms
from ragwatch.judges.lexical.facts import UNSUPPORTED
from ragwatch.judges.lexical.reader import relevance_of
from ragwatch.judges.lexical.tables import shipped
from ragwatch.model.evidence import Cell, Evidence
from ragwatch.statistics.scores import score_all
from ragwatch.statistics.stage import stage

pytestmark = pytest.mark.uncounted

MENU = (
    "kettle boils water 90 three Vortex lamp the of not dims Paris 1,000 U.S. e.g. max_len os.path Dr. [1] - 1. ok?"
    " yes. document does mention. I don't know. * # ``` \n \n\n : ... … “quote” (b) 中文。 naïve"
)
WORDS = st.sampled_from(MENU.split(" "))
PROSE = st.lists(WORDS, max_size=30).map(" ".join)
TEXT = st.one_of(PROSE, st.text(max_size=80))


def read(question: str | None, answer: str, contexts: list[str]) -> Evidence:
    """Evidence of one sample."""
    return read_by(LEXICAL, answer, *contexts, question=question)


@pytest.mark.costly
@given(st.one_of(st.none(), TEXT), TEXT, st.lists(TEXT, max_size=4))
@settings(max_examples=draws(50), deadline=None)
def test_any_text_is_read(question: str | None, answer: str, contexts: list[str]) -> None:
    """No text breaks the judge; offsets are exact; every number is in [0, 1]; a cell implies the verdict."""
    evidence = read(question, answer, contexts)
    for claim in evidence.claims:
        assert answer[claim.start : claim.end] == claim.text
        assert claim.support is not None
        assert 0.0 <= claim.support <= 1.0
    assert len(contexts) == len(evidence.contexts)
    assert all(value is None or 0.0 <= value <= 1.0 for value in score_all(evidence).values())
    stage(evidence)


@pytest.mark.costly
@given(PROSE, st.lists(PROSE, min_size=1, max_size=3), st.data())
@settings(max_examples=draws(50), deadline=None)
def test_a_context_that_says_more_of_the_claim_never_supports_it_less(
    answer: str, contexts: list[str], data: st.DataObject
) -> None:
    """Adding words of the claim to a context lowers no support, alone or together, and enlarges no support set.

    But a context with a negation may deny the claim then.
    """
    before = read(None, answer, contexts)
    for row, claim in enumerate(before.claims):
        words = data.draw(st.lists(st.sampled_from(claim.text.split()), max_size=5))
        rank = data.draw(st.integers(0, len(contexts) - 1))
        richer = [text + "\n" + " ".join(words) if rank == index else text for index, text in enumerate(contexts)]
        evidence = read(None, answer, richer)
        assume((evidence.unread, evidence.language) == (None, before.language))  # words may be of another language
        after = evidence.claims[row]
        if after.support == UNSUPPORTED and has_negation(richer[rank]):
            continue
        assert (after.support or 0.0) >= (claim.support or 0.0)
        assert len(after.support_set) <= len(claim.support_set) or not claim.support_set
        assert claim.cells[rank] is not Cell.ALONE or after.cells[rank] is Cell.ALONE


@pytest.mark.costly
@given(PROSE, PROSE, st.lists(PROSE, min_size=2, max_size=4), st.randoms(use_true_random=False))
@settings(max_examples=draws(40), deadline=None)
def test_permuting_contexts_permutes_columns(question: str, answer: str, contexts: list[str], rng: object) -> None:
    """The order of the contexts changes no claim, only where its cells stand, and which of equals is used."""
    order = list(range(len(contexts)))
    rng.shuffle(order)  # type: ignore[attr-defined]
    moved = [contexts[index] for index in order]
    before, after = read(question, answer, contexts), read(question, answer, moved)
    for old, new in zip(before.claims, after.claims, strict=True):
        assert (old.text, old.verdict, old.support) == (new.text, new.verdict, new.support)
        assert {order.index(rank) for rank, cell in enumerate(old.cells) if cell is Cell.ALONE} == {
            rank for rank, cell in enumerate(new.cells) if cell is Cell.ALONE
        }
        assert len(old.support_set) == len(new.support_set)
    said = claims_of(answer, question)
    here, there = (
        relevance_of(an_answer(answer, *texts, question=question), said, shipped()) for texts in (contexts, moved)
    )
    assert [here[index] for index in order] == there


MEGABYTE = 1_000_000
HOSTILE = [
    ". ",
    "a. ",
    "\n",
    " ",
    "A. B",
    "[1]",
    '".',
    "1.",
    "```\n",
    "'",
    "x_",
    "a.b",
    "\n- a",
    "passage 1, ",
    "not ",
    "é",
]


@pytest.mark.uncounted
@pytest.mark.parametrize("size", [MEGABYTE // 20, pytest.param(MEGABYTE, marks=pytest.mark.slow)])
@pytest.mark.parametrize("unit", HOSTILE, ids=repr)
def test_a_megabyte_of_anything_is_split_in_linear_time(unit: str, size: int) -> None:
    """Ten times as many hostile characters cost about ten times as much, not a hundred times."""

    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        start = time.process_time()
        claims_of(text)
        terms(text)
        identifiers(text)
        return time.process_time() - start

    # The least of a few: whatever else the machine does is added to some of them.
    assert min(seconds(size) for _ in range(3)) < 40 * max(seconds(size // 10), 0.005)
