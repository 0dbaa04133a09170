"""The level: how good answers are in people's terms, with an interval that contains the judge's own error.

A judge says yes (everything is supported) to a share g of the answers that people call good, and to a share h of those
that people call bad: E[yes | b] = g (1 - b) + h b, with b the share of bad answers. (g, h) differs from service to
service. A table of labelled families tells how it varies: a mixture with one Student's t for each family on the logit
scale, wider than their spread suggests, and a part that expects nothing. Labels of the service's own answers narrow it.

Labels of other answers of the service, such as those of last week, tell of (g, h) alone: their share of bad answers may
have been another. Labels count less as they age: see `ageing`.

All is a posterior on a grid, deterministic and without a sampler: the prior of b and of (g, h), times the likelihood of
what the judge says of all answers, c^yes (1 - c)^no with c = g (1 - b) + h b, times that of labels, given what the
judge says of each: p(bad | yes) = h b / c, p(bad | no) = (1 - h) b / (1 - c). So answers may be drawn for labelling
with a probability that depends on what the judge says of them. Where probabilities differ among answers of which it
says the same, labels are weighted by 1 / probability and count as their effective number (Kish). The interval is the
shortest that holds 95 % (highest density), so that it may contain 0 or 1. Coverage over families: docs/statistics.md.
"""

from __future__ import annotations

import itertools
import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import mul
from typing import NamedTuple

from ragwatch.model.quantities import Quantity
from ragwatch.model.quantity_row import Better
from ragwatch.statistics.estimators.interval import beta_cdf

CALIBRATED_LABELS = 50
"""Labels from which a level is called calibrated: how many people are asked for, everywhere."""
STILL_CALIBRATED_LABELS = 40
"""What they must still count as for the level to stay calibrated: they age this far in ten days without a release."""
MOST_ANSWERS = 2000.0
"""Answers that count at most: their sampling error is then far below that of the judge."""
MOST_UNMEASURED = 0.05
"""Share of answers in languages in which the judge was not measured, above which its measured error says nothing."""
Rates = tuple[float, float]
"""Share of good answers, and of bad ones, to which the judge says yes."""

_CELLS = 24  # of each of g and h
_SHARES = 160  # of the share of bad answers: its square root is spaced evenly, since small shares matter
_BINS = 280  # of c: the arc sine of its root is spaced evenly, so that each is as wide beside its sampling error
_WIDTH = 0.5 * math.pi / _BINS
_DEGREES = 4.0  # of Student's t
_SPREAD = 0.6  # width of each component beside the standard deviation of the families
_UNKNOWN = 0.08  # weight of the part that expects nothing
_LEAST_VARIANCE = 0.05  # of families on the logit scale: a few may agree by chance
_PRIOR = (0.6, 2.5)  # Beta of the share of bad answers
_LOG_NEGLIGIBLE = math.log(1e-12)  # beside the greatest weight
_MIN_FAMILIES = 3
_ALL = 1.0 - 1e-9  # a score that rounding keeps from 1 is the best one
HALF_LIFE = 30 * 86400.0
"""Seconds after which a label counts half."""


class LabelCounts(NamedTuple):
    """Labels by what people (good or bad) and the judge (yes or no) say; fractions of a label are allowed."""

    good_yes: float = 0.0
    good_no: float = 0.0
    bad_yes: float = 0.0
    bad_no: float = 0.0

    @classmethod
    def apart(cls, labels: Iterable[tuple[float, bool, float]]) -> LabelCounts:
        """Count labels of other answers, from which only (g, h) is learnt: their shares are those of all these answers.

        >>> LabelCounts.apart([(1.0, True, 0.5), (1.0, False, 0.5), (0.0, False, 0.5)])
        LabelCounts(good_yes=1.0, good_no=1.0, bad_yes=0.0, bad_no=1.0)
        """
        cells = [(score, yes, 1.0 / probability) for score, yes, probability in labels]
        weight = math.fsum(w for _, _, w in cells)
        if not weight:
            return cls()
        scale = weight / math.fsum(w * w for _, _, w in cells)  # effective number over the sum of weights
        return cls(
            scale * math.fsum(w * score for score, yes, w in cells if yes),
            scale * math.fsum(w * score for score, yes, w in cells if not yes),
            scale * math.fsum(w * (1.0 - score) for score, yes, w in cells if yes),
            scale * math.fsum(w * (1.0 - score) for score, yes, w in cells if not yes),
        )

    def times(self, share: float) -> LabelCounts:
        """The counts of which only a share still counts."""
        return LabelCounts(*(count * share for count in self))

    @classmethod
    def of(cls, labels: Iterable[tuple[float, bool, float]]) -> LabelCounts:
        """Count labels: people's score in [0, 1], whether the judge says yes, and the probability of being labelled."""
        rows = list(labels)
        yes, no = (cls.apart(row for row in rows if row[1] is said) for said in (True, False))
        return cls(yes.good_yes, no.good_no, yes.bad_yes, no.bad_no)


