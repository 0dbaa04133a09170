"""Defines the stages of a rollout and their reports, and how metrics decide a stage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from ragwatch.core.compare import Interval


class RolloutStep(StrEnum):
    """Stages of a rollout, in order."""

    OFFLINE = "offline"
    JUDGED = "judged"
    LIVE = "live"


class Outcome(StrEnum):
    """Outcome of a stage."""

    PASSED = "passed"
    STOPPED = "stopped"
    UNDECIDED = "undecided"
    NOT_RUN = "not_run"


class Decision(StrEnum):
    """What a metric says about B."""

    PASSED = "passed"
    WORSE = "worse"
    OPEN = "open"


class Measured(NamedTuple):
    """One metric of a stage.

    Attributes:
        change: B - A with its interval; None if either is unknown.
        n_a: Answers of A with a value; where a stage is looked at once, questions of the smaller side.
        n_b: The same of B.
        decision: What it says about B.
        decides: Whether the stage needs it to pass; any metric can stop the stage.
    """

    name: str
    a: float | None
    b: float | None
    change: Interval | None
    n_a: int
    n_b: int
    decision: Decision
    decides: bool = True


@dataclass(frozen=True, slots=True)
class StageReport:
    """Result of one stage, why in one sentence, its metrics, and warnings or what is left out."""

    step: RolloutStep
    outcome: Outcome
    reason: str
    metrics: tuple[Measured, ...] = ()
    notes: tuple[str, ...] = ()


def decided(step: RolloutStep, metrics: Sequence[Measured], notes: Iterable[str] = ()) -> StageReport:
    """Returns the report of a stage from its metrics."""
    worse = [metric.name for metric in metrics if metric.decision is Decision.WORSE]
    still_open = [metric.name for metric in metrics if metric.decides and metric.decision is Decision.OPEN]
    if worse:
        outcome, reason = Outcome.STOPPED, f"B is worse in {_names(worse)}"
    elif still_open or not any(metric.decides for metric in metrics):
        outcome, reason = Outcome.UNDECIDED, f"not enough data to decide on {_names(still_open) or 'any metric'}"
    else:
        outcome, reason = Outcome.PASSED, "B is not worse in any metric"
    return StageReport(step, outcome, reason, tuple(metrics), tuple(notes))


def _names(names: Sequence[str]) -> str:
    return ", ".join(name.replace("_", " ") for name in names)
