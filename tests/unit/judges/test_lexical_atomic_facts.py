"""Sentences split into facts: where, where not, what a fact is read as, and that no word and no accuracy is lost."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.draws import draws
from support.embedded import LEXICAL, LOCAL, by_model, by_words, has_negation, read_by
from support.sentences import sections

from ragwatch.errors import JudgeError
from ragwatch.judges.claims.atomic_facts import MAX_CARRIED_CHARS, facts_of
from ragwatch.judges.claims.claims import claims_of
from ragwatch.judges.claims.words import terms
from ragwatch.judges.lexical.facts import UNSUPPORTED
from ragwatch.judges.lexical.judge import LexicalJudge
from ragwatch.judges.lexical.reader import Thresholds, read
from ragwatch.judges.lexical.tables import shipped
from ragwatch.model.evidence import ClaimVerdict, Evidence
from ragwatch.model.quantities import Quantity, ReferenceQuantity
from ragwatch.model.sample import Context, Sample
from ragwatch.statistics.reference import score_by_reference
from ragwatch.statistics.scores import score_all

JUDGES = pytest.mark.parametrize("judge", [LEXICAL, LOCAL], ids=["lexical", "local"])

EINSTEIN = "Einstein developed the theory of relativity in 1905 while working at the Swiss patent office in Bern."
EINSTEIN_CONTEXTS = (
    "Einstein published the theory of relativity in a groundbreaking 1905 paper.",
    "During the early 1900s, Einstein worked at a government office evaluating patents.",
    "Einstein later moved to Berlin to join the Prussian Academy of Sciences.",
    "He studied physics in Zurich before becoming one of the most influential scientists.",
)
AKS = """To deploy to AKS:
1. Build your Docker image
2. Push the image to Azure Container Registry
3. Create an AKS cluster using az aks create
4. Configure kubectl to connect to your cluster
5. Create Kubernetes deployment YAML
6. Apply the deployment using kubectl apply"""
AKS_CONTEXTS = (
    "Azure Container Registry (ACR) stores Docker images. Push with: docker push myacr.azurecr.io/myapp:v1",
    "Create AKS cluster: az aks create --resource-group myRG --name myAKS --node-count 3",
    "Kubectl connects to clusters. Get credentials: az aks get-credentials --name myAKS",
)
MENU = (
    "Einstein Bern lamp kettle tea museum covers costs built was is not no and and but or if , , , ; — ( ) \" ` ' : . ?"
    " in in on at by from since while because which who the a in 1905 90 five making working 1,000 naïve 中文 [1] e.g."
)
PROSE = st.lists(st.sampled_from(MENU.split(" ")), max_size=40).map(" ".join)
TEXT = st.one_of(PROSE, PROSE.map(lambda text: text.replace(" ,", ",")), st.text(max_size=60))


def said(answer: str) -> list[str]:
    """The facts, as they stand in the answer."""
    return [answer[fact.start : fact.end] for fact in facts_of(answer).claims]


@pytest.mark.parametrize("marked", sections()["facts of a sentence, between bars"])
def test_a_sentence_is_split_into_its_facts(marked: str) -> None:
    """Clauses, lists, appositions, adjuncts of time and place; what joins them (between the bars) is in no fact.

    Instructions, conditions, negations, alternatives, amounts, quotations, and what says too little stay whole.
    """
    assert said(marked.replace("|", "")) == marked.split("|")[::2]


def test_a_fact_is_read_with_its_subject() -> None:
    """The subject is no part of the span; an item also carries the verb."""
    for answer, readings in (
        (EINSTEIN, ["Einstein in 1905", "Einstein in Bern."]),
        ("The plan covers fire damage, theft, and water damage.", ["The plan covers theft"]),
        ("In 1905, Einstein developed the theory of relativity.", ["Einstein In 1905"]),
        ("In Bern Anna runs the mill, while Bob runs the shop.", ["In Bern Anna runs the mill"]),
    ):
        facts = facts_of(answer).claims
        assert set(readings) <= {fact.words for fact in facts}
        assert {fact.sentence for fact in facts} == set(claims_of(answer).claims)


def test_what_is_carried_is_bounded() -> None:
    """A word of 50,000 characters as the subject of a hundred facts is not read a hundred times."""
    answer = "Tea" + "a" * 50_000 + " sells green lamps" + " in Bern" * 100 + "."
    facts = facts_of(answer).claims
    assert len(facts) > 50
    assert sum(len(fact.words) for fact in facts) <= len(answer) + len(facts) * (MAX_CARRIED_CHARS + 1)


@JUDGES
def test_the_reference_of_seed_000_has_four_facts_of_which_one_is_missing(judge: LexicalJudge) -> None:
    """Its own contexts and its own figure: recall .75; that the office was in Bern was not retrieved.

    Faithfulness of an answer that says the same counts the same facts.
    """
    evidence = read_by(judge, EINSTEIN, *EINSTEIN_CONTEXTS, reference=EINSTEIN)
    assert score_all(evidence)[Quantity.FAITHFULNESS] == 0.75
    assert score_by_reference(evidence)[ReferenceQuantity.CONTEXT_RECALL] == 0.75
    facts = evidence.reference or ()
    assert [fact.text for fact in facts if not any(fact.cells)] == ["in Bern."]
    assert [[rank for rank, cell in enumerate(fact.cells) if cell] for fact in facts] == [[0], [0], [1], []]


@JUDGES
def test_the_walk_through_of_seed_001_finds_three_of_six_steps(judge: LexicalJudge) -> None:
    """Requirements 15 and 16: each document supports a step (p = 1), three of six steps are supported (r = .5)."""
    question = "What are the steps to deploy a containerized application to AKS?"
    evidence = read_by(judge, "Push the image.", *AKS_CONTEXTS, question=question, reference=AKS)
    scores = score_by_reference(evidence)
    assert scores[ReferenceQuantity.CONTEXT_PRECISION_WITH_REFERENCE] == 1.0
    assert scores[ReferenceQuantity.CONTEXT_RECALL] == 0.5
    assert scores[ReferenceQuantity.CONTEXT_F1] == pytest.approx(2 / 3)
    missing = [fact.text for fact in evidence.reference or () if not any(fact.cells)]
    assert missing == [line.partition(". ")[2] for line in AKS.splitlines() if line[0] in "156"]


def test_a_context_that_names_only_the_subject_supports_no_fact() -> None:
    """The subject is carried for reading; alone it proves nothing."""
    answer = "The lamp explodes loudly in Madrid."
    evidence = read_by(LEXICAL, answer, "The lamp is painted green.", "The lamp stands on the table.")
    assert len(evidence.claims) == 2
    assert {claim.verdict for claim in evidence.claims} == {ClaimVerdict.NOT_IN_CONTEXT}


def test_the_model_reads_the_facts_of_a_sentence_that_it_does_not_support() -> None:
    """The contradicted clause is the weakest; the other is supported by its own context."""
    pytest.importorskip("onnxruntime")
    contexts = ("The museum opens at nine in summer.", "The museum is closed for repair in winter.")
    answer = "The museum opens at nine in summer, and the museum is not closed for repair in winter."
    opens, closed = read_by(LOCAL, answer, *contexts).claims
    assert (opens.verdict, opens.contexts) == (ClaimVerdict.SUPPORTED, (0,))
    assert closed.verdict is not ClaimVerdict.SUPPORTED
    whole = read_whole(LOCAL, answer, *contexts).claims[0]
    assert (closed.verdict, closed.support) == (whole.verdict, whole.support)


@pytest.mark.parametrize("build", [by_words, by_model])
def test_the_limit_of_claims_holds_for_facts(build: Callable[..., LexicalJudge]) -> None:
    """Of answer and reference: one sentence of four facts is beyond a limit of three."""
    for answer, reference in ((EINSTEIN, None), ("He did.", EINSTEIN)):
        with pytest.raises(JudgeError, match="more than the 3 claims"):
            read_by(build(max_claims=3), answer, reference=reference)
    assert len(facts_of(f"{EINSTEIN} " * 50, max_claims=3).claims) == 4


@given(TEXT)
@settings(max_examples=draws(40), deadline=None)
def test_facts_are_ordered_disjoint_and_hold_every_content_word(answer: str) -> None:
    """The spans of a sentence's facts lie inside it and follow one another; no term of it is in none of them."""
    facts, whole = facts_of(answer), claims_of(answer)
    assert facts.sentences == whole.claims
    assert facts.abstained == whole.abstained
    for one, other in pairwise(facts.claims):
        assert one.end <= other.start
    for sentence in whole.claims:
        parts = [fact for fact in facts.claims if (fact.sentence or fact) == sentence]
        assert parts[0].start == sentence.start
        assert parts[-1].end == sentence.end
        held = [term for part in parts for term in terms(answer[part.start : part.end])]
        assert held == terms(answer[sentence.start : sentence.end])


