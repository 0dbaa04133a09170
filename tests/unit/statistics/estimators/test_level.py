"""Levels: what labels do to them, what they become with many, and what they do not depend on."""

from random import Random

import pytest

from ragwatch.judges.error_rates import families
from ragwatch.model.quantities import Quantity
from ragwatch.offline.estimate import known_error
from ragwatch.statistics.estimators.corrected import correct
from ragwatch.statistics.estimators.level import LabelCounts, level
from ragwatch.statistics.estimators.ppi import PpiSums
from ragwatch.statistics.quantity_level import LevelCounts, PersonsLabel, ScoredAnswer

KNOWN = tuple(family.rates for family in families("lexical", "faithfulness"))


def answers(seed: int, number: int, bad: float, rates: tuple[float, float]) -> list[tuple[bool, bool]]:
    """Answers by whether people call them good, and whether the judge does."""
    rng = Random(seed)
    goods = [rng.random() >= bad for _ in range(number)]
    return [(good, rng.random() < rates[0 if good else 1]) for good in goods]


def counted(every: list[tuple[bool, bool]], number: int) -> tuple[float, float, LabelCounts, int]:
    """What `level` is given of answers, the first of which have labels."""
    yes, labelled = sum(says for _, says in every), every[:number]
    return yes, len(every) - yes, LabelCounts.of((float(good), says, 1.0) for good, says in labelled), len(labelled)


def test_labels_make_the_interval_smaller() -> None:
    """Without a label hardly anything is known; each more makes it smaller, and 50 call it calibrated."""
    every = answers(1, 500, 0.05, (0.9, 0.4))
    widths = []
    for number in (0, 20, 50, 200):
        yes, no, counts, count = counted(every, number)
        found = level(KNOWN, yes, no, counts, count=count)
        assert 0.0 <= found.low <= found.value <= found.high <= 1.0
        assert found.calibrated is (number >= 50)
        widths.append(found.high - found.low)
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 0.25
    assert widths[-1] < 0.09


@pytest.mark.parametrize("bad", [0.1, 0.3])
def test_with_many_labels_it_becomes_ppi(bad: float) -> None:
    """With 500 labels of 2,000 answers, ends are those of PPI++ within 5 % of its width and half a cell."""
    every = answers(2, 2000, bad, (0.92, 0.35))
    yes, no, counts, count = counted(every, 500)
    found = level(KNOWN, yes, no, counts, count=count)
    rows = [
        ([float(says), float(good)] if index < 500 else [float(says)], [1.0, 0.25][: 1 + (index < 500)])
        for index, (good, says) in enumerate(every)
    ]
    corrected = correct(PpiSums.of(2, rows)).estimate
    near = 0.05 * (corrected.high - corrected.low) + 0.004
    assert found.low == pytest.approx(corrected.low, abs=near)
    assert found.high == pytest.approx(corrected.high, abs=near)


def test_more_labels_of_what_the_judge_doubts_change_no_expectation() -> None:
    """Labels drawn more often where the judge says no: their number by what it says does not move the level."""
    seen = {True: 0.85 * 0.9 + 0.15 * 0.3, False: 0.85 * 0.1 + 0.15 * 0.7}
    wrong = {True: 0.15 * 0.3 / seen[True], False: 0.15 * 0.7 / seen[False]}
    levels = []
    for yes_labels, no_labels in ((80, 20), (40, 60)):
        counts = LabelCounts(
            yes_labels * (1 - wrong[True]),
            no_labels * (1 - wrong[False]),
            yes_labels * wrong[True],
            no_labels * wrong[False],
        )
        levels += [level(KNOWN, n * seen[True], n * seen[False], counts, count=100).value for n in (500, 2000, 50_000)]
    assert levels == pytest.approx([0.85] * 6, abs=0.02)


def test_weights_within_what_the_judge_says_the_same() -> None:
    """Labels with unequal probabilities count as their effective number, and their weighted mean is kept."""
    counts = LabelCounts.of([(1.0, True, 0.5)] * 10 + [(0.0, True, 0.1)] * 2)
    assert counts.good_yes / (counts.good_yes + counts.bad_yes) == pytest.approx(0.5)
    assert counts.good_yes + counts.bad_yes == pytest.approx(40**2 / (10 * 4 + 2 * 100))


def test_a_judge_of_which_nothing_is_known() -> None:
    """Without families a level without labels is as wide as ignorance, and no error; labels count the same."""
    nothing = level((), 450, 50, LabelCounts(), count=0)
    assert nothing.high - nothing.low > 0.5
    assert level((), 450, 50, LabelCounts(90, 2, 3, 5), count=100).low > 0.8


def test_levels_at_their_ends() -> None:
    """Where nothing says that some answer is bad an interval may contain 1; nothing is divided by zero.

    Families may agree by chance, and every answer of a population may have a label.
    """
    assert level(KNOWN, 480, 0, LabelCounts(20, 0, 0, 0), count=20).high == 1.0
    assert level([(0.9, 0.3)] * 5, 100, 10, LabelCounts(), count=0).high <= 1.0
    assert level(KNOWN, 46, 4, LabelCounts(45, 2, 1, 2), count=50).low > 0.7


def counts_of(
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


def test_the_further_labels_do_it() -> None:
    """With as many labels as it says, where people call as many good as the level expects, the threshold is outside."""
    counts, threshold = counts_of(480, 20), 0.86
    before, number = counts.level(), counts.further_labels(threshold)
    assert before.low < threshold < before.high
    assert number in range(10, 100, 10)
    good = round(number * before.value)
    labelled = counts_of(480, 20, good=good, bad=number - good).level()
    assert labelled.low > threshold


def test_a_threshold_at_the_level_needs_too_many() -> None:
    """After a hundred labels a threshold at the level itself is out of reach; one far away needs few."""
    counts = counts_of(450, 50, good=90, bad=10)
    assert counts.further_labels(counts.level().value) is None
    assert counts.further_labels(0.5) == 10


def test_an_upper_limit_is_the_mirror_of_a_lower_one() -> None:
    """Shares that should be low need as many labels as their complement, from a prior that expects nothing."""
    low = counts_of(450, 50, good=18, bad=2, quantity=Quantity.TOP_RANKED_IGNORED)
    high = counts_of(450, 50, good=18, bad=2, quantity=Quantity.CONTEXT_USE)
    assert low.level().high == pytest.approx(1.0 - high.level().low)
    assert low.further_labels(0.2) == high.further_labels(0.8)
