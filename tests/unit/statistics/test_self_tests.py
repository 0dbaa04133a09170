"""Self-tests of judges: a known-bad sample is bad, and repeats are compared score by score."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kit import a_judge_context, a_sample, an_evidence

from ragwatch.judges.lexical import judge as lexical
from ragwatch.model.quantities import Quantity
from ragwatch.statistics.scores import score_all
from ragwatch.statistics.self_tests import PADDING, fooled, known_bad, padded, repeats, scores_higher


@given(st.integers())
def test_the_claim_of_a_known_bad_sample_is_in_no_context(seed: int) -> None:
    """Exactly one context differs, by a prompt injection; no context says what the answer says."""
    sample = a_sample(contexts=("Cats purr.", "Dogs bark.", "Hens cluck."))
    bad = known_bad(sample, str(seed))
    changed = [new.text for old, new in zip(sample.contexts, bad.contexts, strict=True) if new != old]
    assert len(changed) == 1
    assert "support" in changed[0]
    claimed, said = (
        set(re.findall(r"[A-Za-z]{4,}", text)) for text in (bad.answer, "Cats purr. Dogs bark. Hens cluck.")
    )
    assert 1 <= len(claimed & said) <= 2  # what it is about; the rest stands in no context
    assert len(claimed - said) >= 4
    assert (bad.id, bad.question) == (sample.id, sample.question)


def test_contexts_without_words_are_no_matter() -> None:
    """Then the claim is about something of ours; without any context there is nothing to be fooled by."""
    with pytest.raises(ValueError, match="context"):
        known_bad(a_sample(contexts=()), "1")
    bad = known_bad(a_sample(contexts=("1 2 3", "")), "1")
    assert "the seventh pump" in bad.answer
    assert known_bad(a_sample(contexts=("", "the tickets")), "1").answer.count("tickets") == 1


def test_the_embedded_judge_is_not_fooled() -> None:
    """It has no model to inject a prompt into: it accepts no bad answer, and scores none higher for its length."""
    read = lexical.build(lexical.Options(), name="mine", context=a_judge_context()).evidence
    assert not any(fooled(read(known_bad(a_sample(), str(seed)))) for seed in range(50))
    for seed in range(10):
        for sample in (a_sample(), known_bad(a_sample(), str(seed))):
            short, long = (score_all(read(one)) for one in (sample, padded(sample, str(seed))))
            assert scores_higher(short, long) is False


def test_fooled_means_supported() -> None:
    """Contradicted and not in the context are both right answers, for any fact of the claim; so is no claim."""
    rows = ([(1, 0), (0, 1)], [(1, 0), (0, 0)], [], [(0, 0)])
    assert [fooled(an_evidence(*each)) for each in rows] == [True, False, False, False]


def test_repeats_compare_what_either_reading_knows() -> None:
    """Alike only where both have the same score; two unknowns are left out."""
    quantities = list(Quantity)[:4]
    first = dict(zip(quantities, (0.5, 1.0, None, None), strict=True))
    second = dict(zip(quantities, (0.5, 0.75, 0.25, None), strict=True))
    assert repeats(first, second) == {quantities[0]: True, quantities[1]: False, quantities[2]: False}


@given(st.text(min_size=1, max_size=300), st.integers(0, 99))
def test_a_padded_answer_begins_with_the_answer(answer: str, seed: int) -> None:
    """It has at least three times the length; everything else is as it was, and equal seeds pad alike."""
    sample = a_sample(answer=answer)
    longer = padded(sample, str(seed))
    assert longer.answer.startswith(f"{answer} ")
    assert len(longer.answer) >= PADDING * len(answer)
    assert (longer.contexts, longer.question) == (sample.contexts, sample.question)
    assert longer == padded(sample, str(seed))


def test_only_known_scores_are_compared() -> None:
    """Relevancy counts like faithfulness; other quantities and unknown scores do not."""
    faithful, relevant, use = Quantity.FAITHFULNESS, Quantity.ANSWER_RELEVANCY, Quantity.CONTEXT_USE
    assert scores_higher({faithful: 0.0, relevant: 0.0}, {faithful: 0.0, relevant: 0.5})
    assert scores_higher({faithful: 0.5, use: 0.0}, {faithful: 0.25, use: 1.0}) is False
    assert scores_higher({faithful: None, use: 0.0}, {faithful: 1.0, use: 1.0}) is None
