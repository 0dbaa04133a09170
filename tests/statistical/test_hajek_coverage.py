"""The interval of the Hajek estimator covers the truth as often as it says, at unequal probabilities.

The hard case of the field: half of the traffic is sampled at 0.1 and half at 1, so few heavy rows carry the figure.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ragwatch.core.estimate import Addends
from ragwatch.core.estimators.hajek import estimate

RUNS = 1000
Scores = Callable[[np.random.Generator, int], np.ndarray]


def bernoulli(rate: float) -> Scores:
    """Scores that are 0 or 1."""
    return lambda rng, size: (rng.random(size) < rate).astype(float)


def claims(rate: float) -> Scores:
    """Supported claims / claims, with 2 to 8 claims an answer."""

    def draw(rng: np.random.Generator, size: int) -> np.ndarray:
        counts = rng.integers(2, 9, size)
        return rng.binomial(counts, rate) / counts

    return draw


def a_run(scores: Scores, size: int, rng: np.random.Generator, *, equal: bool) -> tuple[float, float]:
    """The interval of one run over `size` requests, of which the sampler keeps some."""
    x = scores(rng, size)
    p = np.full(size, 0.5) if equal else np.where(rng.random(size) < 0.5, 0.1, 1.0)
    kept = rng.random(size) < p
    x, w = x[kept], 1.0 / p[kept]
    sums = (w.sum(), (w * x).sum(), (w**2).sum(), (w**2 * x).sum(), (w**2 * x**2).sum())
    found = estimate(Addends(len(x), *map(float, sums)))
    assert found is not None
    return found.low, found.high


def coverage(scores: Scores, truth: float, size: int, *, equal: bool = False) -> float:
    """Share of runs whose interval holds the truth."""
    rng = np.random.default_rng(20240229)
    runs = [a_run(scores, size, rng, equal=equal) for _ in range(RUNS)]
    return sum(low <= truth <= high for low, high in runs) / RUNS


@pytest.mark.slow
@pytest.mark.parametrize("size", [500, 1000, 4000])
@pytest.mark.parametrize(
    ("scores", "truth"), [(bernoulli(0.9), 0.9), (claims(0.9), 0.9), (claims(0.7), 0.7), (bernoulli(0.5), 0.5)]
)
def test_coverage_is_what_it_says(scores: Scores, truth: float, size: int) -> None:
    """A 95 % interval covers in 92.5 to 97.5 % of 1,000 runs."""
    found = coverage(scores, truth, size)
    print(f"truth {truth}, {size} requests: covered {found:.3f}")
    assert 0.925 <= found <= 0.975


@pytest.mark.slow
@pytest.mark.parametrize("size", [100, 200, 500, 1000, 4000])
@pytest.mark.parametrize(
    ("scores", "truth"),
    [
        (bernoulli(0.99), 0.99),
        (bernoulli(0.98), 0.98),
        (bernoulli(0.02), 0.02),
        (claims(0.99), 0.99),
        (bernoulli(0.9), 0.9),
        (claims(0.9), 0.9),
    ],
)
def test_few_failures_and_few_scores_are_still_covered(scores: Scores, truth: float, size: int) -> None:
    """Where failures are rare or scores few the interval may be wide, but it does not miss: at least 90 %."""
    found = coverage(scores, truth, size)
    print(f"truth {truth}, {size} requests: covered {found:.3f}")
    assert found >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("size", [100, 1000])
@pytest.mark.parametrize(("scores", "truth"), [(bernoulli(0.9), 0.9), (claims(0.9), 0.9), (bernoulli(0.5), 0.5)])
def test_equal_probabilities(scores: Scores, truth: float, size: int) -> None:
    """With one probability for all it is Wilson's interval, which holds its level from 50 scores on."""
    found = coverage(scores, truth, size, equal=True)
    print(f"equal, truth {truth}, {size} requests: covered {found:.3f}")
    assert 0.925 <= found <= 0.985
