"""Levels hold the truth on families that the prior has not seen: one labelled set left out at a time.

Prints the table of docs/statistics.md. The judge's answers are drawn from the rates that were measured on a family.
"""

from collections import defaultdict
from collections.abc import Sequence
from math import sqrt
from random import Random
from statistics import fmean

import pytest

from ragwatch.judges.error_rates import Family, families
from ragwatch.statistics.estimators.interval import wilson
from ragwatch.statistics.estimators.level import LabelCounts, Level, level

ANSWERS, RUNS = 500, 8
SHARES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4)
Answer = tuple[bool, bool]
"""Whether people call it good, and whether the judge does."""
FAMILIES = families("lexical", "faithfulness")

pytestmark = pytest.mark.slow


def drawn(rng: Random, family: Family, share: float) -> list[Answer]:
    """Answers of a service like this family: whether people call each good, and whether the judge does."""
    goods = [index >= round(ANSWERS * share) for index in range(ANSWERS)]
    rng.shuffle(goods)
    rates = family.rates
    return [(good, rng.random() < rates[0 if good else 1]) for good in goods]


def labelled(rng: Random, answers: Sequence[Answer], number: int) -> list[Answer]:
    """Answers that get a label: two fifths by chance, the others where these say that labels tell most (Neyman)."""
    order = rng.sample(answers, len(answers))
    first, rest = order[: number * 2 // 5], order[number * 2 // 5 :]
    spread = {}
    for says, prior in ((True, 0.1), (False, 1 / 3)):
        bad = (sum(not good for good, own in first if own is says) + 3 * prior) / (
            sum(own is says for _, own in first) + 3
        )
        spread[says] = sum(own is says for _, own in answers) * sqrt(bad * (1 - bad))
    wanted = round(number * spread[True] / (spread[True] + spread[False])) - sum(own for _, own in first)
    yes, no = ([one for one in rest if one[1] is says] for says in (True, False))
    more = number - len(first)
    take = max(more - len(no), min(max(0, wanted), more, len(yes)))
    return [*first, *yes[:take], *no[: more - take]]


def levelled(rng: Random, family: Family, share: float, number: int) -> Level:
    """The level of one such service."""
    answers = drawn(rng, family, share)
    others = tuple(other.rates for other in FAMILIES if other.source != family.source)
    return level_of(others, answers, labelled(rng, answers, number))


def level_of(known: tuple[tuple[float, float], ...], answers: Sequence[Answer], own: Sequence[Answer]) -> Level:
    """The level of answers of which some have a label."""
    yes = sum(says for _, says in answers)
    counts = LabelCounts.of((float(good), says, 1.0) for good, says in own)
    return level(known, yes, len(answers) - yes, counts, count=len(own))


@pytest.mark.parametrize(
    ("number", "coverage", "worst", "error", "width"),
    [(0, 0.90, 0.0, 1, 1), (20, 0.93, 0.0, 1, 1), (50, 0.93, 0.80, 0.025, 0.06), (200, 0.93, 0.80, 0.012, 0.035)],
)
def test_the_interval_holds_what_people_say(
    number: int, coverage: float, worst: float, error: float, width: float
) -> None:
    """Over families and true shares: coverage, coverage in the worst family, error of the value, half-width at 5 %."""
    rng = Random(number)
    held: dict[str, list[bool]] = defaultdict(list)
    errors, widths, at_five = [], [], []
    for family in FAMILIES:
        for share in SHARES:
            for _ in range(RUNS):
                found = levelled(rng, family, share, number)
                held[family.name].append(found.low <= 1.0 - share <= found.high)
                errors.append(abs(found.value - 1.0 + share))
                widths.append((found.high - found.low) / 2)
                if share == 0.05:
                    at_five.append(widths[-1])
    shares = {name: fmean(inside) for name, inside in held.items()}
    least = min(shares, key=shares.__getitem__)
    print(
        f"\n{number} labels: coverage {fmean(shares.values()):.3f}, least {shares[least]:.2f} ({least}), half-width"
        f" {fmean(widths):.3f}, at 5 % bad {fmean(at_five):.3f}, mean error {fmean(errors):.4f}"
    )
    assert fmean(shares.values()) >= coverage
    assert shares[least] >= worst
    assert fmean(errors) <= error
    assert fmean(at_five) <= width


def test_no_wider_than_labels_alone() -> None:
    """With 50 and 200 labels drawn alike, it is at most 5 % wider than Wilson's interval of the labels."""
    rng = Random(1)
    for number in (50, 200):
        ratios = []
        for family in FAMILIES:
            for share in SHARES:
                answers = drawn(rng, family, share)
                own = answers[:number]
                others = tuple(other.rates for other in FAMILIES if other.source != family.source)
                found = level_of(others, answers, own)
                low, high = wilson(sum(good for good, _ in own) / number, number, 1.96)
                ratios.append((found.high - found.low) / (high - low))
        print(f"\n{number} labels: width beside that of labels alone {fmean(ratios):.2f}, greatest {max(ratios):.2f}")
        assert fmean(ratios) <= 1.0
        assert max(ratios) <= 1.05


@pytest.mark.parametrize("rates", [(0.6, 0.6), (0.5, 0.9), (0.99, 0.02)])
def test_judges_like_no_family(rates: tuple[float, float]) -> None:
    """A judge that knows nothing, one mostly wrong, one nearly perfect: labels carry the level."""
    rng, known = Random(2), tuple(family.rates for family in FAMILIES)
    stranger = Family("stranger", round(1000 * rates[0]), 1000, round(1000 * rates[1]), 1000)
    held: dict[int, list[bool]] = defaultdict(list)
    for number in (0, 50, 200):
        for share in SHARES:
            for _ in range(RUNS):
                answers = drawn(rng, stranger, share)
                found = level_of(known, answers, labelled(rng, answers, number))
                held[number].append(found.low <= 1.0 - share <= found.high)
    print(f"\nrates {rates}: " + ", ".join(f"{number} labels {fmean(inside):.2f}" for number, inside in held.items()))
    assert fmean(held[50]) >= 0.85
    assert fmean(held[200]) >= 0.9
