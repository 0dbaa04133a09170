"""Mean difference between the scores of two judges on the same answers, with its interval."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ragwatch.core.estimate import Addends
from ragwatch.core.estimators import hajek


@dataclass(frozen=True, slots=True)
class JudgeOffset:
    """Mean of `after - before` over the same answers, in [-1, 1], with its interval; `n` answers have both scores."""

    value: float
    low: float
    high: float
    n: int

    def to_record(self) -> dict[str, float | int]:
        """Return the offset as JSON values."""
        return {"value": self.value, "low": self.low, "high": self.high, "n": self.n}


def offset(pairs: Iterable[tuple[float, float]], confidence: float = 0.95) -> JudgeOffset | None:
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
    return JudgeOffset(
        increase.value - decrease.value, increase.low - decrease.high, increase.high - decrease.low, len(differences)
    )
