"""Finds the slices of answers that fail more than the rest: evidence, choice, figures, and one slice for one cause.

Every slice that is looked at is counted, and what is shown passes e-BH with the number of all of them (see
`selected`): at most the stated share of the shown slices is false on average.

An e-value is a bet that pays at most 1 on average if the slice fails no more than the rest. These are e-processes: that
holds at whatever answer somebody stops looking, and for whatever reason (Grünwald, de Heide and Koolen, JRSS B 2024).

In a cell (answers of equal route and inclusion probability), the bet on each answer follows from the earlier ones: the
failing shares inside and outside are learnt by Beta priors. What they pay together is compared with the greatest
likelihood of any failing shares of which that inside is not above that outside (universal inference: Wasserman, Ramdas
and Balakrishnan, PNAS 2020). Half of the stake is kept back in each cell, so that one without the slice costs little,
and the values of cells are multiplied, as the tests of Turner, Ly and Grünwald (arXiv 2106.02693). Their own e-values
are of blocks, within which somebody who sees the answers can gain by stopping.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from ragwatch.model.estimate import Addends
from ragwatch.statistics.causes.slices import (
    MIN_ANSWERS,
    Answer,
    Attribute,
    Slice,
    candidates,
    missing_documents,
    places_by_attribute,
)
from ragwatch.statistics.estimators import score

FALSE_DISCOVERY_RATE = 0.05
MAX_SHOWN = 20
_MAX_COMPARED = 100  # of the slices with the most evidence, with which others are compared
_EXAMPLES = 3
_DAY = 86400.0
QUIET_SECONDS = 300.0  # without a failing answer, before a cause counts as ended
_GAP = 8.0  # times the mean distance of answers: chance leaves such a gap once in 3000 times
_MAX_FOLDED = 10  # names of slices that one explains
_KEPT_EXCESS = 0.5  # of its excess, what a slice of its own keeps outside of another one
_BINS_PER_OCTAVE = 8  # inclusion probabilities within a twelfth of an octave or so count as equal


@dataclass(frozen=True, slots=True)
class Cause:
    """A slice that fails more than the rest, with weighted shares; the interval is adjusted for the choice."""

    slice: Slice
    log_e: float
    failing: float
    others: float
    low: float
    high: float
    explains: float  # share of all failures that would be missing if the slice failed no more than the others
    of_failing: float  # weighted share of the failing answers that are in the slice
    of_passing: float  # the same of the other answers
    since: float
    until: float
    examples: tuple[str, ...] = ()  # keys of its newest failing answers
    folded: tuple[Slice, ...] = ()  # slices that this one explains, most evidence first
    failed_until: float = math.inf

    def is_new(self, begin: float) -> bool:
        """Whether its answers began after an instant: chance leaves no such gap."""
        return self.since - begin > self._gap

    def is_over(self, end: float) -> bool:
        """Whether its answers ended before an instant."""
        return end - self.until > self._gap

    def has_ended(self, end: float) -> bool:
        """Whether its answers fail no more before an instant, for much longer than they did between two failures."""
        return end - self.failed_until > max(QUIET_SECONDS, self._gap)

    @property
    def _gap(self) -> float:
        return _GAP * (self.until - self.since) / len(self.slice.places)


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of a search."""

    causes: tuple[Cause, ...] = ()  # shown: what goes on, what is over, symptoms; most evidence first in each
    looked_at: int = 0  # number of slices that were looked at
    answers: int = 0
    failing: int = 0
    share: float | None = None  # weighted failing share; None without answers
    begin: float | None = None
    end: float | None = None


def find_causes(answers: Sequence[Answer], *, rate: float = FALSE_DISCOVERY_RATE, confidence: float = 0.95) -> Findings:
    """Return the slices of answers (at most one for each sample) that fail more than the rest.

    `rate` is the false discovery rate of those shown, `confidence` that of their intervals together.
    """
    if not answers:
        return Findings()
    table = Table(answers)
    by_attribute = places_by_attribute(table.answers)
    slices = [*missing_documents(table.answers, by_attribute), *candidates(by_attribute, len(answers))]
    causes = causes_of(table, slices, rate=rate, confidence=confidence)
    moments = [answer.at for answer in answers]
    return Findings(
        causes=causes,
        looked_at=len(slices),
        answers=len(answers),
        failing=sum(table.failing),
        share=table.failing_weight / table.weight,
        begin=min(moments),
        end=max(moments),
    )


