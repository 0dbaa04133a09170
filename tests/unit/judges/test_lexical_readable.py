"""What the embedded judges cannot read is unknown, with a reason: other languages, and a bare yes or no."""

from __future__ import annotations

import pytest

from ragwatch.core.evidence import Evidence
from ragwatch.core.sample import Context, Sample
from ragwatch.core.scores import score_all, why_unknown
from ragwatch.judges.claims.claims import claims_of
from ragwatch.judges.lexical.language import language_of
from ragwatch.judges.lexical.readable import readable
from ragwatch.judges.lexical.reader import Thresholds, read
from ragwatch.judges.lexical.tables import shipped
from ragwatch.model.quantities import Quantity
from ragwatch.model.reasons import UnknownReason

FREE = "Shipping is free for orders above 50 euros."
LANGUAGES = {
    "de": "Die Erstattung dauert fünf Tage, und der Versand ist kostenlos.",
    "fr": "Le remboursement prend cinq jours et la livraison est gratuite.",
    "es": "El reembolso tarda cinco días y el envío es gratuito.",
    "it": "Il rimborso richiede cinque giorni e la spedizione è gratuita.",
    "pt": "O reembolso demora cinco dias e o envio não tem custos.",
    "nl": "De terugbetaling duurt vijf dagen en het verzenden is gratis.",
    "pl": "Zwrot pieniędzy trwa pięć dni, a wysyłka jest bezpłatna.",
    "ru": "Возврат занимает пять дней, и доставка бесплатная.",
    "uk": "Повернення коштів займає п'ять днів і є безкоштовним.",
    "ar": "يستغرق استرداد الأموال خمسة أيام.",
    "hi": "धनवापसी में पाँच दिन लगते हैं।",
    "th": "การคืนเงินใช้เวลาห้าวัน",
    "ja": "返金には5日かかります。",
    "zh": "退款需要五天。",
    "ko": "환불에는 5일이 걸립니다.",
}
ENGLISH = "Refunds take five days, and the shipping of the order is free."


def evidence(answer: str, *contexts: str, question: str | None = None) -> Evidence:
    """What the lexical judge reads."""
    sample = Sample("1", question, tuple(map(Context, contexts)), answer)
    claims, unread = readable(claims_of(answer, question), sample)
    return read(sample, claims, shipped(), Thresholds(), unread=unread)


@pytest.mark.parametrize(("language", "text"), LANGUAGES.items())
def test_other_languages_are_unknown_and_never_zero(language: str, text: str) -> None:
    """Beside English contexts, beside its own, and with an English answer: every score is unknown, and says why."""
    assert language_of(text) == language
    for answer, context in ((text, ENGLISH), (text, text), (ENGLISH, text)):
        read_evidence = evidence(answer, context, question="How long?")
        assert set(score_all(read_evidence).values()) == {None}
        assert why_unknown(read_evidence, Quantity.FAITHFULNESS) is UnknownReason.LANGUAGE
        assert why_unknown(read_evidence, Quantity.CONTEXT_PRECISION) is UnknownReason.LANGUAGE


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
