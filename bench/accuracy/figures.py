"""Figures of a score beside labels, each with a bootstrap interval. Positive = unfaithful."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Flags = NDArray[np.bool_]
ROUNDS, SEED, BINS, ALARM = 400, 7, 10, 0.05


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its 95 % bootstrap interval; None where it is not defined."""

    value: float | None
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        if self.value is None:
            return "-"
        return f"{self.value:.3f}" if self.low is None else f"{self.value:.3f} [{self.low:.2f}, {self.high:.2f}]"

    def to_record(self) -> list[float | None]:
        """As it is written to JSON: value, low, high."""
        return [None if each is None else round(each, 4) for each in (self.value, self.low, self.high)]


def auroc(positive: Flags, score: Vector) -> float | None:
    """Probability that a positive scores above a negative, ties by half."""
    ones, zeros = int(positive.sum()), int((~positive).sum())
    if not ones or not zeros:
        return None
    values, places = np.unique(score, return_inverse=True)
    up = np.bincount(places, weights=positive, minlength=len(values))
    down = np.bincount(places, weights=~positive, minlength=len(values))
    below = np.cumsum(down) - down
    return float((up * (below + down / 2)).sum() / (ones * zeros))


def average_precision(positive: Flags, score: Vector) -> float | None:
    """Area under precision and recall, rows of one score taken together."""
    if not positive.any():
        return None
    values, places = np.unique(-score, return_inverse=True)
    hits = np.cumsum(np.bincount(places, weights=positive, minlength=len(values)))
    taken = np.cumsum(np.bincount(places, minlength=len(values)))
    gains = np.diff(hits, prepend=0.0)
    return float((gains * hits / taken).sum() / positive.sum())


def f1(positive: Flags, flagged: Flags) -> float | None:
    """Harmonic mean of precision and recall of verdicts."""
    called = int(positive.sum()) + int(flagged.sum())
    return float(2.0 * (positive & flagged).sum() / called) if called else None


def calibration_error(positive: Flags, score: Vector) -> float | None:
    """Expected calibration error of the probability of being unfaithful, over ten bins of equal width."""
    if not len(score):
        return None
    places = np.minimum((score * BINS).astype(int), BINS - 1)
    total = 0.0
    for each in range(BINS):
        here = places == each
        if here.any():
            total += here.mean() * abs(score[here].mean() - positive[here].mean())
    return float(total)


def precision_of_alarms(positive: Flags, score: Vector) -> float | None:
    """Precision when the top 5 % are flagged; rows that tie at the cut are taken in equal parts."""
    if not len(score):
        return None
    room = max(1, round(ALARM * len(score)))
    cut = np.sort(score)[-room]
    above, level = score > cut, score == cut
    return float((positive[above].sum() + (room - above.sum()) * positive[level].mean()) / room)


def correlation(positive: Flags, score: Vector) -> float | None:
    """Pearson's correlation of score and label: what a control variate is worth."""
    if len(score) < 3 or positive.all() or not positive.any() or score.std() == 0.0:
        return None
    return float(np.corrcoef(positive, score)[0, 1])


def interval(
    groups: Sequence[str], measure: Callable[..., float | None], *columns: NDArray[Any], rounds: int = ROUNDS
) -> Figure:
    """A figure and its 95 % percentile bootstrap interval, over groups of rows that share text."""
    value = measure(*columns)
    members = defaultdict(list)
    for index, group in enumerate(groups):
        members[group].append(index)
    places = [np.array(each) for each in members.values()]
    if value is None or rounds == 0 or len(places) < 2:
        return Figure(value)
    rng = np.random.default_rng(SEED)
    found = []
    for _ in range(rounds):
        pick = np.concatenate([places[each] for each in rng.integers(0, len(places), len(places))])
        again = measure(*(column[pick] for column in columns))
        if again is not None:
            found.append(again)
    low, high = np.quantile(found, [0.025, 0.975])
    return Figure(value, float(low), float(high))
