"""The level of one quantity: which answers the judge calls good, which of them people labelled, and what that tells.

A judge says yes where a score is the best there is: of a share of claims, where all are supported. The estimator is in
`statistics.estimators.level`; what is known about a judge's error comes as an argument.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from ragwatch.model.estimate import Addends
from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.statistics.estimators.level import MOST_UNMEASURED, LabelCounts, Level, Rates, is_best, level, quartiles

MOST_LABELS = 200
"""Further labels up to which is said how many decide."""
_STEP = 10
_LEAST_SHARE = 0.002
_FITTINGS = 30  # of expected labels to their margins


class ScoredAnswer(NamedTuple):
    """What the judge says of one answer, its inclusion probability, its language where the judge was not measured."""

    id: str
    score: float
    probability: float = 1.0
    language: str | None = None


def unmeasured_share(answers: Iterable[ScoredAnswer]) -> float:
    """Share of the answers, by weight, in a language in which the judge's error is not known; 0 without answers.

    >>> unmeasured_share([ScoredAnswer("a", 1.0), ScoredAnswer("b", 1.0, 0.5, "de")])
    0.6666666666666666
    """
    weights = [(one.language is not None, 1.0 / one.probability) for one in answers]
    return sum(weight for other, weight in weights if other) / (sum(weight for _, weight in weights) or 1.0)


@dataclass(frozen=True, slots=True)
class PersonsLabel:
    """What a person says of one answer, and with which probability the answer was selected for that."""

    scores: Mapping[Quantity, float | None]
    probability: float


@dataclass(frozen=True, slots=True)
class LevelCounts:
    """What the level of one quantity is computed from; if `low_is_good`, it is the share of bad answers.

    `yes` and `no` are effective numbers of answers that the judge calls good and bad.
    """

    families: tuple[Rates, ...]
    yes: float
    no: float
    labels: LabelCounts
    count: int
    low_is_good: bool

    def level(self, confidence: float = 0.95) -> Level:
        """Returns the level."""
        share = level(self.families, self.yes, self.no, self.labels, count=self.count, confidence=confidence)
        return share.complement if self.low_is_good else share

    def further_labels(self, threshold: float, confidence: float = 0.95) -> int | None:
        """Returns how many further labels (in tens) should take the threshold out of the interval; None for too many.

        The share of good answers is taken to be each quartile of what it may be: the number is that which decides at
        two of the three. The judge is taken to tell good from bad as in these labels and families.
        """
        limit = 1.0 - threshold if self.low_is_good else threshold
        shares = quartiles(self.families, self.yes, self.no, self.labels)
        numbers = range(_STEP, MOST_LABELS + 1, _STEP)

        def deciding(number: int) -> int:
            """Of how many of the shares so many further labels take the limit out of the interval."""
            of_shares = 0
            for good in shares:
                more = self._expected_labels(number, min(max(1.0 - good, _LEAST_SHARE), 1.0 - _LEAST_SHARE))
                then = level(self.families, self.yes, self.no, more, count=0, confidence=confidence)
                of_shares += not then.low < limit <= then.high
            return of_shares

        place = bisect_left(numbers, 2, key=deciding)
        return numbers[place] if place < len(numbers) else None

    def _expected_labels(self, number: int, bad: float) -> LabelCounts:
        """Labels with so many further ones: their margins are fixed, the odds ratio is that of labels and families."""
        own = self.labels
        g, h = map(fmean, zip(*self.families, strict=True)) if self.families else (0.5, 0.5)
        cells = [own.good_yes + g, own.good_no + 1.0 - g, own.bad_yes + h, own.bad_no + 1.0 - h]
        yes = self.yes / (self.yes + self.no)
        for _ in range(_FITTINGS):
            for (a, b), share in (((0, 1), 1.0 - bad), ((2, 3), bad), ((0, 2), yes), ((1, 3), 1.0 - yes)):
                factor = share / (cells[a] + cells[b]) if share else 0.0
                cells[a], cells[b] = cells[a] * factor, cells[b] * factor
        return LabelCounts(*(count + number * cell for count, cell in zip(own, cells, strict=True)))


@dataclass(frozen=True, slots=True)
class KnownError:
    """What is known about a judge's error: its rates on labelled families by quantity, labels by id of the answer."""

    families: Mapping[Quantity, tuple[Rates, ...]]
    labels: Mapping[str, PersonsLabel]

    def counts(self, quantity: Quantity, answers: Iterable[ScoredAnswer]) -> LevelCounts | None:
        """Counts answers and their labels; None without answers, or where neither families nor labels say anything.

        Families say nothing where more than a few answers are in a language in which the judge was not measured.
        """
        scored, low_is_good = list(answers), quantity in LOW_IS_GOOD
        known = unmeasured_share(scored) <= MOST_UNMEASURED
        families = self.families.get(quantity, ()) if known else ()
        own = [
            (1.0 - score if low_is_good else score, is_best(quantity, one.score), label.probability * one.probability)
            for one in {one.id: one for one in scored}.values()
            if (label := self.labels.get(one.id)) is not None and (score := label.scores.get(quantity)) is not None
        ]
        if not scored or not (families or own):
            return None
        every = Addends.of((float(is_best(quantity, one.score)), one.probability) for one in scored)
        effective = every.w * every.w / every.w2
        yes = effective * every.wx / every.w
        return LevelCounts(families, yes, effective - yes, LabelCounts.of(own), count=len(own), low_is_good=low_is_good)
