"""Compare: two variants beside each other, question by question where they share questions.

Paired, the figure is the mean of B - A over shared questions. Its interval is Student's t with the adjustment of
Agresti and Min (2005, 10.1002/sim.2136): half a question each is added where B wins and loses by a whole point, and one
tie. Questions that did not differ so far may yet, and where nearly all tie, plain t would call a handful of
differences certain. Unpaired, it is the square-and-add interval of Newcombe (1998,
10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I) on the intervals of the two means.

Answers to one question vary together, so a question is the unit of both: paired it counts once; unpaired it counts with
the weight of all its answers, 1 / inclusion probability each, so that the mean is the one that live traffic has.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import NamedTuple

from ragwatch.core.estimate import Addends
from ragwatch.core.estimators import hajek
from ragwatch.core.estimators.interval import quantile

FEWEST = 30  # pairs, or scores on either side, below which a difference is called noise whatever its interval
_ADDED = 2.0  # tables of Agresti and Min: a half in each of four cells
_SAME = 1e-12


class Interval(NamedTuple):
    """A figure with the ends of its confidence interval."""

    value: float
    low: float
    high: float


class PairedScore(NamedTuple):
    """One question's scores in both variants, and its category (empty for none)."""

    a: float
    b: float
    category: str = ""


class WeightedScore(NamedTuple):
    """A question's score in one variant: the mean of its answers, and their weight together."""

    score: float
    weight: float = 1.0


class Conclusion(StrEnum):
    """What a difference shows."""

    BETTER = "better"
    WORSE = "worse"
    NOISE = "noise"


@dataclass(frozen=True, slots=True)
class Difference:
    """B beside A in one metric.

    Attributes:
        a: Mean of A.
        b: Mean of B.
        change: B - A with its interval, in [-1, 1].
        n: Pairs; unpaired, scores on the smaller side.
        paired: Whether the same questions stand on both sides.
        wins: Questions in which B is better; None when unpaired.
        ties: Questions in which both are equal.
        losses: Questions in which B is worse.
        low_is_good: Whether the metric ought to be small.
    """

    a: float
    b: float
    change: Interval
    n: int
    paired: bool
    wins: int | None = None
    ties: int | None = None
    losses: int | None = None
    low_is_good: bool = False

    @property
    def conclusion(self) -> Conclusion:
        """Better or worse only where the whole interval says so, and enough questions were asked."""
        if self.warning is not None:
            return Conclusion.NOISE
        return Conclusion.BETTER if (self.change.value > 0) is not self.low_is_good else Conclusion.WORSE

    @property
    def warning(self) -> str | None:
        """Why the difference may be noise; None when it is not likely to be."""
        if self.n < FEWEST:
            return f"only {self.n} {'questions' if self.paired else 'scores on one side'}, fewer than {FEWEST}"
        if self.change.low <= 0.0 <= self.change.high:
            return "the interval contains 0"
        return None


def paired(pairs: Sequence[PairedScore], *, low_is_good: bool = False, confidence: float = 0.95) -> Difference | None:
    """The difference over shared questions; None when there is none.

    >>> found = paired([Pair(0.0, 1.0)] * 30 + [Pair(1.0, 1.0)] * 70)
    >>> found.change.value, found.wins, found.ties, found.losses, str(found.conclusion)
    (0.3, 30, 70, 0, 'better')
    >>> [round(end, 3) for end in paired([Pair(1.0, 1.0)] * 100).change]    # all tie: still no certainty
    [0.0, -0.019, 0.019]
    """
    if not pairs:
        return None
    steps = [0.0 if abs(pair.b - pair.a) < _SAME else pair.b - pair.a for pair in pairs]
    rises, falls = sum(step > 0 for step in steps), sum(step < 0 for step in steps)
    wins, losses = (falls, rises) if low_is_good else (rises, falls)
    return Difference(
        fmean(pair.a for pair in pairs),
        fmean(pair.b for pair in pairs),
        _adjusted(steps, confidence),
        len(pairs),
        paired=True,
        wins=wins,
        ties=len(pairs) - wins - losses,
        losses=losses,
        low_is_good=low_is_good,
    )


def _adjusted(steps: Sequence[float], confidence: float) -> Interval:
    n = len(steps) + _ADDED
    centre = math.fsum(steps) / n
    spread = (math.fsum(step * step for step in steps) + 1.0) / n - centre * centre
    half = quantile(confidence, len(steps) - 1) * math.sqrt(spread / n)
    value = fmean(steps)
    return Interval(value, max(-1.0, min(centre - half, value)), min(1.0, max(centre + half, value)))


