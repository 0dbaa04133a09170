"""String similarity for canaries that expect texts."""

from __future__ import annotations

import pytest
from support.canaries import a_canary, a_report, a_text

from ragwatch.probes.similarity import MAX_CHARS, SimilarityMeasure, similarity
from ragwatch.statistics.canary.definition import Hit, Retrieved
from ragwatch.statistics.ranking import context_precision, recall_at

EXPECTED = "Refunds are paid within fourteen days of the request."
CUT = f"Chapter three. {EXPECTED} Ask support for help."


@pytest.mark.parametrize("measure", SimilarityMeasure)
def test_laws(measure: SimilarityMeasure) -> None:
    """1 for the same text whatever its case and white space, 0 for an empty one, in between else, and symmetric."""
    similar = similarity(measure)
    assert similar(EXPECTED, f"  {EXPECTED.upper()}\n") == 1.0
    assert similar(EXPECTED, "") == similar("", "") == 0.0
    assert 0.0 <= similar(EXPECTED, "Cats sleep.") < 0.5
    assert similar(EXPECTED, CUT) == pytest.approx(similar(CUT, EXPECTED))


def test_levenshtein_by_hand() -> None:
    """Kitten and sitting: three edits in seven letters."""
    assert similarity()("kitten", "sitting") == pytest.approx(4 / 7)


def test_what_each_measure_sees() -> None:
    """A passage cut elsewhere is the same to `containment`, other word order to `tokens`, neither to `levenshtein`."""
    swapped = "of the request. within fourteen days Refunds are paid"
    values = {
        measure: (similarity(measure)(EXPECTED, CUT), similarity(measure)(EXPECTED, swapped))
        for measure in SimilarityMeasure
    }
    assert values[SimilarityMeasure.CONTAINMENT][0] == values[SimilarityMeasure.TOKENS][1] == 1.0
    assert values[SimilarityMeasure.CONTAINMENT][1] < 0.8
    assert max(values[SimilarityMeasure.LEVENSHTEIN]) < 0.8


def test_containment_by_hand() -> None:
    """Of the runs `a b c` and `b c d`, one is in the longer text; texts of one or two words are compared whole."""
    similar = similarity(SimilarityMeasure.CONTAINMENT)
    assert similar("a b c d", "x a b c y") == 0.5
    assert (similar("a b", "x a b y"), similar("a b", "b a x"), similar("a", "b a")) == (1.0, 0.0, 1.0)


@pytest.mark.parametrize("measure", SimilarityMeasure)
def test_only_so_much_of_a_text_is_looked_at(measure: SimilarityMeasure) -> None:
    """A reply of megabytes must not hold up the loop: what differs behind the limit is not seen."""
    long = "word " * (MAX_CHARS // 5)
    assert similarity(measure)(long + "one " * 500_000, long + "other " * 500_000) == 1.0


def test_precision_and_recall_without_an_llm() -> None:
    """Two of three passages say what was expected, first and third; one expected text is missing."""
    passages = [EXPECTED, "Our office is in Lisbon.", "Refunds need the order's number"]
    canary = a_canary(*map(a_text, (EXPECTED, "Refunds need the order number.", "Gift cards are not refunded.")))
    retrieved = Retrieved(tuple(Hit(None, passage) for passage in passages))
    ranking = a_report(canary, retrieved, similar=similarity(), tau=0.6).ranking
    assert ranking is not None
    assert recall_at(ranking, 3) == pytest.approx(2 / 3)
    assert context_precision(ranking) == pytest.approx((1 + 2 / 3) / 2)
