"""A number that stands in no context makes its claim unsupported; equal numbers in other forms are the same number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.core.sample import Context, Sample
from ragwatch.judges.claims.claims import claims_of
from ragwatch.judges.lexical.amounts import amounts
from ragwatch.judges.lexical.facts import MissingFacts, lowered
from ragwatch.judges.lexical.reader import Thresholds, read
from ragwatch.judges.lexical.stated_amounts import stated
from ragwatch.judges.lexical.tables import shipped

FOUNDED = "The company was founded in Bern in 1971 by Anna Keller."


def supports(answer: str, *contexts: str, question: str | None = None) -> list[bool]:
    """Whether each claim of an answer is supported."""
    sample = Sample("1", question, tuple(map(Context, contexts)), answer)
    evidence = read(sample, claims_of(answer, question), shipped(), Thresholds())
    return [claim.verdict == "supported" for claim in evidence.claims]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The bag weighs 5 kg.", "The bag weighs 5,000 g."),
        ("It has 3.5M users.", "It has 3,500,000 users."),
        ("It has 3.5 million users.", "It has 3,500,000 users."),
        ("The fair opens on 1 Jan 2024.", "The fair opens on 2024-01-01."),
        ("The fair opens on January 1, 2024.", "The fair opens on 2024-01-01."),
        ("It covers theft for nine years.", "It covers theft for 9 years."),
        ("Twenty-five people work there.", "25 people work there."),
        ("Two hundred people work there.", "200 people work there."),
        ("The fee is 20 percent.", "The fee is 20%."),
        ("The fee is €5.", "The fee is 5 euros."),
        ("It is the 3rd largest city.", "It is the third largest city."),
        ("It lasts 2 hours.", "It lasts 120 minutes."),
        ("The limit is 1.5 GB.", "The limit is 1500 MB."),
        ("It opens at 5 pm.", "It opens at 17:00."),
    ],
)
def test_equal_numbers_are_the_same_number(one: str, other: str) -> None:
    """Units, formats, dates and words for numbers: each form supports the other."""
    assert supports(one, other) == [True]
    assert supports(other, one) == [True]


@pytest.mark.parametrize(
    ("claim", "context"),
    [
        ("The bag weighs 6 kg.", "The bag weighs 5,000 g."),
        ("It has 4.5M users.", "It has 3,500,000 users."),
        ("The fair opens on 1 Feb 2024.", "The fair opens on 2024-01-01."),
        ("The fair opens on 1 January 2025.", "The fair opens on 1 January 2024."),
        ("It covers theft abroad for eight years.", "It covers theft abroad for nine years."),
        ("The fee for the whole year is 25 %.", "The fee for the whole year is 20 %."),
        ("The fee is 7 euros.", "The fee is 5 euros."),
        (FOUNDED.replace("1971", "1972"), FOUNDED),
        (FOUNDED.replace("Bern", "Zurich"), FOUNDED),
        (FOUNDED.replace("Anna", "Peter"), FOUNDED),
    ],
)
def test_one_wrong_fact_makes_a_claim_unsupported(claim: str, context: str) -> None:
    """However many of its other words are right; the true claim is supported."""
    assert supports(context, context) == [True]
    assert supports(claim, context) == [False]


@pytest.mark.parametrize(
    ("answer", "context", "question"),
    [
        ("1. Refunds take five days [1].", "Refunds take 5 days.", None),
        ("Step 2: refunds take five days (Passage 3).", "Refunds take 5 days.", None),
        (
            "The 40 euro plan has a term of thirty days.",
            "This plan has a term of 30 days.",
            "What of the 40 euro plan?",
        ),
        ("It was made in the 1970s.", "It was made in 1971.", None),
        ("It was built in the 20th century.", "It was built in 1971.", None),
    ],
)
def test_numbers_that_no_context_has_to_state(answer: str, context: str, question: str | None) -> None:
    """List numbers, citation marks, numbers of the question, decades and centuries raise no alarm."""
    assert supports(answer, context, question=question) == [True]


def test_counts_names_and_roundings_are_no_missing_numbers() -> None:
    """People count what is listed and round what is exact."""
    assert [amount.strict for amount in amounts("three colours, GPT-4, 1 of 2 parts")] == [False] * 4
    source = stated("3,482,113 people came, 487 of them by bus, from 1990 to 2002")
    claimed = amounts("3.5 million people, about 500 by bus, for 12 years")
    assert all(map(source.holds, claimed))
    assert not any(map(source.holds, amounts("3.6 million people, 600 by bus, for 13 years")))


@given(st.floats(0, 1), st.builds(MissingFacts, *[st.integers(0, 9)] * 4))
def test_a_missing_fact_never_raises_support(probability: float, missing: MissingFacts) -> None:
    """It stays a probability, is no higher than before, and is unsupported where a number is missing."""
    low = lowered(probability, missing)
    assert 0.0 <= low <= probability or missing == MissingFacts()
    assert not missing.numbers or low < 0.4


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
