"""Rogan-Gladen: the textbook value, an interval that covers, and refusals."""

from __future__ import annotations

import random

import pytest

from ragwatch.core.estimators.rogan_gladen import ErrorRates, correct


def test_a_perfect_judge_needs_no_correction() -> None:
    """With sensitivity and specificity of 1 the value is the judge's rate, and the interval stays honest."""
    corrected = correct(0.3, 1e9, ErrorRates(1000, 1000, 1000, 1000))
    assert corrected is not None
    assert corrected[0] == pytest.approx(0.3)
    assert 0.0 < corrected[2] - corrected[1] < 0.02


@pytest.mark.uncounted
@pytest.mark.parametrize("rate", [0.05, 0.2, 0.5])
def test_covers(rate: float) -> None:
    """A 95 % interval holds the true rate in at least 93 % of 1,000 runs, labels and verdicts both redrawn."""
    rng, covered = random.Random(11), 0
    for _ in range(1000):
        hits = sum(rng.random() < 0.9 for _ in range(100))
        rejections = sum(rng.random() < 0.85 for _ in range(100))
        said = sum(rng.random() < (0.9 if rng.random() < rate else 0.15) for _ in range(400))
        corrected = correct(said / 400, 400, ErrorRates(hits, 100, rejections, 100))
        assert corrected is not None
        covered += corrected[1] <= rate <= corrected[2]
    assert covered >= 930


@pytest.mark.parametrize(
    ("n_eff", "known"),
    [
        (100, ErrorRates(0, 0, 5, 5)),
        (100, ErrorRates(5, 5, 0, 0)),
        (0, ErrorRates(5, 5, 5, 5)),
        (100, ErrorRates(2, 10, 8, 10)),
        (100, ErrorRates(1, 1, 1, 5)),
    ],
)
def test_refuses(n_eff: float, known: ErrorRates) -> None:
    """Without labels of both kinds, without verdicts, or with a judge no better than chance nothing is concluded."""
    assert correct(0.5, n_eff, known) is None


def test_shrinking_may_take_the_last_evidence() -> None:
    """A judge better than chance only by a hair on few labels is refused after shrinkage, or gives a wide interval."""
    corrected = correct(0.5, 100, ErrorRates(2, 3, 2, 5))
    assert corrected is None or corrected[2] - corrected[1] > 0.9


def test_ends() -> None:
    """Rates that correction carries beyond 0 or 1 stay there, and the interval holds the value."""
    for rate in (0.0, 1.0):
        corrected = correct(rate, 200, ErrorRates(80, 100, 90, 100))
        assert corrected is not None
        value, low, high = corrected
        assert value == rate
        assert 0.0 <= low <= value <= high <= 1.0