_NO_LABELS = LabelCounts()


@dataclass(frozen=True, slots=True)
class Level:
    """A share of good answers in people's terms: its median, its interval, and the number of labels."""

    value: float
    low: float
    high: float
    labels: int

    @property
    def complement(self) -> Level:
        """The level of the share of bad answers."""
        return Level(1.0 - self.value, 1.0 - self.high, 1.0 - self.low, self.labels)

    @property
    def calibrated(self) -> bool:
        """Whether labels, none of which has aged, have made the interval useful."""
        return is_calibrated(self.labels, self.labels)


def is_calibrated(labels: int, given: int) -> bool:
    """Whether enough labels were given for a level, and those that have not aged are still enough.

    >>> is_calibrated(49, 49), is_calibrated(49, 50), is_calibrated(25, 50)
    (False, True, False)
    """
    return given >= CALIBRATED_LABELS and labels >= STILL_CALIBRATED_LABELS


def calibration_status(labels: int, given: int) -> str:
    """Return what is said of the labels behind a level: whether it is calibrated, and how many of those given count.

    >>> calibration_status(60, 60), calibration_status(20, 20)
    ('', 'not calibrated, 20 of 50 labels')
    >>> calibration_status(49, 52), calibration_status(39, 52)
    ('49 of 52 labels still count', 'not calibrated, 39 of 50 labels (52 given; they age)')
    """
    if is_calibrated(labels, given):
        return f"{labels} of {given} labels still count" if labels < given else ""
    aged = f" ({given} given; they age)" if labels < given else ""
    return f"not calibrated, {labels} of {CALIBRATED_LABELS} labels{aged}"


def is_best(quantity: Quantity, score: float) -> bool:
    """Whether a score is the best there is: the judge says yes. Of a share of claims, all are supported.

    >>> is_best(Quantity.FAITHFULNESS, 1.0), is_best(Quantity.TOP_RANKED_IGNORED, 1.0)
    (True, False)
    """
    return (1.0 - score if quantity.row.better is Better.LOW else score) >= _ALL


def ageing(at: float, now: float, changes: Iterable[float]) -> float:
    """How much a label still counts: half after `HALF_LIFE`, and half after each change of what is judged.

    It is the rate at which a random walk of (g, h) makes labels forget. A change is an event of the service (a release,
    an update of the index) or a drift alarm since the answer was given.

    >>> ageing(0.0, HALF_LIFE, ()), round(ageing(10.0, 20.0, (5.0, 15.0)), 3)
    (0.5, 0.5)
    """
    return float(0.5 ** ((max(now - at, 0.0)) / HALF_LIFE + sum(at < change <= now for change in changes)))


