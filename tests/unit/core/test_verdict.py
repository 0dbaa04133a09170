"""Verdicts follow from evidence by arithmetic alone, and only from evidence about the same sample."""

from __future__ import annotations

import pytest
from support.kit import a_claim, a_draw, a_reading, an_evidence

from ragwatch.core.evidence import ShapeError
from ragwatch.core.scores import score_all
from ragwatch.core.verdict import judged
from ragwatch.model.quantities import Quantity
from ragwatch.model.stages import Fault, Stage


def test_verdict_follows_from_evidence() -> None:
    """Scores, stage and fault are those of the evidence."""
    evidence = an_evidence((0, 1), (0, 0))
    result = judged(a_draw(), a_reading(), evidence)
    assert result.scores == score_all(evidence)
    assert (result.scores[Quantity.FAITHFULNESS], result.stage, result.fault) == (
        0.5,
        Stage.GENERATION,
        Fault.GENERATOR,
    )


@pytest.mark.parametrize("contexts", [(), ("one",), ("one", "two", "three")])
def test_evidence_of_other_contexts_is_refused(contexts: tuple[str, ...]) -> None:
    """Evidence has one column for each context of the sample, or a row could never be written."""
    with pytest.raises(ShapeError, match=f"2 contexts were read of {len(contexts)}"):
        judged(a_draw(contexts=contexts), a_reading(), an_evidence((1, 0)))


def test_claim_behind_the_answer_is_refused() -> None:
    """Offsets lie in the answer: a page that marks them must not run over its end."""
    last = len(a_draw().sample.answer)
    judged(a_draw(), a_reading(), an_evidence(a_claim(start=0, end=last)))
    with pytest.raises(ShapeError, match="ends after the answer"):
        judged(a_draw(), a_reading(), an_evidence(a_claim(start=0, end=last + 1)))
