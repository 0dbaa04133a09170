"""The embedded judge on labelled data: the floors below are promises of the model card (`training/README.md`).

Positive = unfaithful; the score of an answer is the least support among its claims; the support model saw none of
these rows. Relevance is read with gold answers, all rules on; its model was fitted on these sets (left-one-set-out
figures, which are as good, stand in the model card).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.kit import a_judge_context

from ragwatch.core.evidence import Evidence
from ragwatch.core.sample import Context, Sample
from ragwatch.core.stage import stage
from ragwatch.judges.lexical.judge import Options, build
from ragwatch.model.stages import Stage

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
JUDGE = build(Options(), name="embedded", context=a_judge_context())


@cache
def load(name: str) -> list[dict[str, Any]]:
    """Rows of one file, contexts filled in; skips the test where the data is not at hand."""
    path = DATA / f"{name}.jsonl"
    if not path.exists():
        pytest.skip(f"needs ../shared/data/{name}.jsonl")
    rows: list[dict[str, Any]] = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    documents: dict[str, Any] = {}
    for row in rows:
        if "context_refs" in row:
            if row["docs"] not in documents:
                documents[row["docs"]] = json.loads((path.parent / row["docs"]).read_text(encoding="utf-8"))
            row["contexts"] = [documents[row["docs"]][key] for key in row["context_refs"]]
    return rows


def sample_of(row: dict[str, Any], contexts: Sequence[str] | None = None, answer: str | None = None) -> Sample:
    """A row as a sample, with other contexts or another answer where given."""
    texts = row["contexts"] if contexts is None else contexts
    said = row["answer"] if answer is None else answer
    return Sample(row["id"], row["question"] or None, tuple(map(Context, texts)), said)


def auroc(positive: Sequence[bool], score: Sequence[float]) -> float:
    """Probability that a positive scores above a negative, ties by half."""
    ones = [value for value, is_one in zip(score, positive, strict=True) if is_one]
    zeros = [value for value, is_one in zip(score, positive, strict=True) if not is_one]
    wins = sum((one > zero) + 0.5 * (one == zero) for one in ones for zero in zeros)
    return wins / (len(ones) * len(zeros))


def worst(evidence: Evidence) -> float:
    """How unsupported the worst claim is."""
    return max(1.0 - (claim.support or 0.0) for claim in evidence.claims)


@pytest.mark.parametrize(
    ("name", "floor"),
    [
        ("judge/dev/attributionbench/test_id500", 0.75),
        pytest.param("judge/dev/wice/claim_test", 0.768, marks=pytest.mark.slow),
        ("judge/dev/fever_symmetric/test", 0.69),
    ],
)
def test_unfaithful_answers_rank_below_faithful_ones(name: str, floor: float) -> None:
    """The area under the curve on held-out rows is at least what was published; without claims nothing is known."""
    labelled = [row for row in load(name) if row["label"]["faithful"] is not None]
    read = [(row, JUDGE.evidence(sample_of(row))) for row in labelled]
    rows = [(not row["label"]["faithful"], worst(evidence)) for row, evidence in read if evidence.claims]
    assert len(rows) >= 0.99 * len(labelled)
    labels, scores = map(list, zip(*rows, strict=True))
    assert auroc(labels, scores) >= floor


@pytest.mark.parametrize(
    ("name", "floor"), [("hotpotqa/sample100", 0.87), ("musique/sample100", 0.77), ("clapnq/dev", 0.93)]
)
def test_relevance_finds_the_contexts_that_people_marked(name: str, floor: float) -> None:
    """Relevance as the judge reports it ranks marked contexts above the others."""
    labels: list[bool] = []
    scores: list[float] = []
    for row in load(f"relevance/{name}")[:: 3 if name == "clapnq/dev" else 1]:
        if row["answer"] and any(row["label"]["context_relevant"]):
            labels += [bool(label) for label in row["label"]["context_relevant"]]
            scores += [column.relevance or 0.0 for column in JUDGE.evidence(sample_of(row)).contexts]
    assert auroc(labels, scores) >= floor


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
    ]
    rows = rows[::6]
    others = rows[7:] + rows[:7]
    samples = {
        "abstains, wrong documents": lambda row, other: sample_of(row, other["contexts"], SORRY),
        "answers another question from its documents": lambda row, other: sample_of(
            row, other["contexts"], other["answer"]
        ),
        "invents over wrong documents": lambda row, other: sample_of(row, other["contexts"]),
        "abstains, right documents": lambda row, _: sample_of(row, answer=SORRY),
        "invents over right documents": lambda row, other: sample_of(row, answer=other["answer"]),
        "as people answered": lambda row, _: sample_of(row),
    }
    found = [stage(JUDGE.evidence(samples[case](row, other))) for row, other in zip(rows, others, strict=True)]
    assert sum(one is expected for one in found) / len(found) >= share
