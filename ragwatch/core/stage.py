"""Stage: which part of the service to mend when an answer is bad, from the scores by one table.

The rule of the field (RAG evaluation practice: look at retrieval first, because a generator cannot repair what it
was never given), read top to bottom; the first row that holds names the stage:

| an answer where ...                                                      | stage      |
|--------------------------------------------------------------------------|------------|
| nothing was retrieved, or no context is relevant                         | retrieval  |
| most sub-questions have no answer in the contexts (need_recall < 0.5)    | retrieval  |
| it abstains although a context is relevant                               | generation |
| claims are unsupported (faithfulness < 0.85) or contradicted             | generation |
| the relevant top context went unused and the question is not fully met   | alignment  |
| the question is not addressed at all                                     | generation |
| none of these                                                            | none       |
"""

from __future__ import annotations

from enum import StrEnum

from ragwatch.core import scores
from ragwatch.core.evidence import Evidence
from ragwatch.core.scores import Fault

FAITHFUL_ENOUGH = 0.85
NEEDS_MET_ENOUGH = 0.5


class Stage(StrEnum):
    """Where a bad answer went wrong. Retrieval and generation may each be fine, yet disagree: alignment."""

    NONE = "none"
    RETRIEVAL = "retrieval"
    GENERATION = "generation"
    ALIGNMENT = "alignment"


def stage(evidence: Evidence) -> Stage | None:
    """The stage at fault, `none` for a good answer, None when too little was read to tell.

    >>> from ragwatch.core.evidence import Claim, ClaimVerdict, ContextReading
    >>> invented = Claim("c", None, None, ClaimVerdict.NOT_IN_CONTEXT, (False,))
    >>> stage(Evidence((invented,), (ContextReading(relevant=True),)))
    <Stage.GENERATION: 'generation'>
    """
    if _retrieval_failed(evidence):
        return Stage.RETRIEVAL
    if _generation_failed(evidence):
        return Stage.GENERATION
    relevancy = scores.answer_relevancy(evidence)
    if _top_left_aside(evidence) and relevancy is not None and relevancy < 1.0:
        return Stage.ALIGNMENT
    if relevancy == 0.0:
        return Stage.GENERATION
    known = (scores.context_precision(evidence), scores.faithfulness(evidence))
    return None if None in known else Stage.NONE


def _retrieval_failed(evidence: Evidence) -> bool:
    needs_met = scores.need_recall(evidence)
    if needs_met is not None and needs_met < NEEDS_MET_ENOUGH:
        return True
    return not evidence.contexts or scores.context_precision(evidence) == 0.0


def _generation_failed(evidence: Evidence) -> bool:
    faithful = scores.faithfulness(evidence)
    if evidence.abstained:
        return any(reading.relevant for reading in evidence.contexts)
    return (faithful is not None and faithful < FAITHFUL_ENOUGH) or bool(scores.contradiction(evidence))


def _top_left_aside(evidence: Evidence) -> bool:
    return scores.top_ranked_fault(evidence) in (Fault.GENERATOR, Fault.REDUNDANT)
