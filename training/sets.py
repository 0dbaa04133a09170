"""Labelled sets -> rows for the fit. Only sets whose licence allows what is fitted on them to be shipped."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SEED = 20260101


@dataclass(frozen=True, slots=True)
class Row:
    """One claim (or whole answer) and its passages."""

    family: str  # set it comes from; leave-one-set-out is by family
    group: str  # rows of one group share text and are never split
    question: str
    contexts: tuple[str, ...]
    answer: str
    unsupported: bool  # the label
    weight: float = 1.0  # weight in the fit


def load(name: str) -> list[dict[str, Any]]:
    """Rows of one file of ../shared/data, contexts filled in."""
    path = DATA / f"{name}.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    documents: dict[str, dict[str, str]] = {}
    for row in rows:
        if "context_refs" in row:
            if row["docs"] not in documents:
                documents[row["docs"]] = json.loads((path.parent / row["docs"]).read_text(encoding="utf-8"))
            row["contexts"] = [documents[row["docs"]][key] for key in row["context_refs"]]
    return rows


def labelled(name: str, family: str, weight: float = 1.0) -> list[Row]:
    """Rows with a verdict, as they stand."""
    return [
        Row(
            family=family,
            group=f"{family}:{row['question'] or row['contexts'][0][:80]}",
            question=row["question"] or "",
            contexts=tuple(row["contexts"]),
            answer=row["answer"],
            unsupported=not row["label"]["faithful"],
            weight=weight,
        )
        for row in load(name)
        if row["label"]["faithful"] is not None
    ]


def attributionbench() -> list[Row]:
    """AttributionBench without BEGIN (which is not ours to take from there); HAGRID's labels are noisy."""
    rows = load("judge/train/attributionbench/dev")
    return [
        Row(
            family="attributionbench",
            group=f"ab:{row['question']}",
            question=row["question"] or "",
            contexts=tuple(row["contexts"]),
            answer=row["answer"],
            unsupported=not row["label"]["faithful"],
            weight=0.7 if row["meta"]["src"] == "HAGRID" else 1.0,
        )
        for row in rows
        if row["meta"]["src"] != "BEGIN" and row["label"]["faithful"] is not None
    ]


def clapnq() -> list[Row]:
    """CLAPNQ's answers over their own passage, and over the passage of another question."""
    rows = [row for row in load("relevance/clapnq/dev") if row["label"]["answerable"]]
    other = list(rows)
    random.Random(SEED).shuffle(other)
    return list(_own_and_foreign(rows, other))


def _own_and_foreign(rows: list[dict[str, Any]], other: list[dict[str, Any]]) -> Iterator[Row]:
    for row, foreign in zip(rows, other, strict=True):
        group, answer, question = f"clapnq:{row['question']}", row["answer"], row["question"]
        yield Row("clapnq", group, question, (" ".join(row["contexts"]),), answer, unsupported=False)
        if foreign is not row:
            text = (" ".join(foreign["contexts"]),)
            yield Row("clapnq", group, question, text, answer, unsupported=True, weight=0.65)


def training_rows() -> list[Row]:
    """Everything the claim model is fitted on."""
    return [
        *attributionbench(),
        *labelled("judge/train/wice/claim_dev", "wice"),
        *labelled("judge/train/wice/tokens_dev", "wice", 0.5),
        *labelled("judge/train/wice/tokens_train", "wice", 0.5),
        *clapnq(),
        *labelled("judge/train/factcheck_gpt/stance", "factcheck_gpt", 0.5),
    ]
