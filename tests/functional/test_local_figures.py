"""The shipped local judge on labelled data that it was not fitted on: promises of the model card, held by every change.

The floors are what the shipped weights reach, less the scatter between processors and builds of onnxruntime. What was
asked for and is not reached (`training/LOCAL.md` has it in full): contradictions F1 .70, FEVER-symmetric .82,
AttributionBench .80.

Positive = unfaithful; the score of an answer is the least support among its claims. The rest of the figures, and those
of sets held out of training in turn, come from `make bench-judge` and from `training/`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ragwatch_reader import MODEL_FOLDER
from support.kit import a_judge_context

from ragwatch.core.evidence import ClaimVerdict, Evidence
from ragwatch.core.sample import Context, Sample
from ragwatch.judges.local.artefact import TABLE
from ragwatch.judges.local.judge import LocalJudge, Options, build

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
Read = Callable[[str], list[tuple[dict[str, Any], Evidence]]]


@cache
def judge() -> LocalJudge:
    """The judge as it is installed."""
    if not (MODEL_FOLDER / TABLE).exists():
        pytest.skip("needs the model of reader/, which training/ makes")
    return build(Options(), name="reader", context=a_judge_context())


@cache
def read(name: str) -> list[tuple[dict[str, Any], Evidence]]:
    """Every row of a set with what the judge reads in it; skips where the data is not at hand."""
    path = DATA / f"{name}.jsonl"
    if not path.exists():
        pytest.skip(f"needs ../shared/data/{name}.jsonl")
    documents: dict[str, Any] = {}
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if "context_refs" in row:
            if row["docs"] not in documents:
                documents[row["docs"]] = json.loads((path.parent / row["docs"]).read_text(encoding="utf-8"))
            row["contexts"] = [documents[row["docs"]][key] for key in row["context_refs"]]
        sample = Sample(row["id"], row["question"] or None, tuple(map(Context, row["contexts"])), row["answer"])
        found.append((row, judge().evidence(sample)))
    return found


def auroc(positive: Sequence[bool], score: Sequence[float]) -> float:
    """Probability that a positive scores above a negative, ties by half."""
    ones = [value for value, is_one in zip(score, positive, strict=True) if is_one]
    zeros = [value for value, is_one in zip(score, positive, strict=True) if not is_one]
    wins = sum((one > zero) + 0.5 * (one == zero) for one in ones for zero in zeros)
    return wins / (len(ones) * len(zeros))


def ranked(name: str) -> float:
    """AUROC of one set."""
    rows = [(row, evidence) for row, evidence in read(name) if row["label"]["faithful"] is not None]
    doubts = [max((1.0 - (c.support or 0.0) for c in evidence.claims), default=0.0) for _, evidence in rows]
    return auroc([not row["label"]["faithful"] for row, _ in rows], doubts)


FEVER = "judge/dev/fever_symmetric/test"


def test_its_model_runs() -> None:
    """Files and digests are those that were shipped."""
    assert judge().fallback is None


@pytest.mark.slow
def test_refuted_claims_are_called_contradicted_and_supported_ones_are_not() -> None:
    """F1 of "contradicted" on refuted claims, and the share of supported claims that get it."""
    rows = [
        (row["label"]["faithful"], any(claim.verdict is ClaimVerdict.CONTRADICTED for claim in evidence.claims))
        for row, evidence in read(FEVER)
    ]
    hits = sum(called and not faithful for faithful, called in rows)
    wrong = sum(called and faithful for faithful, called in rows)
    refuted = sum(not faithful for faithful, _ in rows)
    assert 2 * hits / (refuted + hits + wrong) >= 0.42
    assert wrong / (len(rows) - refuted) <= 0.05


def test_claims_made_of_the_documents_own_words_are_told_apart() -> None:
    """Words reach .71."""
    assert ranked(FEVER) >= 0.785


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "floor"), [("judge/dev/attributionbench/test_id500", 0.75), ("judge/dev/wice/claim_test", 0.80)]
)
def test_unfaithful_answers_rank_below_faithful_ones(name: str, floor: float) -> None:
    """The other two test parts; words reach .756 and .778."""
    assert ranked(name) >= floor
