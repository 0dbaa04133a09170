"""The stage that changed: the stage at fault whose share of the answers rose most against its baseline.

The most frequent stage at fault says how a service usually fails, not what has broken: a route on which 12 % of the
answers fail in retrieval every day, and 10 % in generation since an hour ago, has a fault in generation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ragwatch.model.quantities import Quantity
from ragwatch.model.stages import Stage

MIN_SAMPLES = 10
IGNORED = "ignored"
"""Counted in place of the stage `none` for a good answer that does not use the top-ranked context."""
KNOWLEDGE_GAP = "knowledge_gap"
"""Counted in place of the stage `retrieval` for an abstention, where nothing says that the question has an answer."""
StageCounts = Mapping[str, int]
"""Number of answers by stage, or `IGNORED`."""


@dataclass(frozen=True, slots=True)
class StageChange:
    """A stage at fault that has become more frequent.

    Attributes:
        stage: The stage.
        share: Share of the answers with this stage at fault now.
        before: The same in the baseline.
    """

    stage: Stage
    share: float
    before: float


def counted_stage(stage: Stage, ignored: float | None) -> str:
    """Return what to count an answer as.

    Args:
        stage: Its stage at fault.
        ignored: Its score `top_ranked_ignored`.

    >>> counted_stage(Stage.NONE, 1.0), counted_stage(Stage.NONE, None), counted_stage(Stage.RETRIEVAL, 1.0)
    ('ignored', 'none', 'retrieval')
    """
    return IGNORED if stage is Stage.NONE and ignored == 1.0 else str(stage)


def changed_stage(now: StageCounts, before: StageCounts, quantity: Quantity) -> StageChange | None:
    """Return the stage whose share rose most; None if none rose, or if either side has less than `MIN_SAMPLES` answers.

    A good answer that does not use the top-ranked context counts as a fault of alignment if the alarm is about that.

    >>> changed_stage({"none": 25, "generation": 10, "retrieval": 15}, {"none": 70, "retrieval": 30},
    ...               Quantity.FAITHFULNESS)
    StageChange(stage=<Stage.GENERATION: 'generation'>, share=0.2, before=0.0)
    >>> changed_stage({"none": 5, "ignored": 5}, {"none": 9, "ignored": 1}, Quantity.TOP_RANKED_IGNORED)
    StageChange(stage=<Stage.ALIGNMENT: 'alignment'>, share=0.5, before=0.1)
    """
    if min(sum(now.values()), sum(before.values())) < MIN_SAMPLES:
        return None
    changes = (StageChange(stage, *(_share(counts, stage, quantity) for counts in (now, before))) for stage in _FAULTS)
    most = max(changes, key=_rise)
    return most if _rise(most) > 0.0 else None


_FAULTS = tuple(stage for stage in Stage if stage is not Stage.NONE)


def stage_shares(counts: StageCounts) -> dict[Stage, float]:
    """Return the share of each stage; empty below `MIN_SAMPLES` answers.

    >>> stage_shares({"none": 6, "ignored": 2, "retrieval": 2})[Stage.NONE]
    0.8
    """
    if sum(counts.values()) < MIN_SAMPLES:
        return {}
    return {stage: _share(counts, stage, Quantity.FAITHFULNESS) for stage in Stage}


def _share(counts: StageCounts, stage: Stage, quantity: Quantity) -> float:
    home = Stage.ALIGNMENT if quantity is Quantity.TOP_RANKED_IGNORED else Stage.NONE
    names: Iterable[str] = (stage, IGNORED) if stage is home else (stage,)
    return sum(counts.get(name, 0) for name in names) / sum(counts.values())


def _rise(change: StageChange) -> float:
    return change.share - change.before
