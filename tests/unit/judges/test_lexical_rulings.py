"""What words decide of a claim: numbers, names, denials, fragments, bare answers; and what they leave unknown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.embedded import LEXICAL, faithfulness_of, read_by
from support.sentences import pairs

from ragwatch.judges.claims.clauses import is_fragment
from ragwatch.judges.lexical.amounts import amounts
from ragwatch.judges.lexical.stated_amounts import stated
from ragwatch.judges.lexical.statements import reverses
from ragwatch.model.evidence import Address, UnreadReason
from ragwatch.model.quantities import Quantity
from ragwatch.model.quantity_row import UnknownReason
from ragwatch.statistics.scores import why_unknown

BINARY = "If the Solar System were such a binary system, the outer limits of the zone could extend as far as 2.4 AU."
HOUSES = (
    "Mill House is in Carrow. Mill House opened in 1931. Entry to Mill House costs 9 euros for adults.",
    "Abbey Hall is in Aldern. Abbey Hall opened in 1890. Entry to Abbey Hall costs 4 euros for adults.",
)
PRICES = "Lamps cost 14 EUR and mugs cost 11.50 EUR."
PLAN = "This plan has a term of 30 days."
SONG = "Who wrote the song about the old harbour?"
TOGETHER = "Mitch Murray wrote the song about the old harbour."
APART = "The song about the old harbour is by Mitch Lane. Anne Murray sang it in the old harbour."
HOURS, PRICE = "The museum opens at nine in the morning.", "A ticket for the museum costs eight euros."
FREE = "Shipping is free for orders above 50 euros."


@pytest.mark.parametrize(("one", "other"), pairs("equal numbers"))
def test_equal_numbers_are_the_same_number(one: str, other: str) -> None:
    """Units, formats, dates and words for numbers: each form supports the other."""
    assert (faithfulness_of(one, other), faithfulness_of(other, one)) == (1.0, 1.0)


@pytest.mark.parametrize(("claim", "context"), pairs("claim with a wrong fact"))
def test_one_wrong_fact_makes_a_claim_unsupported(claim: str, context: str) -> None:
    """However many of its other words are right; a denial on one side decides; the true claim is supported."""
    assert faithfulness_of(context, context) == 1.0
    assert "not_in_context" in {each.verdict for each in read_by(LEXICAL, claim, context).claims}


@pytest.mark.parametrize(
    ("answer", "context", "question", "faithfulness"),
    [
        # List numbers, citation marks, numbers of the question, decades and centuries raise no alarm.
        ("1. Refunds take five days [1].", "Refunds take 5 days.", None, 1.0),
        ("Step 2: refunds take five days (Passage 3).", "Refunds take 5 days.", None, 1.0),
        ("The 40 euro plan has a term of thirty days.", PLAN, "What of the 40 euro plan?", 1.0),
        ("It was made in the 1970s.", "It was made in 1971.", None, 1.0),
        ("It was built in the 20th century.", "It was built in 1971.", None, 1.0),
        # A rate is said in several forms; a number without one is that of any.
        ("The fee is 5 euros monthly.", "The fee is 5 euros per month.", None, 1.0),
        ("The limit is 100 km per hour.", "The limit is 100 km/h.", None, 1.0),
        ("The yearly fee is 120 euros.", "The monthly fee is 12 euros, the yearly fee is 120 euros.", None, 1.0),
        ("The fee is 5 euros.", "The fee is 5 euros per year.", None, 1.0),
        ("The filter is changed every week.", "The filter is changed weekly, and cleaned every day.", None, 1.0),
        # What follows from other numbers of its sentence need not be stated.
        ("Lamps cost 14 EUR, mugs 11.50 EUR, so the difference is 2.50 EUR.", PRICES, None, 1.0),
        ("Lamps cost 14 EUR, mugs 11.50 EUR, so the difference is 3.50 EUR.", PRICES, None, 0.5),
        ("Take 6 tablets of 200 mg, so 1.2 g.", "Take 6 tablets of 200 mg.", None, 1.0),
        ("| Europe | 44.9 |", "region,q2,q3\nEurope,41.2,44.9\nAsia,12.4,15.0", None, 1.0),
        # What would be is not what is; a plain condition is not read, as words cannot tell whether it holds.
        ("The Solar System's habitable zone extends out as far as 2.4 AU.", BINARY, "How far?", 0.0),
        (BINARY.replace("such a binary", "a binary").replace("outer limits of the ", ""), BINARY, "How far?", 1.0),
        ("The fee of 9 euros is due.", "If you cancel, the fee of 9 euros is due.", "How far?", 1.0),
        # Every word stands in a context, but its number in one about another house.
        ("The Mill House opened in 1931. Entry to Mill House costs 9 euros.", HOUSES, None, 1.0),
        ("The Mill House opened in 1931, the Abbey Hall opened in 1890.", HOUSES, None, 1.0),
        ("Entry costs 4 euros at Abbey Hall.", HOUSES, None, 1.0),
        ("The Mill House opened in 1890.", HOUSES, None, 0.5),  # that it opened is true
        ("Entry to Mill House costs 4 euros.", HOUSES, None, 0.0),
    ],
)
def test_what_a_context_has_to_state(answer: str, context: Any, question: str | None, faithfulness: float) -> None:
    """Numbers of its own, as facts, about the same thing."""
    contexts = (context,) if isinstance(context, str) else context
    assert faithfulness_of(answer, *contexts, question=question) == faithfulness


def test_counts_names_and_roundings_are_no_missing_numbers() -> None:
    """People count what is listed and round what is exact."""
    assert [amount.strict for amount in amounts("three colours, GPT-4, 1 of 2 parts")] == [False] * 4
    source = stated("3,482,113 people came, 487 of them by bus, from 1990 to 2002")
    claimed = amounts("3.5 million people, about 500 by bus, for 12 years")
    assert all(map(source.holds, claimed))
    assert not any(map(source.holds, amounts("3.6 million people, 600 by bus, for 13 years")))


def test_a_reading_does_not_depend_on_the_seed_of_hashes() -> None:
    """Where several words stand for a number, it is always the last one that is taken as the way it is written."""
    for number, words in (
        ("4", ["quartet", "quadruple", "quarterly"]),
        ("3", ["trio", "triplets", "thrice", "triple"]),
    ):
        for last in words:
            ordered = sorted(words, key=lambda word, last=last: word == last)
            assert stated(" ".join(ordered)).forms[number] == last


@given(st.integers(2, 10**9))
def test_a_number_is_stated_by_its_own_forms(value: int) -> None:
    """Plain and with commas."""
    for text in (f"{value}", f"{value:,}"):
        for other in (f"{value}", f"{value:,}"):
            assert all(map(stated(f"all {text} of them").holds, amounts(f"all {other} of them")))


@given(st.text(alphabet="0123456789.,:/-' kmKM%$€stndrdth", max_size=60))
def test_any_text_can_be_read(text: str) -> None:
    """Hostile runs of digits, signs and units."""
    assert stated(text).forms is not None
    assert all(amount.start < amount.end for amount in amounts(text))


@pytest.mark.parametrize(
    ("answer", "context", "question", "is_supported"),
    [
        ("Mitch Murray.", TOGETHER, SONG, True),
        ("Mitch Murray.", APART, SONG, False),
        ("Mitch Murray.", f"{APART} {TOGETHER}", SONG, True),
        ("Mitch Murray.", APART, None, True),  # it answers nothing
        ("- Mitch Murray", APART, SONG, True),  # an item of a list
        ("Mitch and Murray.", APART, SONG, True),  # two things, which may stand apart
    ],
)
def test_words_of_a_fragment_stand_together(
    answer: str, context: str, question: str | None, *, is_supported: bool
) -> None:
    """What stands apart in the contexts is no answer, though every word of it is there."""
    (claim,) = read_by(LEXICAL, answer, context, question=question).claims
    assert (claim.verdict == "supported", (claim.support or 0.0) >= 0.5) == (is_supported, is_supported)


def test_what_is_a_fragment() -> None:
    """A few words, one of them with content, without a verb."""
    fragments = ("Thirty days.", "George II", "The old harbour in Bern", "42")
    others = ("It takes thirty days.", "The", "", "Tea, rum and milk", "one two three four five six seven", "x" * 1000)
    others += ("They live in Bern.", "It's green.", "Yes, in Bern", "五日以内")
    assert [is_fragment(text) for text in (*fragments, *others)] == [True] * 4 + [False] * 10


def test_other_negations_deny_nothing_that_is_said() -> None:
    """Neither is the contrary of the other."""
    for claim, sentence in (
        ("He was found guilty.", "The jury decides whether he was guilty or not guilty."),
        ("The bank gets no further help.", "The owner ruled out further help for the bank."),
        ("Returns are no longer possible after 30 days.", "Returns are possible for 30 days."),
        ("Crops did not arrive in Europe until 1500.", "Crops arrived in Europe in 1500."),
    ):
        assert (reverses(claim, sentence), reverses(sentence, claim)) == (False, False), claim


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
def test_half_of_a_question_is_not_fully_addressed(question: str, answer: str, address: Address) -> None:
    """Whether the other half stands in a context of its own or not."""
    for contexts in ((HOURS, PRICE), (f"{HOURS} {PRICE}",)):
        assert read_by(LEXICAL, answer, *contexts, question=question).address is address


@pytest.mark.parametrize(
    ("answer", "context", "question", "faithfulness"),
    [
        ("Yes.", FREE, "Is shipping free?", 1.0),
        ("No", "Shipping is not free.", "Is shipping free?", 1.0),
        ("Yes", "Shipping is not free.", "Is shipping free?", None),
        ("No.", FREE, "Is it free?", None),
        ("Yes.", "Lions sleep.", "Is shipping free?", 0.0),
        ("No.\nThe shipping of orders above 50 euros is free.", FREE, "Is shipping free?", 1.0),
        ("Yes.", FREE, "Is shipping free for every order?", None),
        ("Yes.", "Shipping is possible.", "Is shipping impossible?", None),
        ("No.", "Shipping is unavailable.", "Is shipping available?", None),
        ("Yes.", "Shipping is included.", "Is shipping included?", 1.0),
        ("Yes.", FREE, "Is shipping free for orders above 50 euros?", 1.0),
    ],
)
def test_a_bare_answer_states_its_question(
    answer: str, context: str, question: str, faithfulness: float | None
) -> None:
    """Words decide it where the closest sentence affirms or denies as the answer does; other claims stay claims."""
    evidence = read_by(LEXICAL, answer, context, question=question)
    assert faithfulness_of(answer, context, question=question) == faithfulness
    if faithfulness is None:
        assert evidence.unread is UnreadReason.SHORT_ANSWER
        assert why_unknown(evidence, Quantity.FAITHFULNESS) is UnknownReason.SHORT_ANSWER
