"""Fits a classifier of short texts, `ragwatch.judges.text_classifier`, and writes its table. Needs numpy and scipy."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from ragwatch.judges.text_classifier import pair_hash, word_hashes

HERE = Path(__file__).parent
TABLES = HERE.parent / "ragwatch" / "judges" / "tables"
DATA = HERE.parents[1] / "shared" / "data" / "judge" / "train"


class Settings(NamedTuple):
    """How a classifier is fitted: its number of weights, how often words and pairs count, and the L2 penalty."""

    buckets: int = 1 << 14
    stress: int = 1
    penalty: float = 1e-4


DEFAULT = Settings()


class Model(NamedTuple):
    """A fitted classifier."""

    weights: np.ndarray
    bias: float
    settings: Settings


class Line(NamedTuple):
    """A line of our own: its language, its kind, whether it is what the classifier looks for, and what it weighs."""

    language: str
    kind: str
    positive: bool
    text: str
    weight: float = 1.0


def lines_of(path: Path) -> list[Line]:
    """The lines of a file."""
    lines: list[Line] = []
    language = kind = sign = ""
    for text in path.read_text(encoding="utf-8").splitlines():
        if text.startswith("# ") and text.endswith((" +", " -")):
            language, kind, sign = text[2:].split()
        elif text:
            lines.append(Line(language, kind, sign == "+", text))
    return lines


def row_of(words: Sequence[str], settings: Settings) -> dict[int, float]:
    """Counts of the features of a text, scaled."""
    counts = Counter(number % settings.buckets for word in words for number in word_hashes(word, settings.stress))
    for pair in pairwise(words):
        counts[pair_hash(*pair) % settings.buckets] += settings.stress
    scale = 1 / sqrt(max(1, counts.total()))
    return {bucket: count * scale for bucket, count in counts.items()}


def matrix_of(texts: Sequence[Sequence[str]], settings: Settings) -> csr_matrix:
    """The features of texts, given their words."""
    rows = [row_of(words, settings) for words in texts]
    pointers = np.cumsum([0, *map(len, rows)])
    columns = [bucket for row in rows for bucket in row]
    values = [value for row in rows for value in row.values()]
    return csr_matrix((values, columns, pointers), shape=(len(rows), settings.buckets))


def fit(
    words: Callable[[str], Sequence[str]],
    lines: Sequence[Line],
    real: Sequence[str],
    shares: tuple[float, float, float],
    settings: Settings = DEFAULT,
) -> Model:
    """Weights and bias of a logistic regression with an L2 penalty.

    Args:
        words: The words of a text that are read.
        lines: Lines of our own.
        real: Real texts that are not what is looked for.
        shares: What the positive lines, the negative ones and the real texts weigh.
        settings: How it is fitted.
    """
    features = matrix_of([words(text) for text in (*(line.text for line in lines), *real)], settings)
    signs = np.array([1.0 if line.positive else -1.0 for line in lines] + [-1.0] * len(real))
    own = np.array([True] * len(lines) + [False] * len(real))
    weight = np.array([line.weight for line in lines] + [1.0] * len(real))
    for chosen, share in zip((signs > 0, (signs < 0) & own, ~own), shares, strict=True):
        weight[chosen] *= share / max(1.0, weight[chosen].sum())

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        margins = signs * (features @ values[:-1] + values[-1])
        slope = -weight * signs / (1 + np.exp(np.clip(margins, -60, 60)))
        gradient = np.append(features.T @ slope + settings.penalty * values[:-1], slope.sum())
        return float(weight @ np.logaddexp(0, -margins) + settings.penalty / 2 * values[:-1] @ values[:-1]), gradient

    start = np.zeros(settings.buckets + 1)
    values = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 400}).x
    return Model(values[:-1], float(values[-1]), settings)


def logits(model: Model, texts: Sequence[Sequence[str]]) -> np.ndarray:
    """The logit of each text, given its words."""
    return matrix_of(texts, model.settings) @ model.weights + model.bias


def table_of(model: Model, **thresholds: float) -> dict[str, float | str]:
    """A classifier as `ragwatch.judges.text_classifier` reads it."""
    scale = float(np.abs(model.weights).max() / 127)
    steps = np.rint(model.weights / scale).astype(np.int8)
    numbers = {"bias": round(model.bias, 4), "scale": round(scale, 6), "stress": model.settings.stress} | thresholds
    return dict(sorted(numbers.items())) | {"weights": base64.b64encode(steps.tobytes()).decode()}


def write(name: str, table: Mapping[str, object]) -> None:
    """Write a table, or one for each class, as it is shipped."""
    (TABLES / f"{name}.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
