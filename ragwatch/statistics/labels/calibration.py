"""Compares the scores of a judge with labels by people: agreement, error rates, reliability of probabilities.

A score has one of three levels: none (0), partly (between 0 and 1) or all (1). Judge and people agree on an answer if
both scores have the same level. Claims are compared one by one as well; the claims of one answer are not independent,
which makes their intervals somewhat too narrow, so conclusions are drawn from answers.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from ragwatch.model.estimate import Addends
from ragwatch.model.evidence import ClaimVerdict
from ragwatch.model.quantities import Quantity
from ragwatch.statistics.estimators import hajek
from ragwatch.statistics.estimators.corrected import MIN_LABELS
from ragwatch.statistics.estimators.interval import CountedInterval
from ragwatch.statistics.estimators.level import CALIBRATED_LABELS
from ragwatch.statistics.labels.agreement import (
    Agreement,
    CalibrationBin,
    LengthPreference,
    LengthScore,
    TooFewLabels,
    calibration_error,
    compare,
    length_preference,
    reliability,
)

CLASSES = tuple(ClaimVerdict)
_WORST = 10  # answers that are listed


class LabelScale(IntEnum):
    """Level of a score."""

    NONE = 0
    PARTLY = 1
    ALL = 2


def level(score: float) -> LabelScale:
    """Returns the level of a score."""
    return LabelScale.NONE if score <= 0.0 else LabelScale.ALL if score >= 1.0 else LabelScale.PARTLY


@dataclass(frozen=True, slots=True)
class LabelledScore:
    """The score of a judge and the score of people for one answer."""

    key: str
    judge: float
    people: float
    probability: float | None = None  # of being drawn and selected for labelling; None if unknown
    chars: int | None = None  # length of the answer in characters; None if its text is not stored any more

    @property
    def agree(self) -> bool:
        """Whether both scores have the same level."""
        return level(self.judge) is level(self.people)

    @property
    def difference(self) -> float:
        """Absolute difference of the scores."""
        return abs(self.judge - self.people)


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """One claim: the judge's verdict, its probability of support (None if it gives none), and a person's verdict."""

    judge: ClaimVerdict
    support: float | None
    people: ClaimVerdict


def traffic_agreement(
    pairs: Iterable[LabelledScore], minimum: int = MIN_LABELS, confidence: float = 0.95
) -> CountedInterval | None:
    """Estimates the share of answers in all traffic on which judge and people agree; None below `minimum` answers.

    Answers with a known probability are weighted by its inverse. If there are fewer than `minimum` of them, all answers
    have the same weight: the agreement is then underestimated if people label more answers of which the judge is
    unsure.
    """
    pairs = list(pairs)
    weighted = [(float(pair.agree), pair.probability) for pair in pairs if pair.probability is not None]
    rows = weighted if len(weighted) >= minimum else [(float(pair.agree), 1.0) for pair in pairs]
    if len(rows) < max(1, minimum):
        return None
    value, low, high, _ = hajek.interval(Addends.of(rows), confidence)
    return CountedInterval(value, low, high, len(rows))


@dataclass(frozen=True, slots=True)
class QuantityReport:
    """Agreement of a judge with people on one quantity, and the answers with the largest differences, largest first."""

    labels: int
    labelled: Agreement | TooFewLabels
    traffic: CountedInterval | None
    worst: tuple[LabelledScore, ...]
    length: LengthPreference | TooFewLabels


@dataclass(frozen=True, slots=True)
class ClaimReport:
    """Agreement of a judge with people on the verdicts of claims, by class in the order of `ClaimVerdict`.

    Without probabilities of support, the reliability curve is empty and its error unknown.
    """

    labelled: Agreement | TooFewLabels
    curve: tuple[CalibrationBin, ...]
    error: float | None


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """Agreement of a judge with people on all quantities."""

    quantities: Mapping[Quantity, QuantityReport]  # agreement by quantity; quantities without labels are left out
    claims: ClaimReport | None
    people: Agreement | TooFewLabels | None  # of two people on the same answers: an upper bound for judges

    @property
    def conclusive(self) -> bool:
        """Whether there are enough labels for at least one quantity."""
        return any(isinstance(report.labelled, Agreement) for report in self.quantities.values())

    @property
    def missing(self) -> int:
        """Number of labels that are missing until the report is conclusive and levels are calibrated; 0 if it is."""
        if self.conclusive:
            return 0
        reports = self.quantities.values()
        missing = [report.labelled.missing for report in reports if isinstance(report.labelled, TooFewLabels)]
        return min(missing, default=CALIBRATED_LABELS)

    @property
    def uncalibrated(self) -> int:
        """Number of labels that are missing until the level of one route with all of them would be calibrated."""
        return max(0, CALIBRATED_LABELS - max((report.labels for report in self.quantities.values()), default=0))


def report(
    pairs: Mapping[Quantity, Sequence[LabelledScore]],
    claims: Sequence[LabelledClaim],
    twice: Sequence[tuple[float, float]],
    *,
    minimum: int = MIN_LABELS,
    confidence: float = 0.95,
) -> CalibrationReport:
    """Computes the agreement of a judge with people.

    `twice` are pairs of scores that two people gave one answer. Below `minimum` labels the agreement in traffic is
    unknown; the answers with the largest differences are listed.
    """
    quantities = {
        quantity: QuantityReport(
            len(rows),
            _compared(rows, confidence),
            traffic_agreement(rows, minimum, confidence),
            tuple(
                row for row in sorted(rows, key=lambda row: (-row.difference, row.key))[:_WORST] if row.difference > 0.0
            ),
            length_preference(
                (LengthScore(row.judge, row.people, row.chars) for row in rows if row.chars is not None),
                confidence=confidence,
            ),
        )
        for quantity, rows in pairs.items()
        if rows
    }
    people = compare(_matrix((level(first), level(second)) for first, second in twice), confidence=confidence)
    cells = ((CLASSES.index(claim.people), CLASSES.index(claim.judge)) for claim in claims)
    graded = [(claim.support, claim.people is ClaimVerdict.SUPPORTED) for claim in claims if claim.support is not None]
    curve = reliability(graded, confidence=confidence)
    of_claims = ClaimReport(compare(_matrix(cells), confidence=confidence), curve, calibration_error(curve))
    return CalibrationReport(quantities, of_claims if claims else None, people if twice else None)


def _compared(rows: Sequence[LabelledScore], confidence: float) -> Agreement | TooFewLabels:
    """The agreement on answers; with too few of them, as many are missing as a level needs, or more."""
    cells = ((level(pair.people), level(pair.judge)) for pair in rows)
    agreement = compare(_matrix(cells), confidence=confidence)
    if isinstance(agreement, Agreement):
        return agreement
    return TooFewLabels(agreement.labels, max(agreement.missing, CALIBRATED_LABELS - agreement.labels))


def _matrix(cells: Iterable[tuple[int, int]]) -> list[list[int]]:
    counts = Counter(cells)
    return [[counts[row, column] for column in range(3)] for row in range(3)]
