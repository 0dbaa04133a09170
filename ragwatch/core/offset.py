"""Offset: by how much one judge scores the same answers differently from another, with its interval."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ragwatch.core.estimate import Addends
from ragwatch.core.estimators import hajek


@dataclass(frozen=True, slots=True)
class JudgeOffset:
    """Mean of `after - before` over the same answers, in [-1, 1], with its interval; `n` answers had both scores."""

    value: float
    low: float
    high: float
    n: int

    def to_record(self) -> dict[str, float | int]:
        """As JSON values."""
        return {"value": self.value, "low": self.low, "high": self.high, "n": self.n}


def offset(pairs: Iterable[tuple[float, float]], confidence: float = 0.95) -> JudgeOffset | None:
    """The offset of (before, after) scores in [0, 1]; None of none.

    What rose and what fell are averaged apart, like scores, each with an interval at half the risk (Bonferroni): most
    answers score the same with both judges, and an interval of few that do not holds only where it knows about the 0.

    >>> found = offset([(1.0, 1.0)] * 90 + [(1.0, 0.5)] * 10)
    >>> found.value, found.n, round(found.low, 3), round(found.high, 3)
    (-0.05, 100, -0.097, 0.017)
    >>> offset([]) is None
    True
    """
    differences = [after - before for before, after in pairs]
    rose, fell = (
        hajek.estimate(
            Addends.of((max(0.0, sign * each), 1.0) for each in differences), confidence=(1.0 + confidence) / 2.0
        )
        for sign in (1.0, -1.0)
    )
    if rose is None or fell is None:
        return None
    return JudgeOffset(rose.value - fell.value, rose.low - fell.high, rose.high - fell.low, len(differences))
