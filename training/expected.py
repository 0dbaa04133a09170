"""Fits the calibrated expectation of the embedded judges: `ragwatch/judges/tables/expected.json`.

    python training/expected.py

Estimates of `top_ranked_ignored` average this probability that the first context was used. It is fitted on
AttributionBench without its ExpertQA part, so that ExpertQA and CLAPNQ stay sets to try it on
(`bench/judge_accuracy.py`): each supported claim, with the passages that claims of the same question cite, in any
order; a passage was used if the claim cites it. It is fitted as if `GOOD` of the cases were good, the middle of the
rates at which services are watched: a probability that is calibrated at half and half would pull every rate towards a
half.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from ragwatch.core.sample import Context, Sample
from ragwatch.judges.lexical.claims import claims_of
from ragwatch.judges.lexical.reader import ClaimRow, ClaimRuling, Thresholds, lexical_ruling, read
from ragwatch.judges.lexical.tables import shipped
from ragwatch.judges.lexical.use import NAMES, lead_of_first

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
        "fitted_on": f"AttributionBench without {HELD_OUT}",
        "good": GOOD,
    }
    TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    print(TABLE.read_text("utf-8"))


def rows_of(sample: Sample) -> list[ClaimRow]:
    """What the judge compares of a sample."""
    seen: list[ClaimRow] = []

    def ruled(rows: Sequence[ClaimRow], *_: object) -> list[ClaimRuling]:
        seen.extend(rows)
        return [lexical_ruling(row, Thresholds()) for row in rows]

    read(sample, claims_of(sample.answer, sample.question), shipped(), Thresholds(), ruled)
    return seen


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
            rows = rows_of(Sample("s", question, tuple(map(Context, texts)), record["answer"]))
            for first, text in enumerate(texts if rows else ()):
                order = [first, *(rank for rank in range(len(texts)) if rank != first)]
                moved = [([row.matches[rank] for rank in order], [row.alone[rank] for rank in order]) for row in rows]
                yield lead_of_first(moved), text in own


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
