"""Preference of judges for long answers: the rank correlation within equal labels, and padded answers."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from support.draws import draws
from support.kit import a_judge_context, a_sample

from ragwatch.core.labels.agreement import LengthPreference, LengthScore, TooFewLabels, length_preference
from ragwatch.core.scores import score_all
from ragwatch.core.self_tests import PADDING, known_bad, padded, scores_higher
from ragwatch.judges.lexical import judge as lexical
from ragwatch.model.quantities import Quantity


def found(rows: list[LengthScore], minimum: int = 4) -> LengthPreference:
    """The preference of a judge, of which there must be enough labels."""
    result = length_preference(rows, minimum=minimum)
    assert isinstance(result, LengthPreference)
    return result


@settings(max_examples=draws(25), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 9)), min_size=6, max_size=40))
def test_one_label_gives_spearmans_correlation(pairs: list[tuple[int, int]]) -> None:
    """With equal labels it is Spearman's rho, ties included, as scipy computes it, inside its interval."""
    rows = [LengthScore(score / 6, 1.0, chars) for score, chars in pairs]
    if len({score for score, _ in pairs}) < 2 or len({chars for _, chars in pairs}) < 2:
        assert isinstance(length_preference(rows, minimum=4), TooFewLabels)
        return
    correlation = found(rows).correlation
    assert correlation.value == pytest.approx(spearmanr(*zip(*pairs, strict=True)).statistic, abs=1e-9)
    assert -1.0 <= correlation.low <= correlation.value + 1e-9
    assert correlation.value - 1e-9 <= correlation.high <= 1.0


def test_what_people_see_as_better_is_no_preference() -> None:
    """Long answers that people score higher too leave no correlation: it is taken at equal label."""
    random = Random(5)
    rows = [
        LengthScore(
            min(1.0, max(0.0, good + random.gauss(0.0, 0.1))), good, int(100 + 400 * good + random.random() * 90)
        )
        for good in (0.0, 0.5, 1.0)
        for _ in range(60)
    ]
    assert spearmanr([row.judge for row in rows], [row.chars for row in rows]).statistic > 0.7
    result = found(rows)
    assert (result.strata, result.answers) == (3, 180)
    assert abs(result.correlation.value) < 0.2
    assert not result.matters


@pytest.mark.parametrize(("sign", "matters"), [(1.0, True), (-1.0, True), (0.0, False)])
def test_a_preference_is_reported_in_either_direction(sign: float, matters: bool) -> None:  # noqa: FBT001
    """A judge that adds or takes score by length is named; one that scores at random is not."""
    random = Random(7)
    rows = [
        LengthScore(sign * chars / 500 + random.random() / 2, 1.0, chars)
        for chars in [random.randrange(10, 500) for _ in range(80)]
    ]
    assert found(rows).matters is matters


def test_equal_scores_say_nothing() -> None:
    """A label at which the judge gave one score, or answers have one length, adds no answer to the figure."""
    rows = [LengthScore(1.0, 1.0, chars) for chars in range(40)] + [
        LengthScore(chars / 9, 0.0, 7) for chars in range(9)
    ]
    assert length_preference(rows) == TooFewLabels(0, 30)
    assert length_preference([]) == TooFewLabels(0, 30)


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


def test_the_embedded_judge_scores_no_padded_answer_higher() -> None:
    """Neither bad answers nor good ones get a higher score at three times the length."""
    read = lexical.build(lexical.Options(), name="mine", context=a_judge_context()).evidence
    for seed in range(10):
        for sample in (a_sample(), known_bad(a_sample(), str(seed))):
            short, long = (score_all(read(one)) for one in (sample, padded(sample, str(seed))))
            assert scores_higher(short, long) is False
