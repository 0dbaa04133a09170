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
"""

from __future__ import annotations

from ragwatch.core import scores
from ragwatch.core.evidence import Evidence
from ragwatch.model.stages import Fault, Stage

MIN_FAITHFULNESS = 0.85
MIN_NEED_RECALL = 0.5


def stage(evidence: Evidence) -> Stage | None:
    """Return the stage at fault: `none` for a good answer, None if too little was read to decide."""
    if _retrieval_failed(evidence):
        return Stage.RETRIEVAL
    if _generation_failed(evidence):
        return Stage.GENERATION
    relevancy = scores.answer_relevancy(evidence)
    if _top_context_unused(evidence) and relevancy is not None and relevancy < 1.0:
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


def _top_context_unused(evidence: Evidence) -> bool:
    return scores.top_ranked_fault(evidence) in (Fault.GENERATOR, Fault.REDUNDANT)
