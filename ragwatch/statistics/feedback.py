"""Feedback of users: reads thumbs, ratings and task outcomes as a score in [0, 1], and defines their figures.

Users choose which answers they rate, so a mean of their scores describes these alone. The response rate belongs beside
it; worst-case bounds count every other answer as 0 and as 1.

How scores of a judge go with those of users is Pearson's r of weighted pairs, w = 1 / inclusion probability. Its
variance is that of its influence function, z_x z_y - r (z_x^2 + z_y^2) / 2, and at least that of normal pairs. The
interval is symmetric on Fisher's scale (1915), with the quantile of Student's t. Near -1 and 1, where few pairs show no
exception, r counts as if 3 of n_eff pairs could be one (the rule of three) at the end that is nearer to 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from ragwatch.model.estimate import Estimate
from ragwatch.model.quantities import Quantity
from ragwatch.statistics.estimators.interval import CountedInterval, quantile

NAME = "user_score"
_GOOD = frozenset({"up", "yes", "good", "true", "like", "👍", "+1", "1", "positive", "helpful"}) | frozenset(
    {"success", "succeeded", "solved", "resolved", "completed", "passed", "thumbs_up", "thumbs up", "thumbsup"}
)
_BAD = frozenset({"down", "no", "bad", "false", "dislike", "👎", "-1", "0", "negative", "unhelpful"}) | frozenset(
    {"failure", "failed", "unsolved", "unresolved", "abandoned", "thumbs_down", "thumbs down", "thumbsdown"}
)
_FRACTION = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,4})?) ?/ ?([0-9]{1,4})")
_RATINGS = frozenset({"rating", "stars"})
_UNSCALED = frozenset({"thumbs", "thumbs_up", "thumbs_down", "task_success", "task_outcome"})
FIELDS = (NAME, "feedback", "thumbs", "thumbs_up", "thumbs_down", "rating", "stars", "task_success", "task_outcome")
"""Fields that are read as feedback, in order of preference."""
MAX_NUMBER = 1e15
_INNER = (*FIELDS, "score", "value")


class FeedbackOutcome(StrEnum):
    """What became of feedback. The values are label values of a series."""

    JOINED = "joined"
    REPLACED = "replaced"
    REPEATED = "repeated"
    NOT_DRAWN = "not_drawn"
    UNKNOWN_ANSWER = "unknown_answer"
    UNKNOWN_TEXT = "unknown_text"
    UNKNOWN_SCALE = "unknown_scale"
    WRONG_TYPE = "wrong_type"
    MISSING = "missing"


def joining_outcome(stored: tuple[float, float | None] | None, at: float, score: float) -> FeedbackOutcome:
    """What becomes of feedback on a stored answer, of which the last one counts. Only new or replaced ones are stored.

    `stored` is time and score of what is stored; the score is None after an erasure.

    >>> [str(joining_outcome(stored, 5.0, 1.0)) for stored in (None, (4.0, 0.0), (6.0, 0.0), (4.0, 1.0), (0.0, None))]
    ['joined', 'replaced', 'repeated', 'repeated', 'unknown_answer']
    """
    if stored is None:
        return FeedbackOutcome.JOINED
    stored_at, stored_score = stored
    if stored_score is None:
        return FeedbackOutcome.UNKNOWN_ANSWER
    return FeedbackOutcome.REPEATED if at < stored_at or score == stored_score else FeedbackOutcome.REPLACED


class UnreadFeedbackError(ValueError):
    """Feedback that cannot be read as a score: the reason that is counted, and the path of the field."""

    def __init__(self, outcome: FeedbackOutcome, field: str, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.field = field


@dataclass(frozen=True, slots=True)
class Scale:
    """The numbers that mean the worst and the best rating."""

    worst: float
    best: float

    def score(self, number: float) -> float | None:
        """Return a rating as a score in [0, 1]; None outside of the scale."""
        if not abs(number) <= MAX_NUMBER:
            return None
        score = (number - self.worst) / (self.best - self.worst) + 0.0  # no negative zero
        return score if 0.0 <= score <= 1.0 else None


def feedback_score(value: object, worst: float | None = None, best: float | None = None) -> float | None:
    """Return feedback of a user as a score in [0, 1]; None if it cannot be read.

    It may be true, false, a word such as `up` and `down`, or a number: on the given scale or, without one, a thumb (1
    and 0 or -1) or a score from 0 to 1.
    """
    if isinstance(value, str):
        word = value.strip().casefold()
        return 1.0 if word in _GOOD else 0.0 if word in _BAD else None
    if not isinstance(value, bool | int | float):
        return None
    if worst is not None and best is not None and not isinstance(value, bool):
        return Scale(worst, best).score(value)
    number = 0.0 if value == -1 else value
    return float(number) if 0.0 <= number <= 1.0 else None


def read_feedback(record: Mapping[str, object], scale: Scale | None = None) -> float | None:
    """Return the score in the first of `FIELDS` that can be read; UnreadFeedbackError if none can, None without any.

    A rating or number of stars needs a scale: the configured one, or one that the record gives, as text `4/5` or
    as an object `{"rating": 4, "min": 1, "max": 5}`. A scale without its worst number begins at 1.
    """
    unread: UnreadFeedbackError | None = None
    for name in FIELDS:
        value = record.get(name)
        if value is not None:
            try:
                return score_of(value, name, scale)
            except UnreadFeedbackError as error:  # a comment, perhaps beside a rating
                unread = unread or error
    if unread is not None:
        raise unread
    return None


def score_of(value: object, name: str, scale: Scale | None = None) -> float:
    """Return the score in a field, whose name says how a number is meant; raises UnreadFeedbackError if it is none."""
    if isinstance(value, Mapping):
        return _inner_score(value, name, scale)
    if isinstance(value, bool):
        return float(value is not (name == "thumbs_down"))
    if isinstance(value, int | float):
        return _number(value, name, scale)
    if isinstance(value, str) and (fraction := _FRACTION.fullmatch(value.strip())):
        return _scaled(float(fraction[1]), name, _checked(1.0, float(fraction[2]), name))
    if isinstance(value, str):
        score = feedback_score(value)
        if score is None:
            raise UnreadFeedbackError(FeedbackOutcome.UNKNOWN_TEXT, name, "is a text that is neither good nor bad")
        return 1.0 - score if name == "thumbs_down" else score
    raise UnreadFeedbackError(FeedbackOutcome.WRONG_TYPE, name, "must be true, false, a text or a number")


def _number(value: float, name: str, scale: Scale | None) -> float:
    if name in _RATINGS and scale is None:
        message = 'is a rating without a scale; configure `feedback: {worst: 1, best: 5}`, or log "4/5"'
        raise UnreadFeedbackError(FeedbackOutcome.UNKNOWN_SCALE, name, message)
    if scale is not None and name != NAME and name not in _UNSCALED:
        return _scaled(value, name, scale)
    score = feedback_score(value)
    if score is None or (name == NAME and value < 0):
        raise UnreadFeedbackError(FeedbackOutcome.UNKNOWN_SCALE, name, "is a number that is not from 0 to 1")
    return 1.0 - score if name == "thumbs_down" else score


def _scaled(value: float, name: str, scale: Scale) -> float:
    score = scale.score(value)
    if score is None:
        message = f"is not from {scale.worst:g} (worst) to {scale.best:g} (best)"
        raise UnreadFeedbackError(FeedbackOutcome.UNKNOWN_SCALE, name, message)
    return score


def _inner_score(value: Mapping[str, object], name: str, scale: Scale | None) -> float:
    """The score in an object such as `{"score": 4, "max": 5}`."""
    best = _first(value, "best", "max")
    if best is not None:
        worst = _first(value, "worst", "min")
        scale = _checked(1.0 if worst is None else worst, best, name)
    for inner in _INNER:
        one = value.get(inner)
        if one is not None and not isinstance(one, Mapping):
            return score_of(one, "rating" if best is not None else inner, scale)
    raise UnreadFeedbackError(FeedbackOutcome.MISSING, name, f"has none of {', '.join(_INNER)}")


def _first(value: Mapping[str, object], *names: str) -> object:
    return next((value[name] for name in names if value.get(name) is not None), None)


def _checked(worst: object, best: object, name: str) -> Scale:
    ends = [end for end in (worst, best) if isinstance(end, int | float) and not isinstance(end, bool)]
    if len(ends) < 2 or ends[0] == ends[1] or not max(map(abs, ends)) <= MAX_NUMBER:
        raise UnreadFeedbackError(FeedbackOutcome.UNKNOWN_SCALE, name, "has a scale that is not two different numbers")
    return Scale(*ends)


@dataclass(frozen=True, slots=True)
class UserScoreRow:
    """The mean score by users of a route and window; its `coverage` is the share of the drawn answers with feedback."""

    route: str
    window: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class JudgeCorrelation:
    """How the scores of a judge go with those of users, over the answers of the longest window that have both."""

    judge: str
    quantity: Quantity
    correlation: CountedInterval


@dataclass(frozen=True, slots=True)
class UserScores:
    """All figures of feedback; a mean without feedback, or a correlation of too few answers, has no row.

    `last_sample` is the time of the newest answer with feedback, by route.
    """

    rows: tuple[UserScoreRow, ...] = ()
    correlations: tuple[JudgeCorrelation, ...] = ()
    last_sample: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))


MIN_PAIRS = 50
_MIN_VARIANCE = 1e-9
_MIN_EFFECTIVE = 10.0
_POWERS = tuple((i, j) for i in range(5) for j in range(5 - i))


@dataclass(frozen=True, slots=True)
class PairSums:
    """Sums over pairs of w x^i y^j (`first`) and w^2 x^i y^j, by the order of `_POWERS`, which add up over time."""

    n: int = 0
    first: tuple[float, ...] = (0.0,) * len(_POWERS)
    second: tuple[float, ...] = (0.0,) * len(_POWERS)

    @classmethod
    def of(cls, pairs: Iterable[tuple[float, float, float]]) -> PairSums:
        """Return the sums over (x, y, inclusion probability)."""
        n, first, second = 0, [0.0] * len(_POWERS), [0.0] * len(_POWERS)
        for x, y, probability in pairs:
            n += 1
            w = 1.0 / probability
            for place, (i, j) in enumerate(_POWERS):
                term = w * x**i * y**j
                first[place] += term
                second[place] += w * term
        return cls(n, tuple(first), tuple(second))

    @classmethod
    def total(cls, parts: Sequence[PairSums]) -> PairSums:
        """Return the total of at least one part, added up column by column."""
        if len(parts) == 1:
            return parts[0]
        first = zip(*(part.first for part in parts), strict=True)
        second = zip(*(part.second for part in parts), strict=True)
        return cls(sum(part.n for part in parts), tuple(map(math.fsum, first)), tuple(map(math.fsum, second)))

    def __add__(self, other: PairSums) -> PairSums:
        return PairSums(
            self.n + other.n,
            tuple(map(float.__add__, self.first, other.first)),
            tuple(map(float.__add__, self.second, other.second)),
        )


def correlate(sums: PairSums, confidence: float = 0.95) -> CountedInterval | None:
    """Return the correlation; None for too few pairs, or if either score is always the same."""
    if sums.n < MIN_PAIRS:
        return None
    w = sums.first[0]
    moment = dict(zip(_POWERS, (total / w for total in sums.first), strict=True))
    mean_x, mean_y = moment[1, 0], moment[0, 1]
    var_x, var_y = moment[2, 0] - mean_x**2, moment[0, 2] - mean_y**2
    if min(var_x, var_y) <= _MIN_VARIANCE:
        return None
    r = max(-1.0, min(1.0, (moment[1, 1] - mean_x * mean_y) / math.sqrt(var_x * var_y)))
    n_eff = w * w / sums.second[0]
    if n_eff < _MIN_EFFECTIVE:
        return None
    variance = _influence(sums, (mean_x, mean_y), (var_x, var_y), r) / (w * w)
    inner = math.copysign(min(abs(r), 1.0 - 3.0 / n_eff), r)
    slope = 1.0 - inner * inner
    error = max(math.sqrt(max(0.0, variance)) / slope, 1.0 / math.sqrt(n_eff - 3.0))
    half = quantile(confidence, n_eff - 2.0) * error
    outer = math.copysign(min(abs(r), 1.0 - _MIN_VARIANCE), r)
    lower, upper = math.atanh(min(inner, outer)) - half, math.atanh(max(inner, outer)) + half
    return CountedInterval(r, min(r, math.tanh(lower)), max(r, math.tanh(upper)), sums.n)


def _influence(sums: PairSums, means: tuple[float, float], variances: tuple[float, float], r: float) -> float:
    """Return the sum of the squares of w times the influence of each pair on r."""
    (mean_x, mean_y), (var_x, var_y) = means, variances
    total = dict(zip(_POWERS, sums.second, strict=True))

    scale_x, scale_y = math.sqrt(var_x), math.sqrt(var_y)

    def central(i: int, j: int) -> float:
        """Sum of w^2 z_x^i z_y^j."""
        terms = (
            math.comb(i, a) * math.comb(j, b) * (-mean_x) ** (i - a) * (-mean_y) ** (j - b) * total[a, b]
            for a in range(i + 1)
            for b in range(j + 1)
        )
        return math.fsum(terms) / (math.pow(scale_x, i) * math.pow(scale_y, j))

    fourth = central(4, 0) + 2.0 * central(2, 2) + central(0, 4)
    return central(2, 2) - r * (central(3, 1) + central(1, 3)) + r * r / 4.0 * fourth
