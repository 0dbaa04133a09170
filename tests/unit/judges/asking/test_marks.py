"""A reply says what each context is to a claim: it supports it alone, jointly with others, or was misstated by it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

ANSWER = "Returns are accepted within thirty days, and return shipping costs five euros."
CONTEXTS = (
    "Returns are accepted within thirty days.",
    "Return shipping costs five euros.",
    "Cats purr at night.",
    "We accept returns within thirty days; return shipping costs five euros.",
)
QUOTES = (
    "accepted within thirty days",
    "shipping costs five euros",
    "purr at night",
    "within thirty days; return shipping",
)


Cells = Callable[..., tuple[Any, ...]]


@pytest.fixture
def cells(ask_about: Any, paper: Any, honest: Any) -> Cells:
    """Cells of the one claim, where a reply gives it this verdict with quotes from these contexts."""

    def read(verdict: str, ranks: tuple[int, ...], answer: str = ANSWER) -> tuple[Any, ...]:
        reading = ask_about("What about returns?", answer, *CONTEXTS)
        (ask,) = reading.prompts()
        reply, marks = honest.reply(ask), list(paper(ask.user).contexts)
        quotes = [{"context": marks[rank], "quote": QUOTES[rank]} for rank in ranks]
        reply["claims"][0] |= {"verdict": verdict, "cells": quotes}
        reading.take([ask.check(json.dumps(reply))])
        (claim,) = reading.evidence().claims
        return tuple(claim.cells)

    return read


@pytest.mark.parametrize(
    ("verdict", "ranks", "expected"),
    [
        ("supported", (0, 3), ("alone", None, None, "alone")),
        ("supported", (0, 1), ("jointly", "jointly", None, None)),  # each has but half of the claim
        ("supported_jointly", (0, 1), ("jointly", "jointly", None, None)),
        ("supported_jointly", (1, 3), (None, "jointly", None, "jointly")),
        ("supported_jointly", (1,), (None, "alone", None, None)),
        ("contradicted", (1,), (None, "informed", None, None)),
        ("not_in_context", (0,), ("informed", None, None, None)),
    ],
)
def test_the_verdict_and_the_cells_say_what_each_context_is(
    cells: Cells, verdict: str, ranks: tuple[int, ...], expected: Any
) -> None:
    """A claim that one context supports has nothing joint; one that none supports may have been taken from one."""
    assert cells(verdict, ranks) == expected


def test_a_quote_without_a_word_of_the_claim_shows_no_use(cells: Cells) -> None:
    """Then the words decide, as they do where a reply has no cell for an unsupported claim."""
    answer = "Returns are accepted within ninety days."
    by_words = cells("not_in_context", (), answer)
    assert by_words == cells("not_in_context", (2,), answer)
    assert by_words[2] is None