def unpaired(
    a: Sequence[WeightedScore], b: Sequence[WeightedScore], *, low_is_good: bool = False, confidence: float = 0.95
) -> Difference | None:
    """The difference of the means of two sets of questions; None when one is empty.

    >>> found = unpaired([Weighed(1.0)] * 50 + [Weighed(0.0)] * 50, [Weighed(1.0)] * 90 + [Weighed(0.0)] * 10)
    >>> round(found.change.value, 2), str(found.conclusion)
    (0.4, 'better')
    """
    first, second = (_mean(((each.score, each.weight) for each in side), confidence) for side in (a, b))
    if first is None or second is None:
        return None
    n = min(len(a), len(b))
    return Difference(first.value, second.value, change(first, second), n, paired=False, low_is_good=low_is_good)


def mean(scores: Iterable[float], confidence: float = 0.95) -> Interval | None:
    """Mean of scores in [0, 1] with the interval of `hajek`; None of none."""
    return _mean(((score, 1.0) for score in scores), confidence)


def _mean(weighed: Iterable[tuple[float, float]], confidence: float) -> Interval | None:
    found = hajek.estimate(Addends.of((score, 1.0 / weight) for score, weight in weighed), confidence=confidence)
    return None if found is None else Interval(found.value, found.low, found.high)


def change(before: Interval, after: Interval) -> Interval:
    """The step from one figure to another that is independent of it.

    >>> [round(end, 4) for end in change(Interval(0.8, 0.7, 0.87), Interval(0.6, 0.5, 0.69))]
    [-0.2, -0.3221, -0.0655]
    """
    step = after.value - before.value
    low = math.hypot(after.value - after.low, before.high - before.value)
    high = math.hypot(after.high - after.value, before.value - before.low)
    return Interval(step, step - low, step + high)


def by_category(pairs: Iterable[PairedScore]) -> Mapping[str, list[PairedScore]]:
    """Pairs by category, by name; empty when there is one category or none."""
    found: defaultdict[str, list[PairedScore]] = defaultdict(list)
    for pair in pairs:
        found[pair.category].append(pair)
    return dict(sorted(found.items())) if len(found) > 1 else {}


class MatchedKeys(NamedTuple):
    """Two sides of keyed things, brought together.

    Attributes:
        keys: Shared, in the order of A.
        only_a: How many stand on A's side alone.
        only_b: How many stand on B's side alone.
    """

    keys: tuple[str, ...]
    only_a: int
    only_b: int

    @property
    def enough(self) -> bool:
        """Whether the shared ones stand for both sides: half of the smaller side, and two at least."""
        shared = len(self.keys)
        return shared >= 2 and shared >= min(self.only_a, self.only_b)


def matched(a: Iterable[str], b: Iterable[str]) -> MatchedKeys:
    """What two sides share.

    >>> matched(["x", "y"], ["y", "z"])
    Matched(keys=('y',), only_a=1, only_b=1)
    """
    first, second = dict.fromkeys(a), dict.fromkeys(b)
    shared = tuple(key for key in first if key in second)
    return MatchedKeys(shared, len(first) - len(shared), len(second) - len(shared))


def key_of(question: str | None, name: str) -> str:
    """What pairs a sample: its question, whatever case and white space; its id where the log holds no question.

    >>> key_of("What  is THIS?", "r1"), key_of(None, "r1")
    ('what is this?', 'id:r1')
    """
    return " ".join(question.casefold().split()) if question else f"id:{name}"


def per_question(answers: Iterable[tuple[str, float | None, float]]) -> dict[str, WeightedScore]:
    """By key, out of keys, scores and weights of answers: a question that was asked five times is one question still.

    >>> per_question([("q", 1.0, 1.0), ("q", 0.0, 3.0), ("r", None, 1.0)])
    {'q': Weighed(score=0.25, weight=4.0)}
    """
    found: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for key, score, weight in answers:
        if score is not None:
            found[key].append((score, weight))
    return {key: _together(few) for key, few in found.items()}


def _together(answers: Sequence[tuple[float, float]]) -> WeightedScore:
    weight = math.fsum(each for _, each in answers)
    return WeightedScore(math.fsum(score * each for score, each in answers) / weight, weight)