def read_whole(judge: LexicalJudge, answer: str, *contexts: str) -> Evidence:
    """What is read when sentences are not split."""
    sample = Sample("s", None, tuple(map(Context, contexts)), answer)
    return read(sample, claims_of(answer), shipped(), Thresholds(), judge.cross_encoder)


@JUDGES
@given(answer=PROSE, contexts=st.lists(PROSE, min_size=1, max_size=3))
@settings(max_examples=draws(30), deadline=None)
def test_the_weakest_fact_supports_as_the_sentence(judge: LexicalJudge, answer: str, contexts: list[str]) -> None:
    """So no score that takes the least support among the claims of an answer is changed by splitting.

    But a context whose words support the sentence may deny one of its facts.
    """
    evidence = read_by(judge, answer, *contexts)
    assume(evidence.claims and evidence.language is None)  # other languages are not read, or by other rules
    for sentence in read_whole(judge, answer, *contexts).claims:
        inside = range(sentence.start or 0, sentence.end or 0)
        facts = [claim for claim in evidence.claims if (claim.start or 0) in inside]
        least = min(fact.support or 0.0 for fact in facts)
        if least == UNSUPPORTED and any(map(has_negation, contexts)):
            continue
        assert least == sentence.support
        supported = sentence.verdict is ClaimVerdict.SUPPORTED
        assert all(fact.verdict is ClaimVerdict.SUPPORTED for fact in facts) == supported
