"""How many labels would take a threshold out of the interval of a level."""

from __future__ import annotations

import pytest

from ragwatch.commands.estimate import known_error
from ragwatch.core.quantity_level import LevelCounts, PersonsLabel, ScoredAnswer
from ragwatch.model.quantities import Quantity


def counted(
    yes: int, no: int, *, good: int = 0, bad: int = 0, quantity: Quantity = Quantity.FAITHFULNESS
) -> LevelCounts:
    """Answers that the judge calls good, then bad, and labels of some of them, evenly spaced and in the same order."""
    best = 0.0 if quantity is Quantity.TOP_RANKED_IGNORED else 1.0
    answers = [ScoredAnswer(str(number), best if number < yes else 1.0 - best) for number in range(yes + no)]
    labels = {
        str(number * (yes + no) // (good + bad)): PersonsLabel({quantity: best if number < good else 1.0 - best}, 1.0)
        for number in range(good + bad)
    }
    counts = known_error("lexical", "lexical-1", labels).counts(quantity, answers)
    assert counts is not None
    return counts


@pytest.mark.parametrize(("german", "known"), [(5, True), (6, False)])
def test_families_of_english_say_nothing_of_other_languages(german: int, known: bool) -> None:  # noqa: FBT001
    """Of a hundred answers, a few in a language without a measured accuracy do not matter."""
    answers = [ScoredAnswer(str(number), 1.0, language="de" if number < german else None) for number in range(100)]
    assert (known_error("lexical", "lexical-1", {}).counts(Quantity.FAITHFULNESS, answers) is not None) is known


@pytest.mark.parametrize("threshold", [0.7, 0.85])
def test_the_further_labels_do_it(threshold: float) -> None:
    """With as many labels as it says, where people call as many good as the level expects, the threshold is outside."""
    counts = counted(480, 20)
    assert counts.level().low < threshold < counts.level().high
    number = counts.further_labels(threshold)
    assert number is not None
    assert number in range(10, 100, 10)
    good = round(number * counts.level().value)
    labelled = counted(480, 20, good=good, bad=number - good).level()
    assert labelled.low > threshold


def test_a_threshold_at_the_level_needs_too_many() -> None:
    """After a hundred labels a threshold at the level itself is out of reach; one far away needs few."""
    counts = counted(450, 50, good=90, bad=10)
    assert counts.further_labels(counts.level().value) is None
    assert counts.further_labels(0.5) == 10


def test_an_upper_limit_is_the_mirror_of_a_lower_one() -> None:
    """Shares that should be low need as many labels as their complement, from a prior that expects nothing."""
    low = counted(450, 50, good=18, bad=2, quantity=Quantity.TOP_RANKED_IGNORED)
    high = counted(450, 50, good=18, bad=2, quantity=Quantity.CONTEXT_USE)
    assert low.level().high == pytest.approx(1.0 - high.level().low)
    assert low.further_labels(0.2) == high.further_labels(0.8)
