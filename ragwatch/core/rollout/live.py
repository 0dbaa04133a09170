"""Decides the live stage by confidence sequences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import NamedTuple

from ragwatch.core.compare import Interval
from ragwatch.core.drift.bands import HedgedBand
from ragwatch.core.rollout.definition import Decision, Measured, RolloutStep, StageReport, decided

USER_METRIC = "user"
_SHARE_RISK = 0.01


class LiveAnswer(NamedTuple):
    """One answer of live traffic, with its time in seconds, known scores, and weight 1 / inclusion probability."""

    at: float
    is_b: bool
    scores: Mapping[str, float]
    weight: float = 1.0


class LiveRules(NamedTuple):
    """Rules of the live stage.

    Attributes:
        metrics: Metrics that are looked at; a loss in any of them stops B.
        deciding: Those of them that must exclude a loss above the margin.
        margin: Largest loss that is accepted.
        confidence: Probability with which no decision is wrong.
    """

    metrics: Sequence[str]
    deciding: frozenset[str]
    margin: float = 0.05
    share: float = 0.05
    confidence: float = 0.95


class _Arm:
    """Confidence sequence and mean of one metric in one variant."""

    def __init__(self, risk: float, max_weight: float) -> None:
        self.band = HedgedBand(risk, max_weight)
        self.n = 0
        self._scores: list[tuple[float, float]] = []

    def add(self, score: float, weight: float) -> None:
        """Adds a score in [0, 1]."""
        self.band = self.band.after(score, weight)
        self.n += 1
        self._scores.append((score, weight))

    @property
    def mean(self) -> float | None:
        """Weighted mean; None without scores."""
        total = fsum(weight for _, weight in self._scores)
        return fsum(score * weight for score, weight in self._scores) / total if total else None


def live_stage(answers: Iterable[LiveAnswer], rules: LiveRules, notes: Iterable[str] = ()) -> StageReport:
    """Looks at the metrics after every answer, in order of time, and stops at the first decision."""
    ordered = sorted(answers, key=lambda answer: answer.at)
    heaviest = max((answer.weight for answer in ordered), default=1.0)
    risk = (1.0 - rules.confidence) / (2 * max(1, len(rules.metrics)))
    arms = {name: (_Arm(risk, heaviest), _Arm(risk, heaviest)) for name in rules.metrics}
    split = _Arm(_SHARE_RISK, heaviest)
    decisions = dict.fromkeys(rules.metrics, Decision.OPEN)
    for answer in ordered:
        split.add(float(answer.is_b), answer.weight)
        for name in rules.metrics:
            if name in answer.scores:
                arms[name][answer.is_b].add(answer.scores[name], answer.weight)
                decisions[name] = _decision(*arms[name], rules.margin)
        if _is_settled(decisions, rules.deciding):
            break
    metrics = [_of_arms(name, *pair, rules) for name, pair in arms.items()]
    return decided(RolloutStep.LIVE, metrics, [*notes, *_split_notes(split, rules.share, len(ordered))])


def _is_settled(decisions: Mapping[str, Decision], deciding: frozenset[str]) -> bool:
    if Decision.WORSE in decisions.values():
        return True
    return bool(deciding) and all(decisions.get(name) is Decision.PASSED for name in deciding)


def _of_arms(name: str, a: _Arm, b: _Arm, rules: LiveRules) -> Measured:
    first, second = a.mean, b.mean
    change = None
    if first is not None and second is not None:
        change = Interval(second - first, b.band.low - a.band.high, b.band.high - a.band.low)
    decision = _decision(a, b, rules.margin)
    return Measured(name, first, second, change, n_a=a.n, n_b=b.n, decision=decision, decides=name in rules.deciding)


def _decision(a: _Arm, b: _Arm, margin: float) -> Decision:
    if b.band.low - a.band.high >= -margin:
        return Decision.PASSED
    return Decision.WORSE if b.band.high < a.band.low else Decision.OPEN


def _split_notes(split: _Arm, share: float, total: int) -> list[str]:
    """Returns how the traffic was split, and a warning if that is not as configured."""
    if split.mean is None:
        return ["no answer names its variant since the start"]
    notes = [f"B has {100 * split.mean:.1f} % of the answers; {split.n} of {total} answers were looked at"]
    if not split.band.low <= share <= split.band.high:
        notes.append(
            f"the split is not {100 * share:g} % as configured: find the cause before you trust the comparison"
        )
    return notes