class Table:
    """Answers sorted by cell and, within, by the order in which they were judged."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers = sorted(answers, key=lambda answer: (*_cell_of(answer), answer.seq))
        self.failing = [int(answer.failing) for answer in self.answers]
        self.weights = [1.0 / answer.probability for answer in self.answers]
        sizes = [sum(1 for _ in group) for _, group in groupby(self.answers, _cell_of)]
        self._ends = list(accumulate(sizes))
        self._failures = [0, *accumulate(self.failing)]
        self.weight = sum(self.weights)
        self.failing_weight = sum(weight for weight, fails in zip(self.weights, self.failing, strict=True) if fails)

    def log_e(self, slice_: Slice) -> float:
        """Logarithm of the e-value of a slice, over all cells."""
        places, start, begin, total = slice_.places, 0, 0, 0.0
        for end in self._ends:
            stop = len(places) if end == len(self.answers) else bisect_left(places, end, begin)
            inside = stop - begin
            failing = sum([self.failing[place] for place in places[begin:stop]])
            outside_failing = self._failures[end] - self._failures[start] - failing
            total += log_e_value(inside, failing, end - start - inside, outside_failing)
            start, begin = end, stop
        return total

    def sums(self, places: Iterable[int]) -> tuple[float, float]:
        """Weight of some answers, and of the failing ones among them."""
        weight = failing = 0.0
        for place in places:
            weight += self.weights[place]
            if self.failing[place]:
                failing += self.weights[place]
        return weight, failing

    def addends(self, places: Sequence[int]) -> Addends:
        """Sums for the interval of the failing share of some answers."""
        weights = [self.weights[place] for place in places]
        failing = [self.weights[place] for place in places if self.failing[place]]
        squares = sum([weight**2 for weight in failing])
        return Addends(
            n=len(weights),
            w=sum(weights),
            wx=sum(failing),
            w2=sum([weight**2 for weight in weights]),
            w2x=squares,
            w2x2=squares,
            w3=sum([weight**3 for weight in weights]),
            w4=sum([weight**4 for weight in weights]),
        )


def causes_of(
    table: Table, slices: Sequence[Slice], *, rate: float = FALSE_DISCOVERY_RATE, confidence: float = 0.95
) -> tuple[Cause, ...]:
    """Choose among slices: what goes on, then what is over, then symptoms; each by evidence and `Slice.rank`."""
    ranked = sorted(
        ((table.log_e(slice_), slice_) for slice_ in slices),
        key=lambda entry: (-round(entry[0], 9), entry[1].rank, entry[1].attribute, entry[1].value),
    )
    passed = ranked[: selected([log for log, _ in ranked], len(slices), rate)]
    passed = sorted(passed[:_MAX_COMPARED], key=lambda entry: entry[1].is_symptom)
    kept: list[_Kept] = []
    for log, slice_ in passed:
        sums = table.sums(slice_.places)
        excess = _excess(sums, (table.weight, table.failing_weight))
        explained_by = next((cause for cause in kept if cause.explains(table, slice_, excess)), None)
        if explained_by is not None:
            explained_by.folded.append(slice_)
        elif len(kept) < MAX_SHOWN and excess > 0.0:
            kept.append(_Kept(log, slice_, sums, frozenset(slice_.places), []))
    evidence = sorted((cause.log_e for cause in kept), reverse=True)
    least = evidence[: selected(evidence, len(slices), rate)][-1:]
    shown = [cause for cause in kept if least and cause.log_e >= least[0]]
    level = 1.0 - (1.0 - confidence) * len(shown) / max(1, len(slices))
    end = max(answer.at for answer in table.answers)
    causes = [_cause(table, cause, level) for cause in shown]
    return tuple(sorted(causes, key=lambda cause: (cause.slice.is_symptom, cause.is_over(end))))


def _excess(inside: tuple[float, float], total: tuple[float, float]) -> float:
    """By how much the failing share inside is above that outside; 0 if either is empty. Weights as of `sums`."""
    weight = total[0] - inside[0]
    if inside[0] <= 0.0 or weight <= 0.0:
        return 0.0
    return inside[1] / inside[0] - (total[1] - inside[1]) / weight


@dataclass(frozen=True, slots=True)
class _Kept:
    """A slice that no other one explains; `folded` are those that it explains."""

    log_e: float
    slice: Slice
    sums: tuple[float, float]
    covered: frozenset[int]
    folded: list[Slice]

    def explains(self, table: Table, other: Slice, excess: float) -> bool:
        """Whether another slice keeps less than a share of its excess among the answers outside of this one."""
        outside = [place for place in other.places if place not in self.covered]
        if len(outside) < MIN_ANSWERS:
            return True
        rest = (table.weight - self.sums[0], table.failing_weight - self.sums[1])
        return _excess(table.sums(outside), rest) < _KEPT_EXCESS * excess


def _cause(table: Table, kept: _Kept, level: float) -> Cause:
    places = kept.slice.places
    addends = table.addends(places)
    low, high = score.interval(score.SampleMoments.of(addends), level)
    newest = sorted((table.answers[place] for place in places if table.failing[place]), key=lambda answer: -answer.at)
    weight, failing = kept.sums
    share, others = failing / weight, (table.failing_weight - failing) / (table.weight - weight)
    passing = table.weight - table.failing_weight
    moments = _moments(table, kept.slice, (share + others) / 2.0)
    return Cause(
        slice=kept.slice,
        log_e=kept.log_e,
        failing=share,
        others=others,
        low=min(low, share),
        high=max(high, share),
        explains=min(1.0, weight * (share - others) / table.failing_weight),
        of_failing=failing / table.failing_weight,
        of_passing=(weight - failing) / passing if passing > 0.0 else 0.0,
        since=min(moments),
        until=max(moments),
        failed_until=newest[0].at if newest else min(moments),
        examples=tuple(answer.key for answer in newest[:_EXAMPLES]),
        folded=tuple(kept.folded[:_MAX_FOLDED]),
    )


def _moments(table: Table, slice_: Slice, least: float) -> list[float]:
    """Times of the answers of a slice; of an hour, on those days on which it failed: it comes back every day."""
    if slice_.attribute != Attribute.HOUR:
        return [table.answers[place].at for place in slice_.places]
    by_day: dict[float, list[int]] = {}
    for place in slice_.places:
        by_day.setdefault(table.answers[place].at // _DAY, []).append(place)
    sums = {day: table.sums(places) for day, places in by_day.items()}
    return [table.answers[place].at for day, (all_, bad) in sums.items() if bad > least * all_ for place in by_day[day]]


def _cell_of(answer: Answer) -> tuple[str, int]:
    """Cell of an answer: its route and inclusion probability."""
    return answer.route, round(_BINS_PER_OCTAVE * math.log2(answer.probability))


_PRIOR_INSIDE, _PRIOR_OUTSIDE = (1.0, 1.0), (1.0, 4.0)  # Beta: of a cause all is possible, and few other answers fail


def log_e_value(inside: int, inside_failing: int, outside: int, outside_failing: int) -> float:
    """Logarithm of the e-value of one cell, the mean of 1 and of what its bets pay; those of several cells add up.

    Given are the answers in the slice and among the others of its cell, each with the number of failing ones.
    """
    log = _log_learnt(inside, inside_failing, _PRIOR_INSIDE) + _log_learnt(outside, outside_failing, _PRIOR_OUTSIDE)
    if inside_failing * outside > outside_failing * inside:
        log -= _log_greatest(inside + outside, inside_failing + outside_failing)
    else:
        log = log - _log_greatest(inside, inside_failing) - _log_greatest(outside, outside_failing)
    greater = max(log, 0.0)
    return greater + math.log((math.exp(-greater) + math.exp(log - greater)) / 2.0)


def _log_learnt(answers: int, failing: int, prior: tuple[float, float]) -> float:
    """Log likelihood of predictions that are learnt answer by answer, which is that of the mixture over the prior."""
    a, b = prior
    return (
        math.lgamma(failing + a)
        + math.lgamma(answers - failing + b)
        - math.lgamma(answers + a + b)
        + math.lgamma(a + b)
        - math.lgamma(a)
        - math.lgamma(b)
    )


def _log_greatest(answers: int, failing: int) -> float:
    """Log likelihood at the observed failing share."""
    return sum(count * math.log(count / answers) for count in (failing, answers - failing) if count)


def selected(logs: Sequence[float], looked_at: int, rate: float) -> int:
    """Number of the greatest e-values, given sorted, that e-BH selects (Wang and Ramdas, JRSS B 2022).

    The false discovery rate is at most `rate` whatever the dependence, also if some candidates were left out by any
    rule, as long as all that were looked at are counted.
    """
    return max(
        (rank for rank, log in enumerate(logs, 1) if log >= math.log(looked_at / (rate * rank))),
        default=0,
    )
