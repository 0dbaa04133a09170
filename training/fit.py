"""Fit: a logistic regression whose coefficients may not turn their sign, and how well a score ranks."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import rankdata

Vector = NDArray[np.float64]


def logistic(
    features: Vector, positive: NDArray[np.bool_], weight: Vector, signs: Sequence[int], strength: float
) -> tuple[float, Vector]:
    """Bias and raw-scale weights of L2-penalised logistic regression (C = `strength`), each weight of its sign.

    Minimises C * sum_i w_i log(1 + exp(-y_i z_i)) + |b|^2 / 2 over standardised features, by L-BFGS-B with bounds.
    """
    mean, scale = features.mean(axis=0), features.std(axis=0) + 1e-9
    scaled, side = (features - mean) / scale, np.where(positive, 1.0, -1.0)

    def loss(point: Vector) -> tuple[float, Vector]:
        margin = side * (scaled @ point[1:] + point[0])
        pull = -(weight * side) / (1.0 + np.exp(margin))
        value = strength * (weight * np.logaddexp(0.0, -margin)).sum() + 0.5 * point[1:] @ point[1:]
        return float(value), np.concatenate(([strength * pull.sum()], strength * scaled.T @ pull + point[1:]))

    bounds = [(None, None), *((0, None) if sign > 0 else (None, 0) for sign in signs)]
    start = np.zeros(features.shape[1] + 1)
    best = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-14})
    raw = best.x[1:] / scale
    return float(best.x[0] - raw @ mean), raw


def auroc(positive: Sequence[bool] | NDArray[np.bool_], score: Sequence[float] | Vector) -> float:
    """Probability that a positive scores above a negative, ties by half."""
    flags = np.asarray(positive, dtype=bool)
    ranks = rankdata(np.asarray(score, dtype=float))
    ones, zeros = int(flags.sum()), int((~flags).sum())
    return float((ranks[flags].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def interval(
    positive: Sequence[bool], score: Sequence[float], rounds: int = 1000, seed: int = 7
) -> tuple[float, float]:
    """95 % percentile bootstrap interval of `auroc`, over rows."""
    flags, scores = np.asarray(positive, dtype=bool), np.asarray(score, dtype=float)
    rng = np.random.default_rng(seed)
    values = []
    for _ in range(rounds):
        pick = rng.integers(0, len(flags), len(flags))
        if 0 < flags[pick].sum() < len(flags):
            values.append(auroc(flags[pick].tolist(), scores[pick].tolist()))
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)
