"""Compares the mean scores of two variants, paired by question if they share enough questions.

Paired, the difference is the mean of B - A over the shared questions. Its interval is Student's t with the adjustment
of Agresti and Min (2005, 10.1002/sim.2136): half a question each is added where B wins and loses by 1, and one tie;
plain t is too narrow where nearly all questions tie. Unpaired, it is the square-and-add interval of Newcombe (1998,
10.1002/(SICI)1097-0258(19980430)17:8<873::AID-SIM779>3.0.CO;2-I), from those of the two means.

Answers to one question are correlated, so the question is the unit: paired, it counts once; unpaired, it has the weight
of all its answers, 1 / inclusion probability each, so that the mean is that of live traffic.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import NamedTuple

from ragwatch.model.estimate import Addends, Estimate
from ragwatch.statistics.estimators import hajek
from ragwatch.statistics.estimators.interval import CountedInterval, Interval, quantile

MIN_QUESTIONS = 30  # pairs, or scores on either side, below which a difference is reported as noise
_ADDED_QUESTIONS = 2.0  # Agresti and Min: a half in each of four cells
_EPSILON = 1e-12


class PairedScore(NamedTuple):
    """Scores of one question in both variants, and its category (empty for none)."""

    a: float
    b: float
    category: str = ""


class WeightedScore(NamedTuple):
    """Score of one question in one variant: the weighted mean of its answers, and their total weight."""

    score: float
    weight: float = 1.0


class Conclusion(StrEnum):
    """Conclusion from a difference."""

    BETTER = "better"
    WORSE = "worse"
    NOISE = "noise"


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference between the variants A and B in one metric."""

    a: float
    b: float
    change: Interval  # B - A with its interval, in [-1, 1]
    n: int  # pairs; unpaired, scores on the smaller side
    paired: bool
    wins: int | None = None  # questions in which B is better; None if unpaired
    ties: int | None = None
    losses: int | None = None
    low_is_good: bool = False

    @property
    def conclusion(self) -> Conclusion:
        """Better or worse if the interval excludes 0 and there are enough questions, otherwise noise."""
        if self.warning is not None:
            return Conclusion.NOISE
        return Conclusion.BETTER if (self.change.value > 0) is not self.low_is_good else Conclusion.WORSE

    @property
    def warning(self) -> str | None:
        """Why the difference may be noise; None if it is significant."""
        if self.n < MIN_QUESTIONS:
            return f"only {self.n} {'questions' if self.paired else 'scores on one side'}, fewer than {MIN_QUESTIONS}"
        if self.change.low <= 0.0 <= self.change.high:
            return "the interval contains 0"
        return None


def paired(pairs: Sequence[PairedScore], *, low_is_good: bool = False, confidence: float = 0.95) -> Difference | None:
    """Returns the difference over shared questions; None if there are none."""
    if not pairs:
        return None
    changes = [0.0 if abs(pair.b - pair.a) < _EPSILON else pair.b - pair.a for pair in pairs]
    n, value = len(changes) + _ADDED_QUESTIONS, fmean(changes)
    centre = math.fsum(changes) / n
    variance = (math.fsum(step * step for step in changes) + 1.0) / n - centre * centre
    half = quantile(confidence, len(changes) - 1) * math.sqrt(variance / n)
    rises, falls = sum(step > 0 for step in changes), sum(step < 0 for step in changes)
    wins, losses = (falls, rises) if low_is_good else (rises, falls)
    return Difference(
        fmean(pair.a for pair in pairs),
        fmean(pair.b for pair in pairs),
        Interval(value, max(-1.0, min(centre - half, value)), min(1.0, max(centre + half, value))),
        len(pairs),
        paired=True,
        wins=wins,
        ties=len(pairs) - wins - losses,
        losses=losses,
        low_is_good=low_is_good,
    )


def unpaired(
    a: Sequence[WeightedScore], b: Sequence[WeightedScore], *, low_is_good: bool = False, confidence: float = 0.95
) -> Difference | None:
    """Returns the difference of the means of two sets of questions; None if either is empty."""
    first, second = (_mean(side, confidence) for side in (a, b))
    if first is None or second is None:
        return None
    n = min(len(a), len(b))
    return Difference(first.value, second.value, change(first, second), n, paired=False, low_is_good=low_is_good)


