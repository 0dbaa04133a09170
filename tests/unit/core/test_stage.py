"""Stage: every row of the table, and what stands above it wins."""

from __future__ import annotations

import pytest
from support.kit import a_claim, an_evidence

from ragwatch.core.evidence import Evidence
from ragwatch.core.stage import stage
from ragwatch.model.stages import Stage

MANY = [(1, 0)] * 9  # enough good claims that one bad one leaves faithfulness at 0.9


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (an_evidence((), relevant=()), Stage.RETRIEVAL),
        (an_evidence((1, 0), relevant=(False, False)), Stage.RETRIEVAL),
        (an_evidence((1, 0), needs=(True, False, False)), Stage.RETRIEVAL),
        (an_evidence((0, 0), relevant=(False, False)), Stage.RETRIEVAL),
        (an_evidence(relevant=(False, False), address="abstained"), Stage.RETRIEVAL),
        (an_evidence(relevant=(False, True), address="abstained"), Stage.GENERATION),
        (an_evidence((1, 0), (0, 0)), Stage.GENERATION),
        (an_evidence(*MANY, a_claim((0, 0), "contradicted")), Stage.GENERATION),
        (an_evidence((0, 1), address="partially"), Stage.ALIGNMENT),
        (an_evidence((0, 1), address="not_at_all"), Stage.ALIGNMENT),
        (an_evidence((1, 0), address="not_at_all"), Stage.GENERATION),
        (an_evidence((0, 1), address="fully"), Stage.NONE),
        (an_evidence((1, 0), address="partially"), Stage.NONE),
        (an_evidence((1, 0), needs=(True, False)), Stage.NONE),
        (an_evidence(*MANY, (0, 0)), Stage.NONE),
        (an_evidence((1, 0), relevant=(None, True)), None),
        (an_evidence(), None),
        (an_evidence(relevant=(None, None), address="abstained"), None),
        (an_evidence((0, 1), address=None), Stage.NONE),
    ],
)
def test_table(evidence: Evidence, expected: Stage | None) -> None:
    """The first row that holds names the stage; too little read is None, never `none`."""
    assert stage(evidence) == expected