def level(
    families: Sequence[Rates],
    yes: float,
    no: float,
    labels: LabelCounts,
    *,
    count: int,
    confidence: float = 0.95,
    elsewhere: LabelCounts = _NO_LABELS,
) -> Level:
    """Compute the level of a population of answers.

    With fewer than three families nothing is expected of the judge. `yes` and `no` are effective numbers of answers by
    what it says, with or without a label; `count` labels are of these, others are `elsewhere`.
    """
    bad = _posterior(tuple(families), yes, no, labels, elsewhere)
    order = sorted(range(_SHARES), key=lambda i: bad[i] / (_EDGES[i + 1] - _EDGES[i]), reverse=True)
    held = list(itertools.accumulate(bad[index] for index in order))
    inside = order[: bisect_left(held, confidence) + 1]
    first, last, least = min(inside), max(inside), inside[-1]
    # What the least cell holds too much; the cells at 0 and 1 count whole, so that the interval contains these.
    spare = (held[len(inside) - 1] - confidence) / bad[least] * (_EDGES[least + 1] - _EDGES[least])
    high = 1.0 - _EDGES[first] - (spare if least == first > 0 else 0.0)
    low = 1.0 - _EDGES[last + 1] + (spare if least == last < _SHARES - 1 and last > first else 0.0)
    return Level(min(max(1.0 - _quantile(bad, 0.5), low), high), low, high, count)


def quartiles(families: Sequence[Rates], yes: float, no: float, labels: LabelCounts) -> tuple[float, float, float]:
    """Compute the quartiles of what the share of good answers may be, from the same arguments as `level`."""
    bad = _posterior(tuple(families), yes, no, labels, _NO_LABELS)
    return 1.0 - _quantile(bad, 0.75), 1.0 - _quantile(bad, 0.5), 1.0 - _quantile(bad, 0.25)


def _quantile(bad: Sequence[float], at: float) -> float:
    below = list(itertools.accumulate(bad))
    index = bisect_left(below, at)
    return _EDGES[index + 1] - (_EDGES[index + 1] - _EDGES[index]) * (below[index] - at) / bad[index]


def _posterior(
    families: tuple[Rates, ...], yes: float, no: float, labels: LabelCounts, elsewhere: LabelCounts
) -> list[float]:
    """Probability of each share of bad answers."""
    factor = min(1.0, MOST_ANSWERS / max(yes + no, 1.0))
    logs = [factor * (yes * log_c + no * log_rest) for log_c, log_rest in _LOG_BINS]
    top = max(logs)
    near = [index for index, value in enumerate(logs) if value >= top + _LOG_NEGLIGIBLE]
    first, last = near[0], near[-1] + 1
    likelihood = [math.exp(value - top) for value in logs[first:last]]
    shares = []
    for start, row in _expected(families, labels, elsewhere):
        low, high = max(start, first), min(start + len(row), last)
        shares.append(sum(map(mul, row[low - start : high - start], likelihood[low - first :])) if low < high else 0.0)
    weights = [share * prior for share, prior in zip(shares, _prior_of_shares(), strict=True)]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


@lru_cache(maxsize=256)  # 20 routes in three windows, each without some annotators; 100 KB each
def _expected(
    families: tuple[Rates, ...], labels: LabelCounts, elsewhere: LabelCounts
) -> list[tuple[int, array[float]]]:
    """For each share of bad answers the weights of c, from the first bin that has any, given families and labels."""
    cells = [
        math.log(prior) + own + other
        for prior, own, other in zip(_rates_prior(families), _own_logs(labels), _own_logs(elsewhere), strict=True)
    ]
    good, bad = labels.good_yes + labels.good_no, labels.bad_yes + labels.bad_no
    yes, no = labels.good_yes + labels.bad_yes, labels.good_no + labels.bad_no
    logs = [
        [
            cell + good * log_good + bad * log_bad - yes * log_c - no * log_rest
            for cell, log_c, log_rest in zip(cells, *c, strict=True)
        ]
        for (log_good, log_bad), (_, *c) in zip(_LOG_SHARES, _points(), strict=True)
    ]
    top = max(map(max, logs))
    rows = []
    for row_logs, (places, _, _) in zip(logs, _points(), strict=True):
        row = array("d", bytes(8 * (_BINS + 2)))
        for log, place in zip(row_logs, places, strict=True):
            if log > top + _LOG_NEGLIGIBLE:
                weight, number = math.exp(log - top), int(place)
                above = (place - number) * weight
                row[number] += weight - above
                row[number + 1] += above
        weighted = [number for number, weight in enumerate(row) if weight]
        start, end = (weighted[0], weighted[-1] + 1) if weighted else (0, 0)
        rows.append((start, array("f", row[start:end])))  # single precision: hundreds of them are kept
    return rows


