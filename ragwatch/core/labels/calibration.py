"""Calibration: what judges said beside what people said, and what that tells of the judge.

A score is one of three things: none (0), all (1) or partly (between). Judge and people agree on an answer when it is
the same thing to both. Claims are compared one by one as well; those of one answer are not independent of each other,
so that their intervals are somewhat too narrow, and conclusions are drawn from answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from ragwatch.core.estimate import Addends
from ragwatch.core.estimators import hajek
from ragwatch.core.estimators.rogan_gladen import ErrorRates
from ragwatch.core.evidence import ClaimVerdict
from ragwatch.core.labels.agreement import (
    FEWEST,
    Agreement,
    CalibrationBin,
    ShareEstimate,
    TooFewLabels,
    calibration_error,
    compare,
    reliability,
)
from ragwatch.core.scores import Quantity

CLASSES = tuple(ClaimVerdict)


class LabelScale(IntEnum):
    """What a score is."""

    NONE = 0
    PARTLY = 1
    ALL = 2


def level(score: float) -> LabelScale:
    """Which of the three a score is.

    >>> [level(each).name for each in (0.0, 0.4, 1.0)]
    ['NONE', 'PARTLY', 'ALL']
    """
    return LabelScale.NONE if score <= 0.0 else LabelScale.ALL if score >= 1.0 else LabelScale.PARTLY


@dataclass(frozen=True, slots=True)
class LabelledScore:
    """One answer, as a judge and as people scored it.

    Attributes:
        key: Identity of the sample in the store.
        judge: The judge's score, in [0, 1].
        people: Mean score of the people who scored it, in [0, 1].
        probability: With which it was drawn and put before people; None where that is not known.
    """

    key: str
    judge: float
    people: float
    probability: float | None = None

    @property
    def agree(self) -> bool:
        """Whether it is the same thing to both."""
        return level(self.judge) is level(self.people)

    @property
    def miss(self) -> float:
        """How far they are apart."""
        return abs(self.judge - self.people)


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """One claim: the judge's verdict and its probability of support, where it gives one; and a person's verdict."""

    judge: ClaimVerdict
    support: float | None
    people: ClaimVerdict


def in_traffic(pairs: Iterable[LabelledScore], fewest: int = FEWEST, confidence: float = 0.95) -> ShareEstimate | None:
    """Share of answers on which judge and people agree, as all traffic would show it. None of fewer than `fewest`.

    Answers of which the probability is known are weighted by its inverse. Only where these are too few, all are taken
    as they are: people may have been asked more often where the judge is unsure, and it then looks worse than it is.

    >>> pairs = [Pair("a", 1.0, 1.0, 0.1), Pair("b", 0.0, 1.0, 0.4)]
    >>> round(in_traffic(pairs, fewest=2).value, 4), in_traffic(pairs, fewest=3)                 # 10 / (10 + 2.5)
    (0.8, None)
    """
    known = list(pairs)
    weighted = [(float(pair.agree), pair.probability) for pair in known if pair.probability is not None]
    rows = weighted if len(weighted) >= fewest else [(float(pair.agree), 1.0) for pair in known]
    if len(rows) < max(1, fewest):
        return None
    value, low, high, _ = hajek.interval(Addends.of(rows), confidence)
    return ShareEstimate(value, low, high, len(rows))


def known_of(pairs: Iterable[LabelledScore]) -> ErrorRates | None:
    """What labels say of a judge that says yes or no: counts that give the weighted rates, for their effective number.

    None where somebody said neither yes nor no.

    >>> known_of([Pair("a", 1.0, 1.0), Pair("b", 0.0, 1.0), Pair("c", 0.0, 0.0)])
    Known(hits=1, positives=2, rejections=1, negatives=1)
    """
    sides: dict[LabelScale, list[tuple[float, float]]] = {LabelScale.ALL: [], LabelScale.NONE: []}
    for pair in pairs:
        side = sides.get(level(pair.people))
        if side is None or level(pair.judge) is LabelScale.PARTLY:
            return None
        side.append((float(pair.agree), pair.probability or 1.0))
    return ErrorRates(*_counts(sides[LabelScale.ALL]), *_counts(sides[LabelScale.NONE]))


def _counts(rows: Sequence[tuple[float, float]]) -> tuple[int, int]:
    if not rows:
        return 0, 0
    sums = Addends.of(rows)
    trials = round(sums.w * sums.w / sums.w2)
    return round(trials * sums.wx / sums.w), trials


@dataclass(frozen=True, slots=True)
class QuantityReport:
    """What labels tell of a judge and one quantity.

    Attributes:
        labels: Answers that both have scored.
        labelled: Agreement on these answers, class by class (none, partly, all), or how many labels are wanted.
        traffic: Share on which they agree in all traffic; None with too few labels.
        worst: Answers on which they are furthest apart, worst first.
    """

    labels: int
    labelled: Agreement | TooFewLabels
    traffic: ShareEstimate | None
    worst: tuple[LabelledScore, ...]


@dataclass(frozen=True, slots=True)
class ClaimReport:
    """What labels tell of a judge's verdicts on claims.

    Attributes:
        labelled: Agreement, by class in the order of `ClaimVerdict`.
        curve: Reliability of its probability of support; empty where it gives none.
        error: Expected calibration error; None where it gives none.
    """

    labelled: Agreement | TooFewLabels
    curve: tuple[CalibrationBin, ...]
    error: float | None


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """A judge beside people.

    Attributes:
        quantities: What there are labels for.
        claims: None where people judged no claim.
        people: Two people beside each other on the same answers, which no judge can be expected to beat; None where
            nothing was labelled twice.
    """

    quantities: Mapping[Quantity, QuantityReport]
    claims: ClaimReport | None
    people: Agreement | TooFewLabels | None

    @property
    def conclusive(self) -> bool:
        """Whether anything can be concluded."""
        return any(isinstance(each.labelled, Agreement) for each in self.quantities.values())

    @property
    def missing(self) -> int:
        """Labels more with which something could be concluded, as things look now; 0 when something can."""
        if self.conclusive:
            return 0
        short = [each.labelled.missing for each in self.quantities.values() if isinstance(each.labelled, TooFewLabels)]
        return min(short, default=FEWEST)


def report(
    pairs: Mapping[Quantity, Sequence[LabelledScore]],
    claims: Sequence[LabelledClaim],
    twice: Sequence[tuple[float, float]],
    *,
    fewest: int = FEWEST,
    confidence: float = 0.95,
    worst: int = 10,
) -> CalibrationReport:
    """Everything that labels tell of a judge.

    Args:
        pairs: By quantity, answers that the judge and people have scored.
        claims: Claims on which both have a verdict.
        twice: Scores of two people on the same answer.
        fewest: Labels below which the agreement in traffic is not given.
        confidence: Two-sided level of all intervals.
        worst: Misses to list.

    >>> report({}, [], []).missing
    30
    """
    found = {
        quantity: QuantityReport(
            len(rows),
            compare(_matrix(((level(each.people), level(each.judge)) for each in rows), 3), confidence=confidence),
            in_traffic(rows, fewest, confidence),
            _worst(rows, worst),
        )
        for quantity, rows in pairs.items()
        if rows
    }
    people = compare(_matrix(((level(one), level(other)) for one, other in twice), 3), confidence=confidence)
    return CalibrationReport(found, _of_claims(claims, confidence) if claims else None, people if twice else None)


def _worst(rows: Sequence[LabelledScore], most: int) -> tuple[LabelledScore, ...]:
    misses = [each for each in rows if each.miss > 0.0]
    return tuple(sorted(misses, key=lambda each: (-each.miss, each.key))[:most])


def _of_claims(claims: Sequence[LabelledClaim], confidence: float) -> ClaimReport:
    places = ((CLASSES.index(each.people), CLASSES.index(each.judge)) for each in claims)
    graded = [(each.support, each.people is ClaimVerdict.SUPPORTED) for each in claims if each.support is not None]
    curve = reliability(graded, confidence=confidence)
    return ClaimReport(compare(_matrix(places, 3), confidence=confidence), curve, calibration_error(curve))


def _matrix(places: Iterable[tuple[int, int]], size: int) -> list[list[int]]:
    cells = [[0] * size for _ in range(size)]
    for row, column in places:
        cells[row][column] += 1
    return cells
