"""The embedded judge beside a known good answer: what retrieval has missed, and what the answer has."""

from __future__ import annotations

import pytest
from kit import a_desk

from ragwatch.core.reference import ReferenceQuantity, score_by_reference
from ragwatch.core.sample import Context, Sample
from ragwatch.judges.lexical import Options, build

JUDGE = build(Options(), name="embedded", desk=a_desk())
CONTEXTS = (
    Context("Push the image to the registry with docker push registry.example/app:v1."),
    Context("Create a cluster with the command cluster create --nodes 3 in your resource group."),
)
REFERENCE = """To deploy an application:
1. Push the image to the registry
2. Create a cluster with cluster create
3. Write a deployment manifest in YAML
4. Apply the manifest with kubectl"""


def a_sample(answer: str = "Push the image to the registry.", reference: str | None = REFERENCE) -> Sample:
    """An answer that gives the first of four steps."""
    return Sample("s", "How is an application deployed?", CONTEXTS, answer, reference=reference)


def test_what_retrieval_has_missed_is_named() -> None:
    """Claims of the reference that no context supports are missing; context recall is the share of the rest."""
    evidence = JUDGE.evidence(a_sample())
    missing = [claim.text for claim in evidence.reference or () if not any(claim.cells)]
    assert missing == ["Write a deployment manifest in YAML", "Apply the manifest with kubectl"]
    assert score_by_reference(evidence)[ReferenceQuantity.CONTEXT_RECALL] == 0.5


def test_correctness_counts_both_ways() -> None:
    """One claim, which the reference confirms, of four that it makes: precision 1, recall 1/4, F1 2/5."""
    scores = score_by_reference(JUDGE.evidence(a_sample()))
    assert scores[ReferenceQuantity.CORRECTNESS] == pytest.approx(0.4)
    wrong = score_by_reference(JUDGE.evidence(a_sample("Tomatoes need full sun in dry summers.")))
    assert wrong[ReferenceQuantity.CORRECTNESS] == 0.0


def test_a_reference_changes_nothing_else() -> None:
    """Claims, contexts and address are read as they are without one."""
    with_it, without = JUDGE.evidence(a_sample()), JUDGE.evidence(a_sample(reference=None))
    assert without.reference is None
    assert [claim.cells for claim in with_it.claims] == [claim.cells for claim in without.claims]
    assert (with_it.contexts, with_it.address) == (without.contexts, without.address)
    assert [claim.in_reference for claim in without.claims] == [None]


def test_a_reference_that_claims_nothing_leaves_recall_unknown() -> None:
    """No claim, no share."""
    scores = score_by_reference(JUDGE.evidence(a_sample(reference="I do not know.")))
    assert scores[ReferenceQuantity.CONTEXT_RECALL] is None
