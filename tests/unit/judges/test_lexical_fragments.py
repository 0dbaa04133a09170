"""Bare fragments ("Thirty days.") are supported only where their words stand together in a sentence of a context."""

from __future__ import annotations

import pytest
from support.kit import a_judge_context

from ragwatch.core.evidence import ClaimVerdict, Evidence
from ragwatch.core.sample import Context, Sample
from ragwatch.judges.claims.clauses import is_fragment
from ragwatch.judges.lexical import judge as lexical

QUESTION = "Who wrote the song about the old harbour?"
TOGETHER = "Mitch Murray wrote the song about the old harbour."
APART = "The song about the old harbour is by Mitch Lane. Anne Murray sang it in the old harbour."


def read(answer: str, context: str, question: str | None = QUESTION) -> Evidence:
    """What the embedded judge reads."""
    judge = lexical.build(lexical.Options(), name="mine", context=a_judge_context())
    return judge.evidence(Sample("s", question, (Context(context),), answer))


@pytest.mark.parametrize(
    ("answer", "context", "question", "is_supported"),
    [
        ("Mitch Murray.", TOGETHER, QUESTION, True),
        ("Mitch Murray.", APART, QUESTION, False),
        ("Mitch Murray.", f"{APART} {TOGETHER}", QUESTION, True),
        ("Mitch Murray.", APART, None, True),  # it answers nothing
        ("- Mitch Murray", APART, QUESTION, True),  # an item of a list
        ("Mitch and Murray.", APART, QUESTION, True),  # two things, which may stand apart
    ],
)
def test_words_of_a_fragment_have_to_stand_together(
    answer: str, context: str, question: str | None, *, is_supported: bool
) -> None:
    """What stands apart in the contexts is no answer, though every word of it is there."""
    (claim,) = read(answer, context, question).claims
    assert (claim.verdict is ClaimVerdict.SUPPORTED) is is_supported
    assert claim.support is not None
    assert (claim.support >= 0.5) is is_supported


def test_what_is_a_fragment() -> None:
    """A few words, one of them with content, without a verb."""
    fragments = ("Thirty days.", "George II", "The old harbour in Bern", "42")
    others = ("It takes thirty days.", "The", "", "Tea, rum and milk", "one two three four five six seven", "x" * 1000)
    others += ("They live in Bern.", "It's green.", "Yes, in Bern", "五日以内")
    assert [is_fragment(text) for text in (*fragments, *others)] == [True] * 4 + [False] * 10
