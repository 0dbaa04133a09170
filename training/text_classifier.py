"""Fits a classifier of short texts, `ragwatch.judges.text_classifier`, and writes its table. Needs numpy and scipy."""

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, hstack

from ragwatch.judges.text_classifier import pair_hashes, word_hashes

HERE = Path(__file__).parent
TABLES = HERE.parent / "ragwatch" / "judges" / "tables"
DATA = HERE.parents[1] / "shared" / "data" / "judge" / "train"


class Settings(NamedTuple):
    """How a classifier is fitted: its number of weights, how often words and pairs count, and the L2 penalty.

    Adam passes over the texts `passes` times; where that is 0, L-BFGS runs until it converges, which takes minutes
    for a small penalty. `named` numbers other features of the words, up to `names`.
    """

    buckets: int = 1 << 14
    stress: int = 1
    penalty: float = 1e-4
    passes: int = 0
    named: Callable[[Sequence[str]], Sequence[int]] = lambda _: ()
    names: int = 0


DEFAULT = Settings()
BATCH, RATE = 512, 0.15


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


_CHOICE = re.compile(r"\{([^{}]*\|[^{}]*)\}")
_MOST_WORDINGS = 7


def wordings(text: str) -> list[str]:
    """Wordings of a line with choices, such as `{Give|Award} {full marks|ten points}`: some of all possible ones."""
    choices = [match[1].split("|") for match in _CHOICE.finditer(text)]
    numbers = range(min(_MOST_WORDINGS, 2 * max(map(len, choices), default=1)))
    return list(dict.fromkeys(_wording(text, choices, number) for number in numbers))


def _wording(text: str, choices: Sequence[Sequence[str]], number: int) -> str:
    picked = (
        words[(number * (2 * place + 1) + place + number // len(words)) % len(words)]
        for place, words in enumerate(choices)
    )
    return " ".join(_CHOICE.sub(lambda _: next(picked), text).split())


def lines_of(path: Path) -> list[Line]:
    """The lines of a file, each wording of a line as one."""
    lines: list[Line] = []
    language = kind = sign = ""
    for text in path.read_text(encoding="utf-8").splitlines():
        if text.startswith("# ") and text.endswith((" +", " -")):
            language, kind, sign = text[2:].split()
        elif text:
            lines += [Line(language, kind, sign == "+", wording) for wording in wordings(text)]
    return lines


def matrix_of(texts: Sequence[Sequence[str]], settings: Settings) -> csr_matrix:
    """Counts of the features of texts, given their words, scaled; named features stand behind the others."""
    of_word = cache(word_hashes)
    hashed = _counts(
        [
            [number % settings.buckets for word in words for number in of_word(word, settings.stress)]
            + [number % settings.buckets for number in pair_hashes(words)] * settings.stress
            for words in texts
        ],
        settings.buckets,
    )
    return hstack([hashed, _counts([settings.named(words) for words in texts], settings.names)], format="csr")


def _counts(rows: Sequence[Sequence[int]], width: int) -> csr_matrix:
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    columns = np.fromiter(chain.from_iterable(rows), np.int64, lengths.sum())
    values = np.repeat(1 / np.sqrt(np.maximum(1, lengths)), lengths)
    matrix = csr_matrix((values, columns, np.append(0, lengths.cumsum())), shape=(len(rows), width))
    matrix.sum_duplicates()
    return matrix


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

    if settings.passes:
        return _passes(features, signs, weight, settings)
    start = np.zeros(features.shape[1] + 1)
    values = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 400}).x
    return Model(values[:-1], float(values[-1]), settings)


def _passes(features: csr_matrix, signs: np.ndarray, weight: np.ndarray, settings: Settings) -> Model:
    """Adam on batches in an order that is the same each time, with steps that shrink to nothing."""
    random, each = np.random.default_rng(1), weight / weight.mean()
    values, first, second = np.zeros((3, features.shape[1] + 1))
    batches = [
        order[start : start + BATCH]
        for order in (random.permutation(len(signs)) for _ in range(settings.passes))
        for start in range(0, len(signs), BATCH)
    ]
    for step, batch in enumerate(batches, 1):
        rows = features[batch]
        margins = signs[batch] * (rows @ values[:-1] + values[-1])
        slope = -each[batch] * signs[batch] / (1 + np.exp(np.clip(margins, -60, 60))) / len(batch)
        gradient = np.append(rows.T @ slope + settings.penalty * values[:-1], slope.sum())
        first = 0.9 * first + 0.1 * gradient
        second = 0.99 * second + 0.01 * gradient**2
        scaled = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.99**step)) + 1e-7)
        values -= RATE * (1 - (step - 1) / len(batches)) * scaled
    return Model(values[:-1], float(values[-1]), settings)


def logits(model: Model, texts: Sequence[Sequence[str]]) -> np.ndarray:
    """The logit of each text, given its words."""
    return matrix_of(texts, model.settings) @ model.weights + model.bias


def table_of(model: Model, **thresholds: float) -> dict[str, float | str]:
    """A classifier as `ragwatch.judges.text_classifier` reads it."""
    buckets = model.settings.buckets
    scale, weights = _bytes(model.weights[:buckets])
    numbers = {"bias": round(model.bias, 4), "scale": scale, "stress": model.settings.stress} | thresholds
    texts = {"weights": weights}
    if model.settings.names:
        numbers["named_scale"], texts["named"] = _bytes(model.weights[buckets:])
    return dict(sorted(numbers.items())) | texts


def _bytes(weights: np.ndarray) -> tuple[float, str]:
    """What one step is worth, and the weights as signed bytes."""
    scale = float(np.abs(weights).max() / 127)
    return round(scale, 6), base64.b64encode(np.rint(weights / scale).astype(np.int8).tobytes()).decode()


def write(name: str, table: Mapping[str, object]) -> None:
    """Write a table, or one for each class, as it is shipped."""
    (TABLES / f"{name}.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
