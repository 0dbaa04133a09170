"""Stage of the service that is at fault for a bad answer, from the scores by a decision table.

Retrieval is checked first, because a generator cannot make up for missing contexts. The first row that applies names
the stage:

| an answer where ...                                                      | stage      |
|--------------------------------------------------------------------------|------------|
| nothing was retrieved, or no context is relevant                         | retrieval  |
| most sub-questions have no answer in the contexts (need_recall < 0.5)    | retrieval  |
| it abstains although a context is relevant                               | generation |
| claims are unsupported (faithfulness < 0.85) or contradicted             | generation |
| the relevant top context is unused and the question is not fully met     | alignment  |
| the question is not addressed at all                                     | generation |
| none of these                                                            | none       |

The stage that changed is the one whose share of the answers rose most against its baseline. The most frequent stage
says how a service usually fails, not what has broken: a route on which 12 % of the answers fail in retrieval every day,
and 10 % in generation since an hour ago, has a fault in generation.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ragwatch.model.evidence import Evidence
from ragwatch.model.quantities import Quantity
from ragwatch.model.stages import FAULTS, Fault, Stage
from ragwatch.statistics import scores

MIN_FAITHFULNESS = 0.85
MIN_NEED_RECALL = 0.5


def stage(evidence: Evidence) -> Stage | None:
    """Return the stage at fault: `none` for a good answer, None if too little was read to decide."""
    if _retrieval_failed(evidence):
        return Stage.RETRIEVAL
    if _generation_failed(evidence):
        return Stage.GENERATION
    relevancy = scores.answer_relevancy(evidence)
    unused = scores.top_ranked_fault(evidence) in (Fault.GENERATOR, Fault.REDUNDANT)
    if unused and relevancy is not None and relevancy < 1.0:
        return Stage.ALIGNMENT
    if relevancy == 0.0:
        return Stage.GENERATION
    required = (scores.context_precision(evidence), scores.faithfulness(evidence))
    return None if None in required else Stage.NONE


def _retrieval_failed(evidence: Evidence) -> bool:
    need_recall = scores.need_recall(evidence)
    if need_recall is not None and need_recall < MIN_NEED_RECALL:
        return True
    return not evidence.contexts or scores.context_precision(evidence) == 0.0


def _generation_failed(evidence: Evidence) -> bool:
    faithfulness = scores.faithfulness(evidence)
    if evidence.abstained:
        return any(reading.relevant for reading in evidence.contexts)
    return (faithfulness is not None and faithfulness < MIN_FAITHFULNESS) or bool(scores.contradiction(evidence))


MIN_SAMPLES = 10
MAX_P = 1e-3
"""Largest p-value of a rise that is reported; three stages are looked at, again and again."""
IGNORED = "ignored"
"""Counted in place of the stage `none` for a good answer that does not use the top-ranked context."""
KNOWLEDGE_GAP = "knowledge_gap"
"""Counted in place of the stage `retrieval` for an abstention, where nothing says that the question has an answer."""
StageCounts = Mapping[str, int]
"""Number of answers by stage, or `IGNORED`."""


@dataclass(frozen=True, slots=True)
class StageChange:
    """A stage at fault that has become more frequent: its share of the answers now, and in the baseline."""

    stage: Stage
    share: float
    before: float


def counted_stage(stage: Stage, ignored: float | None) -> str:
    """Return what an answer with this stage at fault, and this score `top_ranked_ignored`, is counted as.

    >>> counted_stage(Stage.NONE, 1.0), counted_stage(Stage.NONE, None), counted_stage(Stage.RETRIEVAL, 1.0)
    ('ignored', 'none', 'retrieval')
    """
    return IGNORED if stage is Stage.NONE and ignored == 1.0 else str(stage)


def changed_stage(now: StageCounts, before: StageCounts, quantity: Quantity) -> StageChange | None:
    """Return the stage whose share rose most; None if no rise is significant, or either side has too few answers.

    A rise is significant if Fisher's exact test (one-sided) gives a p-value below `MAX_P`. A good answer that does not
    use the top-ranked context counts as a fault of alignment if the alarm is about that.
    """
    sizes = sum(now.values()), sum(before.values())
    if min(sizes) < MIN_SAMPLES:
        return None
    changes = []
    for stage in FAULTS:
        counts = _count(now, stage, quantity), _count(before, stage, quantity)
        if _chance_of_rise(*counts, *sizes) < MAX_P:
            changes.append(StageChange(stage, counts[0] / sizes[0], counts[1] / sizes[1]))
    return max(changes, key=lambda change: change.share - change.before, default=None)


def stage_shares(counts: StageCounts) -> dict[Stage, float]:
    """Return the share of each stage; empty below `MIN_SAMPLES` answers."""
    if sum(counts.values()) < MIN_SAMPLES:
        return {}
    return {stage: _count(counts, stage, Quantity.FAITHFULNESS) / sum(counts.values()) for stage in Stage}


def _count(counts: StageCounts, stage: Stage, quantity: Quantity) -> int:
    home = Stage.ALIGNMENT if quantity is Quantity.TOP_RANKED_IGNORED else Stage.NONE
    return counts.get(stage, 0) + (counts.get(IGNORED, 0) if stage is home else 0)


def _chance_of_rise(now: int, before: int, all_now: int, all_before: int) -> float:
    """The p-value of Fisher's exact test that a share has not risen: of so many faults, `now` or more fall in `now`."""
    faults, total = now + before, all_now + all_before
    none = _log_ways(total, faults)
    return sum(
        math.exp(_log_ways(all_now, count) + _log_ways(all_before, faults - count) - none)
        for count in range(now, min(faults, all_now) + 1)
    )


def _log_ways(total: int, chosen: int) -> float:
    """Logarithm of the binomial coefficient."""
    return math.lgamma(total + 1) - math.lgamma(chosen + 1) - math.lgamma(total - chosen + 1)
