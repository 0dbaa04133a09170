"""The shipped judges on labelled data: the floors below are promises of the model cards, held by every change.

Positive = unfaithful; the score of an answer is the least support among its claims; neither model saw these rows. The
floors of the local judge are what the shipped weights reach, less the scatter between processors and builds of
onnxruntime; `training/LOCAL.md` has in full what was asked for and is not reached. Relevance is read by the lexical
judge with gold answers; its model was fitted on these sets (left-one-set-out figures stand in the model card).
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from ragwatch_reader import MODEL_FOLDER
from scipy.stats import mannwhitneyu
from support.kit import a_judge_context
from support.oncall_real import labelled_rows

from ragwatch.judges.lexical import judge as lexical
from ragwatch.judges.local import judge as local
from ragwatch.judges.local.artefact import TABLE
from ragwatch.model.evidence import ClaimVerdict, Evidence
from ragwatch.model.sample import Context, Sample
from ragwatch.model.stages import Stage
from ragwatch.statistics.stage import stage

LEXICAL = lexical.build(lexical.Options(), name="embedded", context=a_judge_context())
ATTRIBUTION, WICE = "judge/dev/attributionbench/test_id500", "judge/dev/wice/claim_test"
FEVER = "judge/dev/fever_symmetric/test"
Row = dict[str, Any]
load = cache(labelled_rows)


@cache
def reader() -> local.LocalJudge:
    """The local judge as it is installed: files and digests are those that were shipped."""
    if not (MODEL_FOLDER / TABLE).exists():
        pytest.skip("needs the model of reader/, which training/ makes")
    judge = local.build(local.Options(), name="reader", context=a_judge_context())
    assert judge.fallback is None
    return judge


def sample_of(row: Row, contexts: Sequence[str] | None = None, answer: str | None = None) -> Sample:
    """A row as a sample, with other contexts or another answer where given."""
    texts = row["contexts"] if contexts is None else contexts
    said = row["answer"] if answer is None else answer
    return Sample(row["id"], row["question"] or None, tuple(map(Context, texts)), said)


@cache
def read(name: str, *, by_words: bool) -> list[tuple[Row, Evidence]]:
    """The labelled rows of a set, with what a judge reads in them."""
    judge = LEXICAL if by_words else reader()
    return [(row, judge.evidence(sample_of(row))) for row in load(name) if row["label"]["faithful"] is not None]


def auroc(labelled: Sequence[tuple[bool, float]]) -> float:
    """Probability that a positive scores above a negative, ties by half."""
    ones = [score for positive, score in labelled if positive]
    zeros = [score for positive, score in labelled if not positive]
    return float(mannwhitneyu(ones, zeros).statistic) / (len(ones) * len(zeros))


@pytest.mark.parametrize(
    ("name", "by_words", "floor"),
    [
        (ATTRIBUTION, True, 0.75),
        pytest.param(WICE, True, 0.768, marks=pytest.mark.slow),
        (FEVER, True, 0.69),
        pytest.param(ATTRIBUTION, False, 0.75, marks=pytest.mark.slow),
        pytest.param(WICE, False, 0.80, marks=pytest.mark.slow),
        (FEVER, False, 0.785),  # claims made of the documents' own words: words reach .71
    ],
)
def test_unfaithful_answers_rank_below_faithful_ones(name: str, by_words: bool, floor: float) -> None:  # noqa: FBT001
    """The area under the curve on held-out rows is at least what was published; without claims nothing is known."""
    everything = read(name, by_words=by_words)
    rows = [(row, evidence.claims) for row, evidence in everything if evidence.claims or not by_words]
    assert len(rows) >= 0.99 * len(everything)
    doubts = [max((1.0 - (claim.support or 0.0) for claim in claims), default=0.0) for _, claims in rows]
    assert auroc([(not row["label"]["faithful"], doubt) for (row, _), doubt in zip(rows, doubts, strict=True)]) >= floor


@pytest.mark.slow
def test_refuted_claims_are_called_contradicted_and_supported_ones_are_not() -> None:
    """F1 of "contradicted" on refuted claims, and the share of supported claims that get it."""
    rows = [
        (row["label"]["faithful"], any(claim.verdict is ClaimVerdict.CONTRADICTED for claim in evidence.claims))
        for row, evidence in read(FEVER, by_words=False)
    ]
    hits = sum(called and not faithful for faithful, called in rows)
    wrong = sum(called and faithful for faithful, called in rows)
    refuted = sum(not faithful for faithful, _ in rows)
    assert 2 * hits / (refuted + hits + wrong) >= 0.42
    assert wrong / (len(rows) - refuted) <= 0.05


@pytest.mark.parametrize(
    ("name", "floor"), [("hotpotqa/sample100", 0.87), ("musique/sample100", 0.77), ("clapnq/dev", 0.93)]
)
def test_relevance_finds_the_contexts_that_people_marked(name: str, floor: float) -> None:
    """Relevance as the judge reports it ranks marked contexts above the others."""
    labelled: list[tuple[bool, float]] = []
    for row in load(f"relevance/{name}")[:: 3 if name == "clapnq/dev" else 1]:
        marks = row["label"]["context_relevant"]
        if row["answer"] and any(marks):
            columns = LEXICAL.evidence(sample_of(row)).contexts
            labelled += [(bool(mark), column.relevance or 0.0) for mark, column in zip(marks, columns, strict=True)]
    assert auroc(labelled) >= floor


SORRY = "I could not find that in the documents."


@pytest.mark.parametrize(
    ("case", "expected", "share"),
    [
        ("abstains, wrong documents", Stage.RETRIEVAL, 0.95),
        ("answers another question from its documents", Stage.RETRIEVAL, 0.85),
        ("invents over wrong documents", Stage.RETRIEVAL, 0.9),
        ("abstains, right documents", Stage.GENERATION, 0.7),
        ("invents over right documents", Stage.GENERATION, 0.7),
        ("as people answered", Stage.NONE, 0.7),
    ],
)
def test_the_stage_is_named_on_real_conversations(case: str, expected: Stage, share: float) -> None:
    """On answerable questions of a real benchmark, broken on purpose, most samples name the stage that was broken."""
    rows = [
        row
        for row in load("relevance/mtrag_answerability")
        if row["contexts"] and row["label"]["answerability"] == "ANSWERABLE" and len(row["question"].split()) > 5
    ][::6]
    stages = []
    for row, other in zip(rows, rows[7:] + rows[:7], strict=True):
        contexts = other["contexts"] if "right" not in case and case != "as people answered" else None
        answer = SORRY if "abstains" in case else None
        if case in ("answers another question from its documents", "invents over right documents"):
            answer = other["answer"]
        stages.append(stage(LEXICAL.evidence(sample_of(row, contexts, answer))))
    assert sum(one is expected for one in stages) / len(stages) >= share
