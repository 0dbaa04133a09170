"""Fits a classifier of short texts, `ragwatch.judges.text_classifier`, and writes its table. Needs numpy and scipy."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from ragwatch.judges.text_classifier import BUCKETS, pair_bucket, word_buckets

HERE = Path(__file__).parent
TABLES = HERE.parent / "ragwatch" / "judges" / "tables"
DATA = HERE.parents[1] / "shared" / "data" / "judge" / "train"
PENALTY = 0.01

Model = tuple[np.ndarray, float]


class Line(NamedTuple):
    """A line of our own: its language, its kind, and whether it is what the classifier looks for."""

    language: str
    kind: str
    positive: bool
    text: str


def lines_of(path: Path) -> list[Line]:
    """The lines of a file."""
    lines, head = [], ("", "", "")
    for text in path.read_text(encoding="utf-8").splitlines():
        if text.startswith("# ") and text.endswith((" +", " -")):
            head = tuple(text[2:].split())
        elif text:
            lines.append(Line(head[0], head[1], head[2] == "+", text))
    return lines


def row_of(words: Sequence[str]) -> Counter[int]:
    """Counts of the features of a text, scaled."""
    counts = Counter(bucket for word in words for bucket in word_buckets(word))
    counts.update(pair_bucket(*pair) for pair in pairwise(words))
    scale = 1 / sqrt(max(1, counts.total()))
    return Counter({bucket: count * scale for bucket, count in counts.items()})  # type: ignore[misc]


def matrix_of(texts: Sequence[Sequence[str]]) -> csr_matrix:
    """The features of texts, given their words."""
    rows = list(map(row_of, texts))
    pointers = np.cumsum([0, *map(len, rows)])
    columns = [bucket for row in rows for bucket in row]
    values = [value for row in rows for value in row.values()]
    return csr_matrix((values, columns, pointers), shape=(len(rows), BUCKETS))


def fit(
    words: Callable[[str], Sequence[str]],
    lines: Sequence[Line],
    real: Sequence[str],
    shares: tuple[float, float, float],
) -> Model:
    """Weights and bias of a logistic regression with an L2 penalty.

    Args:
        words: The words of a text that are read.
        lines: Lines of our own.
        real: Real texts that are not what is looked for.
        shares: What the positive lines, the negative ones and the real texts weigh.
    """
    features = matrix_of([words(text) for text in (*(line.text for line in lines), *real)])
    signs = np.array([1.0 if line.positive else -1.0 for line in lines] + [-1.0] * len(real))
    own = np.array([True] * len(lines) + [False] * len(real))
    weight = np.zeros(len(signs))
    for chosen, share in zip((signs > 0, (signs < 0) & own, ~own), shares, strict=True):
        weight[chosen] = share / max(1, chosen.sum())

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        margins = signs * (features @ values[:-1] + values[-1])
        slope = -weight * signs / (1 + np.exp(np.clip(margins, -60, 60)))
        gradient = np.append(features.T @ slope + PENALTY / 100 * values[:-1], slope.sum())
        return float(weight @ np.logaddexp(0, -margins) + PENALTY / 200 * values[:-1] @ values[:-1]), gradient

    values = minimize(loss, np.zeros(BUCKETS + 1), jac=True, method="L-BFGS-B", options={"maxiter": 400}).x
    return values[:-1], float(values[-1])


def logits(model: Model, texts: Sequence[Sequence[str]]) -> np.ndarray:
    """The logit of each text, given its words."""
    return matrix_of(texts) @ model[0] + model[1]


def write(name: str, model: Model, thresholds: dict[str, float]) -> None:
    """Write the table as it is shipped."""
    scale = float(np.abs(model[0]).max() / 127)
    steps = np.rint(model[0] / scale).astype(np.int8)
    table = {"bias": round(model[1], 4), "scale": round(scale, 6)} | thresholds
    table = dict(sorted(table.items())) | {"weights": base64.b64encode(steps.tobytes()).decode()}
    (TABLES / f"{name}.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