@lru_cache(maxsize=1)
def _points() -> list[tuple[array[float], array[float], array[float]]]:
    """For each share of bad answers and each (g, h): the place of c among its bins, log c and log (1 - c)."""
    points = []
    for index in range(_SHARES):
        bad = ((index + 0.5) / _SHARES) ** 2
        every = array("d", (g + (h - g) * bad for g, h in _GRID))
        places = array("d", (math.asin(math.sqrt(c)) / _WIDTH for c in every))
        points.append((places, array("d", map(math.log, every)), array("d", (math.log1p(-c) for c in every))))
    return points


def _own_logs(labels: LabelCounts) -> list[float]:
    """At each (g, h), the part of the log-likelihood of labels that no share changes."""
    return [
        labels.good_yes * math.log(g)
        + labels.good_no * math.log1p(-g)
        + labels.bad_yes * math.log(h)
        + labels.bad_no * math.log1p(-h)
        for g, h in _GRID
    ]


@lru_cache(maxsize=64)
def _rates_prior(families: tuple[Rates, ...]) -> list[float]:
    """Prior probability of each (g, h)."""
    flat = [1.0 / len(_GRID)] * len(_GRID)
    if len(families) < _MIN_FAMILIES:
        return flat
    centres = [(_logit(g), _logit(h)) for g, h in families]
    a, b, c = _inverse_covariance(centres)
    density = [
        math.fsum(
            (1.0 + (a * (x - u) ** 2 + 2.0 * b * (x - u) * (y - v) + c * (y - v) ** 2) / _DEGREES)
            ** (-_DEGREES / 2.0 - 1.0)
            for u, v in centres
        )
        for x, y in ((_logit(g), _logit(h)) for g, h in _GRID)
    ]
    total = math.fsum(density)
    return [(1.0 - _UNKNOWN) * value / total + _UNKNOWN * even for value, even in zip(density, flat, strict=True)]


def _inverse_covariance(centres: Sequence[Rates]) -> tuple[float, float, float]:
    """Inverse of the covariance of centres, shrunk by `_SPREAD`: its two variances, with the covariance between."""
    n = len(centres)
    u, v = (math.fsum(column) / n for column in zip(*centres, strict=True))
    a = math.fsum((x - u) ** 2 for x, _ in centres) / (n - 1) + _LEAST_VARIANCE
    b = math.fsum((x - u) * (y - v) for x, y in centres) / (n - 1)
    c = math.fsum((y - v) ** 2 for _, y in centres) / (n - 1) + _LEAST_VARIANCE
    determinant = (a * c - b * b) * _SPREAD**2
    return c / determinant, -b / determinant, a / determinant


@lru_cache(maxsize=1)
def _prior_of_shares() -> list[float]:
    return [high - low for low, high in itertools.pairwise(beta_cdf(edge, *_PRIOR) for edge in _EDGES)]


def _logit(p: float) -> float:
    return math.log(p / (1.0 - p))


def _spaced(low: float, high: float) -> list[float]:
    """Probabilities from low to high, evenly spaced on the logit scale."""
    start, step = _logit(low), (_logit(high) - _logit(low)) / (_CELLS - 1)
    return [1.0 / (1.0 + math.exp(-start - step * index)) for index in range(_CELLS)]


_GRID = [(g, h) for g in _spaced(0.2, 0.995) for h in _spaced(0.01, 0.985)]
_EDGES = [(index / _SHARES) ** 2 for index in range(_SHARES + 1)]
_LOG_SHARES = [
    (math.log1p(-middle), math.log(middle)) for middle in ((a + b) / 2 for a, b in itertools.pairwise(_EDGES))
]
_LOG_BINS = [
    (2.0 * math.log(max(math.sin(_WIDTH * index), 1e-6)), 2.0 * math.log(max(math.cos(_WIDTH * index), 1e-6)))
    for index in range(_BINS + 1)
]
