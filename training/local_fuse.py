"""Fusion: what words and reader say of held-out claims -> weights, calibration tables and thresholds."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from fit import Vector, auroc, logistic
from local_pairs import CONTRADICTED, SUPPORTED, UNSUPPORTED, Pair
from local_train import Output
from numpy.typing import NDArray

from ragwatch.judges.local.artefact import NAMES as FUSED

NAMES = ("lexical", "s", "c", "t_max", "t_mean")
SUPPORT_SIGNS = (1, 1, -1, -1, -1)
AGAINST_SIGNS = (1, -1, 1, 1, 1)
"""Words in common speak for a contradiction rather than for a claim that nothing is said of."""
START = np.array((1.0, 0.5, -0.1, -0.2, -0.2))
STEPS = 1500
"""Steps of the climb."""
BINS = 24
BEYOND = 0.4
"""Beyond the outermost blocks the doubt that is left falls to this part of theirs, at the outermost claim."""
SURE = 0.015
"""No table comes nearer to 0 or 1 than this."""


class Heard(NamedTuple):
    """A pair and the five numbers that are fused."""

    pair: Pair
    x: tuple[float, ...]


def heard(pair: Pair, output: Output) -> Heard:
    """The numbers of `local.json`: lexical logit, s, c, greatest and mean token logit."""
    first, second, third = output.verdict
    s = first - float(np.logaddexp(second, third))
    c = second - float(np.logaddexp(first, third))
    return Heard(pair, (pair.lexical, s, c, output.most, output.mean))


def fitted(
    found: Sequence[Heard], positive: NDArray[np.bool_], shares: Mapping[str, float], signs: Sequence[int]
) -> dict[str, Any]:
    """Bias, weights and knots of one curve, the weights by logistic regression.

    Args:
        found: Claims that the reader was not trained on.
        positive: What the curve is the probability of.
        shares: Weight of each family as a whole.
        signs: Which way each number may speak.
    """
    weight = _weights(found, shares)
    bias, weights = logistic(np.array([one.x for one in found]), positive, weight, signs, 1.0)
    return _curve(found, positive, weight, bias, weights)


def _weights(found: Sequence[Heard], shares: Mapping[str, float]) -> Vector:
    """Weights of claims that give each family its share; their mean is 1."""
    counts = {name: sum(one.pair.family == name for one in found) for name in shares}
    weight = np.array([shares[one.pair.family] / counts[one.pair.family] for one in found])
    scaled: Vector = weight * len(found) / weight.sum()
    return scaled


def _curve(
    found: Sequence[Heard], positive: NDArray[np.bool_], weight: Vector, bias: float, weights: Vector
) -> dict[str, Any]:
    logits = np.array([one.x for one in found]) @ weights + bias
    return {
        "bias": round(bias, 6),
        "weights": dict.fromkeys(FUSED, 0.0)
        | {name: round(float(value), 6) for name, value in zip(NAMES, weights, strict=True)},
        "knots": knots(logits, positive, weight),
    }


class Ranking:
    """How well weights rank the rows of each family by their least claim.

    Args:
        found: Claims, and what words and reader say of them.
        shares: Say of each family.
    """

    def __init__(self, found: Sequence[Heard], shares: Mapping[str, float]) -> None:
        self._shares = shares
        self._families: dict[str, tuple[Vector, NDArray[np.intp], NDArray[np.bool_]]] = {}
        for name in shares:
            part = [one for one in found if one.pair.family == name]
            _, rows = np.unique([one.pair.row for one in part], return_inverse=True)
            bad = np.zeros(rows.max() + 1, dtype=bool)
            np.logical_or.at(bad, rows, [one.pair.verdict != SUPPORTED for one in part])
            self._families[name] = np.array([one.x for one in part]), rows, bad

    def of(self, weights: Vector) -> float:
        """Mean over the families of the area under the curve, by their shares."""
        total = 0.0
        for name, (x, rows, bad) in self._families.items():
            least = np.full(len(bad), np.inf)
            np.minimum.at(least, rows, x @ weights)
            total += self._shares[name] * auroc(bad, -least)
        return total / sum(self._shares.values())

    def climbed(self, start: Vector, signs: Sequence[int]) -> Vector:
        """The best weights that small seeded steps from `start` find; the first stays what it is."""
        rng = np.random.default_rng(STEPS)
        best, most = start, self.of(start)
        for step in range(STEPS):
            move = rng.normal(size=len(start)) * (rng.random(len(start)) < 0.5) * 0.25 * (1 - step / STEPS) * start[0]
            move[0] = 0.0
            fresh = np.where((best + move) * np.asarray(signs) < 0, 0.0, best + move)
            value = self.of(fresh)
            if value > most:
                best, most = fresh, value
        return best


def knots(logits: Vector, positive: NDArray[np.bool_], weight: Vector) -> list[list[float]]:
    """Isotonic regression over equal shares of the weight, as points of a rising line."""
    order = np.argsort(logits, kind="stable")
    share = np.cumsum(weight[order]) / weight.sum()
    blocks: list[list[float]] = []
    for number in range(BINS):
        part = order[(share > number / BINS) & (share <= (number + 1) / BINS)]
        if not len(part):
            continue
        mass = float(weight[part].sum())
        hits = float((weight[part] * positive[part]).sum())
        blocks.append([float((weight[part] * logits[part]).sum()), hits, mass])
        while len(blocks) > 1 and blocks[-2][1] / blocks[-2][2] >= blocks[-1][1] / blocks[-1][2]:
            last = blocks.pop()
            blocks[-1] = [one + other for one, other in zip(blocks[-1], last, strict=True)]
    points = [(total / mass, hits / mass) for total, hits, mass in blocks]
    lowest, highest = float(logits.min()), float(logits.max())
    # Half of an end block lies beyond its mean: level there, the worst of many bad answers would be told from no other.
    if lowest < points[0][0]:
        points.insert(0, (lowest, points[0][1] * BEYOND))
    if highest > points[-1][0]:
        points.append((highest, 1 - (1 - points[-1][1]) * BEYOND))
    return [[round(x, 4), round(min(1 - SURE, max(SURE, level)), 4)] for x, level in points]


def logit(curve: Mapping[str, Any], x: Sequence[float]) -> float:
    """Fused logit of one claim."""
    return float(curve["bias"]) + sum(float(curve["weights"][name]) * one for name, one in zip(NAMES, x, strict=True))


def probability(curve: Mapping[str, Any], x: Sequence[float]) -> float:
    """The table at the fused logit: straight lines between knots, level beyond them."""
    places, values = zip(*curve["knots"], strict=True)
    return float(np.interp(logit(curve, x), places, values))


def support_curve(found: Sequence[Heard], shares: Mapping[str, float]) -> dict[str, Any]:
    """Probability that a claim is supported: the weights that rank best, made into probabilities by the table.

    Logistic regression over claims ranks rows of every family but one worse, by up to .015.
    """
    kept = [one for one in found if one.pair.family in shares]
    positive = np.array([one.pair.verdict == SUPPORTED for one in kept])
    weight = _weights(kept, shares)
    weights = Ranking(kept, shares).climbed(START, SUPPORT_SIGNS)
    return _curve(kept, positive, weight, 0.0, weights)


def against_curve(found: Sequence[Heard], shares: Mapping[str, float]) -> dict[str, Any]:
    """Probability that a claim is contradicted; claims known only as unsupported are left out."""
    kept = [one for one in found if one.pair.family in shares and one.pair.verdict != UNSUPPORTED]
    return fitted(kept, np.array([one.pair.verdict == CONTRADICTED for one in kept]), shares, AGAINST_SIGNS)


def contradicted_from(
    found: Sequence[Heard], support: Mapping[str, Any], against: Mapping[str, Any], bar: float
) -> float:
    """Least threshold, .5 or more, at which at most a share `bar` of supported claims is called contradicted."""
    doubted = [
        probability(against, one.x)
        for one in found
        if one.pair.verdict == SUPPORTED and probability(support, one.x) < 0.5
    ]
    allowed = math.floor(bar * sum(one.pair.verdict == SUPPORTED for one in found))
    ranked = sorted(doubted, reverse=True)
    return max(0.5, ranked[allowed] + 1e-4) if len(ranked) > allowed else 0.5


def calibration_error(values: Sequence[float], labels: Sequence[bool], bins: int = 10) -> float:
    """Expected calibration error over bins of equal width."""
    level, hit = np.asarray(values), np.asarray(labels, dtype=float)
    places = np.minimum((level * bins).astype(int), bins - 1)
    return float(sum(abs(level[places == one].mean() - hit[places == one].mean()) * (places == one).mean() for one in range(bins) if (places == one).any()))  # noqa: E501  # fmt: skip