def mean(scores: Iterable[float], confidence: float = 0.95) -> Interval | None:
    """Returns the mean of scores in [0, 1] with the interval of `hajek`; None without scores."""
    return _mean(((score, 1.0) for score in scores), confidence)


def _mean(scores: Iterable[tuple[float, float]], confidence: float) -> Interval | None:
    """Mean of (score, weight) pairs."""
    estimate = hajek.estimate(Addends.of((score, 1.0 / weight) for score, weight in scores), confidence=confidence)
    return None if estimate is None else Interval(estimate.value, estimate.low, estimate.high)


def change(before: Interval | Estimate, after: Interval | Estimate) -> Interval:
    """Returns the difference of two independent values, with the square-and-add interval."""
    difference = after.value - before.value
    low = math.hypot(after.value - after.low, before.high - before.value)
    high = math.hypot(after.high - after.value, before.value - before.low)
    return Interval(difference, difference - low, difference + high)


def by_category(pairs: Iterable[PairedScore]) -> Mapping[str, list[PairedScore]]:
    """Groups pairs by category, sorted by name; empty if there are fewer than two categories."""
    groups: defaultdict[str, list[PairedScore]] = defaultdict(list)
    for pair in pairs:
        groups[pair.category].append(pair)
    return dict(sorted(groups.items())) if len(groups) > 1 else {}


class MatchedKeys(NamedTuple):
    """Keys that two variants share, in the order of A, and the number of those of A and of B alone."""

    keys: tuple[str, ...]
    only_a: int
    only_b: int

    @property
    def enough(self) -> bool:
        """Whether enough keys are shared for a paired comparison: half of the smaller side, and at least two."""
        shared = len(self.keys)
        return shared >= 2 and shared >= min(self.only_a, self.only_b)


def match_keys(a: Iterable[str], b: Iterable[str]) -> MatchedKeys:
    """Returns the keys that two variants share."""
    first, second = dict.fromkeys(a), dict.fromkeys(b)
    shared = tuple(key for key in first if key in second)
    return MatchedKeys(shared, len(first) - len(shared), len(second) - len(shared))


def key_of(question: str | None, name: str, user_turns: Iterable[str] = ()) -> str:
    """Returns the key that pairs a sample: its question without case and extra white space, or its id without question.

    "And for students?" is another question in another conversation, so the user's turns before it are in its key.

    >>> key_of("What  is THIS?", "r1"), key_of(None, "r1"), key_of("Why?", "r1", ["Is it  FREE?"])
    ('what is this?', 'id:r1', 'is it free? / why?')
    """
    if not question:
        return f"id:{name}"
    return " / ".join(" ".join(text.casefold().split()) for text in (*user_turns, question))


def per_question(answers: Iterable[tuple[str, float | None, float]]) -> dict[str, WeightedScore]:
    """Aggregates (key, score, weight) of answers to one score a key; answers without a score are left out."""
    by_key: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for key, score, weight in answers:
        if score is not None:
            by_key[key].append((score, weight))
    totals = {key: math.fsum(weight for _, weight in scores) for key, scores in by_key.items()}
    return {
        key: WeightedScore(math.fsum(score * weight for score, weight in scores) / totals[key], totals[key])
        for key, scores in by_key.items()
    }


def offset(pairs: Iterable[tuple[float, float]], confidence: float = 0.95) -> CountedInterval | None:
    """Return the offset of (before, after) scores in [0, 1]; None without a pair.

    Increases and decreases are averaged separately, like scores, each with an interval at half the risk (Bonferroni).
    Most answers get the same score from both judges, and an interval for the few others is valid only if it includes
    the zeros.

    >>> change = offset([(1.0, 1.0)] * 90 + [(1.0, 0.5)] * 10)
    >>> change.value, change.n, round(change.low, 3), round(change.high, 3)
    (-0.05, 100, -0.097, 0.017)
    >>> offset([]) is None
    True
    """
    differences = [after - before for before, after in pairs]
    increase, decrease = (
        hajek.estimate(
            Addends.of((max(0.0, sign * difference), 1.0) for difference in differences),
            confidence=(1.0 + confidence) / 2.0,
        )
        for sign in (1.0, -1.0)
    )
    if increase is None or decrease is None:
        return None
    return CountedInterval(
        increase.value - decrease.value, increase.low - decrease.high, increase.high - decrease.low, len(differences)
    )
