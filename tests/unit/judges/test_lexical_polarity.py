"""Denials, and questions of two parts: what the words alone do not show."""

from __future__ import annotations

import pytest
from support.kit import a_judge_context

from ragwatch.core.evidence import Address
from ragwatch.core.sample import Context, Sample
from ragwatch.core.scores import score_all
from ragwatch.judges.lexical.judge import Options, build
from ragwatch.judges.lexical.polarity import reverses
from ragwatch.model.quantities import Quantity

JUDGE = build(Options(), name="embedded", context=a_judge_context())


def faithfulness(answer: str, context: str) -> float | None:
    """What the judge makes of an answer over one context."""
    return score_all(JUDGE.evidence(Sample("s", None, (Context(context),), answer)))[Quantity.FAITHFULNESS]


@pytest.mark.parametrize(
    ("answer", "context"),
    [
        ("The return period is not 30 days.", "The return period is 30 days."),
        ("The return period is 30 days.", "The return period is not 30 days."),
        ("The price doesn’t include shipping.", "The price includes shipping."),
        ("The shop ships on Sundays.", "The shop does not ship on Sundays."),
    ],
)
def test_the_contrary_is_not_faithful(answer: str, context: str) -> None:
    """Every word of the answer stands in the context; a denial on one side decides."""
    assert faithfulness(answer, context) == 0.0
    assert faithfulness(context, context) == 1.0


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("The period is 30 days.", "The period is 30 days, not 14."),
        ("It is free.", "It is not only free but fast."),
        ("He was found guilty.", "The jury decides whether he was guilty or not guilty."),
        ("The bank gets no further help.", "The owner ruled out further help for the bank."),
        ("Returns are no longer possible after 30 days.", "Returns are possible for 30 days."),
        ("Crops did not arrive in Europe until 1500.", "Crops arrived in Europe in 1500."),
    ],
)
def test_other_negations_deny_nothing_that_is_said(claim: str, sentence: str) -> None:
    """Neither is the contrary of the other."""
    assert not reverses(claim, sentence)
    assert not reverses(sentence, claim)


HOURS, PRICE = "The museum opens at nine in the morning.", "A ticket for the museum costs eight euros."


@pytest.mark.parametrize(
    ("question", "answer", "address"),
    [
        ("When does the museum open, and how much is a ticket?", HOURS, Address.PARTIALLY),
        ("When does the museum open and what does a ticket cost?", PRICE, Address.PARTIALLY),
        ("When does the museum open? What does a ticket cost?", HOURS, Address.PARTIALLY),
        ("When does the museum open, and how much is a ticket?", f"{HOURS} {PRICE}", Address.FULLY),
        ("When does the museum open, and how much is a ticket?", "At nine, and it costs eight euros.", Address.FULLY),
        ("When does the museum open?", HOURS, Address.FULLY),
    ],
)
@pytest.mark.parametrize("contexts", [(HOURS, PRICE), (f"{HOURS} {PRICE}",)])
def test_half_of_a_question_is_not_fully_addressed(
    question: str, answer: str, address: Address, contexts: tuple[str, ...]
) -> None:
    """Whether the other half stands in a context of its own or not."""
    assert JUDGE.evidence(Sample("s", question, tuple(map(Context, contexts)), answer)).address is address


HOUSES = (
    "Mill House is in Carrow. Mill House opened in 1931. Entry to Mill House costs 9 euros for adults.",
    "Abbey Hall is in Aldern. Abbey Hall opened in 1890. Entry to Abbey Hall costs 4 euros for adults.",
)


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ("The Mill House opened in 1931. Entry to Mill House costs 9 euros.", 1.0),
        ("The Mill House opened in 1890.", None),
        ("Entry to Mill House costs 4 euros.", 0.0),
        ("The Mill House opened in 1931, the Abbey Hall opened in 1890.", 1.0),
        ("Entry costs 4 euros at Abbey Hall.", 1.0),
    ],
)
def test_what_a_context_says_of_something_else_supports_nothing(answer: str, score: float | None) -> None:
    """Every word of the answer stands in a context, but its number in one about another house."""
    contexts = tuple(map(Context, HOUSES))
    read = score_all(JUDGE.evidence(Sample("s", None, contexts, answer)))[Quantity.FAITHFULNESS]
    assert read is not None
    assert read == score if score is not None else read < 1.0
