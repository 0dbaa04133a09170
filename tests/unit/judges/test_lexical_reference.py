"""The embedded judge beside a known good answer: what retrieval has missed, and what the answer has."""

import pytest
from support.embedded import LEXICAL, read_by
from unit.judges.test_lexical_atomic_facts import EINSTEIN, EINSTEIN_CONTEXTS

from ragwatch.judges.claims.steps import MAX_STEP_TERMS, actions, names_action
from ragwatch.judges.claims.words import terms
from ragwatch.model.evidence import Evidence
from ragwatch.model.quantities import ReferenceQuantity
from ragwatch.statistics.reference import reference_line, score_by_reference

CONTEXTS = (
    "Push the image to the registry with docker push registry.example/app:v1.",
    "Create a cluster with the command cluster create --nodes 3 in your resource group.",
)
REFERENCE = """To deploy an application:
1. Push the image to the registry
2. Create a cluster with cluster create
3. Write a deployment manifest in YAML
4. Apply the manifest with kubectl"""
FOUR_CLAIMS = (
    "Einstein developed the theory of relativity. He developed it in 1905. He was working at the Swiss patent office. "
    "The office was in Bern."
)


def read(
    answer: str = "Push the image to the registry.",
    reference: str | None = REFERENCE,
    contexts: tuple[str, ...] = CONTEXTS,
) -> Evidence:
    """What is read in an answer that gives the first of four steps."""
    return read_by(LEXICAL, answer, *contexts, question="How is an application deployed?", reference=reference)


def missing(evidence: Evidence) -> list[str]:
    """What the reference states and no context does."""
    return [claim.text for claim in evidence.reference or () if not any(claim.cells)]


def test_what_retrieval_and_answer_have_missed() -> None:
    """Claims of the reference that no context supports are missing; context recall is the share of the rest.

    Correctness counts both ways. One claim, which the reference confirms, of four that it makes: precision 1, recall
    1/4, F1 2/5. A reference that claims nothing leaves recall unknown; one that the context denies is missing.
    """
    evidence = read()
    assert missing(evidence) == ["Write a deployment manifest in YAML", "Apply the manifest with kubectl"]
    scores = score_by_reference(evidence)
    assert scores[ReferenceQuantity.CONTEXT_RECALL] == 0.5
    assert scores[ReferenceQuantity.CORRECTNESS] == pytest.approx(0.4)
    wrong = score_by_reference(read("Tomatoes need full sun in dry summers."))
    assert wrong[ReferenceQuantity.CORRECTNESS] == 0.0
    assert score_by_reference(read(reference="I do not know."))[ReferenceQuantity.CONTEXT_RECALL] is None
    denied = read("Ask us.", "The return period is 30 days.", ("The return period is not 30 days.",))
    assert score_by_reference(denied)[ReferenceQuantity.CONTEXT_RECALL] == 0.0


@pytest.mark.parametrize(
    ("answer", "expected"), [("12 euros", 1.0), ("15 euros", 0.0), ("twelve euros", 1.0), ("20 euros", 0.0)]
)
def test_a_changed_number_is_not_correct(answer: str, expected: float) -> None:
    """Answer and reference agree on their number, whatever their other words; a fact was retrieved with its number."""
    line = "A ticket of the museum of modern art in Zurich costs {}."
    contexts = tuple(map(line.format, ("12 euros", "15 euros")))
    scores = score_by_reference(read(line.format(answer), line.format("12 euros"), contexts))
    assert (scores[ReferenceQuantity.CORRECTNESS], scores[ReferenceQuantity.CONTEXT_RECALL]) == (expected, 1.0)
    other = score_by_reference(read(line.format(answer), line.format("12 euros"), contexts[1:]))
    assert other[ReferenceQuantity.CONTEXT_RECALL] == 0.0


def test_a_reference_changes_nothing_else() -> None:
    """Claims, contexts and address are read as they are without one."""
    with_it, without = read(), read(reference=None)
    assert without.reference is None
    assert [claim.cells for claim in with_it.claims] == [claim.cells for claim in without.claims]
    assert (with_it.contexts, with_it.address) == (without.contexts, without.address)
    assert [claim.in_reference for claim in without.claims] == [None]


def test_a_step_is_found_where_its_action_stands() -> None:
    """In any form of its verb. The same holds for what the reference says of the answer: storing is not deleting."""
    for found in ("Write the deployment manifest in YAML.", "A deployment manifest is written in YAML with an editor."):
        assert missing(read(contexts=(*CONTEXTS, found))) == ["Apply the manifest with kubectl"]
    known = {"The registry stores the Docker image.": False, "Remove the Docker image from the registry.": True}
    for reference, is_right in known.items():
        evidence = read_by(
            LEXICAL, "Delete the Docker image.", "The registry keeps Docker images.", reference=reference
        )
        assert [claim.in_reference for claim in evidence.claims] == [is_right]


@pytest.mark.parametrize(
    ("words", "verbs"),
    [
        ("Build your Docker image", ["build"]),
        ("Then, please configure kubectl to connect to it", ["configure", "connect"]),
        ("You must not wait", []),
        ("You should delete the old index", ["delete"]),
        ("Never share your password", ["share"]),
        ("To delete an index, use the console", []),
        ("Use the docker command", []),
        ("Build servers are slow", []),
        ("Order of the day", []),
        ("Build", []),
        ("", []),
    ],
)
def test_steps_are_told_by_their_form(words: str, verbs: list[str]) -> None:
    """An opening verb with something to act on; statements and verbs without an action of their own are none."""
    assert [verb for group in actions(words) for verb in group if verb in verbs] == verbs
    assert bool(actions(words)) is bool(verbs)


def test_a_long_step_is_read_as_any_claim() -> None:
    """Its action is one word of many. Any form of a verb is a trace of an action."""
    nouns = ["kettle", "lamp", "table", "chair", "window", "garden", "bridge", "castle", "forest"]
    assert actions(f"Build {' '.join(nouns)}")
    assert len(nouns) + 1 == MAX_STEP_TERMS
    assert not actions(f"Build {' '.join(nouns)} river")
    (verbs,) = actions("Apply the manifest")
    texts = ("It applies.", "They applied it.", "Applying", "apply", "It has an appetite.")
    assert [names_action(frozenset(terms(text)), verbs) for text in texts] == [True] * 4 + [False]


@pytest.mark.parametrize("reference", [EINSTEIN, FOUR_CLAIMS])
def test_each_statement_has_its_evidence(reference: str) -> None:
    """Requirements items 7 and 9: in either wording three of four, each with its passage and words, but not Bern."""
    question = "Where was Einstein when he developed relativity?"
    evidence = read_by(LEXICAL, "At a patent office.", *EINSTEIN_CONTEXTS, question=question, reference=reference)
    line = reference_line(evidence)
    assert line is not None
    assert line["context_recall"] == 0.75
    read = [(one["supported"], one["contexts"], one["quotes"]) for one in line["statements"]]  # type: ignore[union-attr]
    published, worked, *_ = EINSTEIN_CONTEXTS
    assert read == [(True, [0], [published])] * 2 + [(True, [1], [worked]), (False, [], [])]
    assert line["statements"][3]["missing"] == ["Bern"]  # type: ignore[index]
