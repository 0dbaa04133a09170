"""Scores of answers for simulations: the distributions that judges give, drawn from a generator of numpy.

`mean` is one for all, or an array of one for each score.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mean = float | Floats
Size = int | tuple[int, ...]


def claims(rng: np.random.Generator, mean: Mean, size: Size) -> Floats:
    """Supported of 2 to 8 claims, alike within an answer: sd .22 at .90, .34 at .70."""
    counts = rng.integers(2, 9, size)
    return np.asarray(rng.binomial(counts, rng.beta(1.5 * mean, 1.5 * (1 - mean), size)) / counts)


def separate_claims(rng: np.random.Generator, mean: Mean, size: Size) -> Floats:
    """Supported of 2 to 8 claims, independent of each other: sd .15 at .90, .22 at .70."""
    counts = rng.integers(2, 9, size)
    return np.asarray(rng.binomial(counts, mean) / counts)


def bernoulli(rng: np.random.Generator, mean: Mean, size: Size) -> Floats:
    """Yes or no: sd .30 at .90."""
    return (rng.random(size) < mean).astype(float)


def beta(rng: np.random.Generator, mean: Mean, size: Size) -> Floats:
    """Smooth scores: sd .09 at .90."""
    return np.asarray(rng.beta(10 * mean, 10 * (1 - mean), size))
