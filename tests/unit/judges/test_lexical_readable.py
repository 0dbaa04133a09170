"""What the embedded judges read as English, and what of it is unknown with a reason: a bare yes or no."""

from __future__ import annotations

import pytest

from ragwatch.core.evidence import Evidence
from ragwatch.core.sample import Context, Sample
from ragwatch.core.scores import score_all, why_unknown
from ragwatch.judges.claims.claims import claims_of
from ragwatch.judges.lexical.readable import readable
from ragwatch.judges.lexical.reader import Thresholds, read
from ragwatch.judges.lexical.tables import shipped
from ragwatch.model.quantities import Quantity
from ragwatch.model.reasons import UnknownReason

FREE = "Shipping is free for orders above 50 euros."
ENGLISH = "Refunds take five days, and the shipping of the order is free."


def evidence(answer: str, *contexts: str, question: str | None = None) -> Evidence:
    """What the lexical judge reads."""
    sample = Sample("1", question, tuple(map(Context, contexts)), answer)
    claims, unread = readable(claims_of(answer, question), sample)
    return read(sample, claims, shipped(), Thresholds(), unread=unread)


@pytest.mark.parametrize(
    "answer",
    [
        ENGLISH,
        "Bern",
        "Los Angeles and San Diego are in California.",
        "Die Welt and Der Spiegel, two German papers, are in Berlin.",
        "Café de Flore, Jardin du Luxembourg",
        "pip install ragwatch",
        "42",
        "",
    ],
)
def test_english_names_and_code_are_read(answer: str) -> None:
    """Names of other languages, code and numbers do not make a text foreign."""
    assert evidence(answer, ENGLISH).unread is None


def test_a_bare_no_is_not_supported_by_the_words_of_its_question() -> None:
    """Beside a sentence that speaks of it and does not deny it, the support of "No." is unknown."""
    unknown = evidence("No.", FREE, question="Is it free?")
    assert score_all(unknown)[Quantity.FAITHFULNESS] is None
    assert why_unknown(unknown, Quantity.FAITHFULNESS) is UnknownReason.SHORT_ANSWER


@pytest.mark.parametrize(
    ("answer", "context", "faithfulness"),
    [
        ("Yes.", FREE, 1.0),
        ("No", "Shipping is not free.", 1.0),
        ("Yes", "Shipping is not free.", None),
        ("Yes.", "Lions sleep.", 0.0),
        ("No.\nThe shipping of orders above 50 euros is free.", FREE, 1.0),
    ],
)
def test_a_bare_answer_is_the_statement_that_it_makes_of_its_question(
    answer: str, context: str, faithfulness: float | None
) -> None:
    """Words decide it where the closest sentence affirms or denies as the answer does; other claims stay claims."""
    scores = score_all(evidence(answer, context, question="Is shipping free?"))
    assert scores[Quantity.FAITHFULNESS] == faithfulness
