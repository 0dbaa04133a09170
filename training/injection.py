"""Fits the classifier of instructions to a judge, and writes `ragwatch/judges/tables/injection.json`.

`python training/injection.py` fits and writes it; `--figures` prints what lines that were not fitted on are read as.
Needs numpy and scipy. Lines of our own are in `training/injection/`; sentences of `../shared/data/judge/train` are
harmless.
"""

from __future__ import annotations

import base64
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from ragwatch.judges.llm.injection_classifier import BUCKETS, pair_bucket, windows, word_buckets, words_of

HERE = Path(__file__).parent
TABLE = HERE.parent / "ragwatch" / "judges" / "tables" / "injection.json"
DATA = HERE.parents[1] / "shared" / "data" / "judge" / "train"
FITTED = (
    "attributionbench/dev",
    "factcheck_gpt/stance",
    *(
        f"summedits/{name}"
        for name in ("ectsum", "news", "podcast", "qmsumm", "sales_call", "sales_email", "samsum", "scitldr")
    ),
    *(f"begin/{name}" for name in ("cmu_dev", "tc_dev", "wow_dev", "wow_test")),
    "q2_wow/cross_annotation",
)
HELD_OUT = ("expertqa/all",)
ROUNDS, HARDEST = 4, 6000
"""Times that it is fitted; each time with more of those real windows that look most like instructions."""
PENALTY = 0.01
ALONE, WITH_PHRASE = 0.0, -1.75
MOST_REAL = 8000


class Line(NamedTuple):
    """A line of our own: its language, its kind, and whether it is an instruction to a judge."""

    language: str
    kind: str
    positive: bool
    text: str


def lines_of(name: str) -> list[Line]:
    """The lines of a file."""
    lines, head = [], ("", "", "")
    for text in (HERE / "injection" / name).read_text(encoding="utf-8").splitlines():
        if text.startswith("# ") and text.endswith((" +", " -")):
            head = tuple(text[2:].split())
        elif text:
            lines.append(Line(head[0], head[1], head[2] == "+", text))
    return lines


def real_sentences(names: Sequence[str]) -> list[str]:
    """Windows of real answers and contexts; none where the data is absent."""
    sentences: dict[str, None] = {}
    for name in names:
        path = DATA / f"{name}.jsonl"
        rows = map(json.loads, path.read_text(encoding="utf-8").splitlines()) if path.is_file() else ()
        for row in rows:
            contexts = (one if isinstance(one, str) else one["text"] for one in row.get("contexts") or ())
            for text in (row.get("answer") or "", row.get("question") or "", *contexts):
                sentences |= dict.fromkeys(" ".join(words) for words in windows(text[:6000]))
    return list(sentences)


def row_of(words: Sequence[str]) -> Counter[int]:
    """Counts of the features of a window, scaled."""
    counts = Counter(bucket for word in words for bucket in word_buckets(word))
    counts.update(pair_bucket(*pair) for pair in pairwise(words))
    scale = 1 / sqrt(max(1, counts.total()))
    return Counter({bucket: count * scale for bucket, count in counts.items()})  # type: ignore[misc]


def matrix_of(texts: Sequence[str]) -> csr_matrix:
    """The features of texts."""
    rows = [row_of(words_of(text)[:60]) for text in texts]
    pointers = np.cumsum([0, *map(len, rows)])
    columns = [bucket for row in rows for bucket in row]
    values = [value for row in rows for value in row.values()]
    return csr_matrix((values, columns, pointers), shape=(len(rows), BUCKETS))


def fit(lines: Sequence[Line], real: Sequence[str]) -> tuple[np.ndarray, float]:
    """Weights and bias of a logistic regression with an L2 penalty; both classes weigh the same."""
    features = matrix_of([*(line.text for line in lines), *real])
    signs = np.array([1.0 if line.positive else -1.0 for line in lines] + [-1.0] * len(real))
    own = np.array([True] * len(lines) + [False] * len(real))
    shares = [(signs > 0, 0.30), ((signs < 0) & own, 0.25), (~own, 0.45)]
    weight = np.zeros(len(signs))
    for chosen, share in shares:
        weight[chosen] = share / max(1, chosen.sum())

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        margins = signs * (features @ values[:-1] + values[-1])
        slope = -weight * signs / (1 + np.exp(np.clip(margins, -60, 60)))
        gradient = np.append(features.T @ slope + PENALTY / 100 * values[:-1], slope.sum())
        return float(weight @ np.logaddexp(0, -margins) + PENALTY / 200 * values[:-1] @ values[:-1]), gradient

    values = minimize(loss, np.zeros(BUCKETS + 1), jac=True, method="L-BFGS-B", options={"maxiter": 400}).x
    return values[:-1], float(values[-1])


def logits(model: tuple[np.ndarray, float], texts: Sequence[str]) -> np.ndarray:
    """The logit of each text."""
    return matrix_of(texts) @ model[0] + model[1]


def table_of(model: tuple[np.ndarray, float]) -> str:
    """The table as it is shipped."""
    scale = float(np.abs(model[0]).max() / 127)
    steps = np.rint(model[0] / scale).astype(np.int8)
    table = {"alone": ALONE, "bias": round(model[1], 4), "scale": round(scale, 6), "with_phrase": WITH_PHRASE}
    return json.dumps(table | {"weights": base64.b64encode(steps.tobytes()).decode()}, indent=1) + "\n"


def print_held_out(name: str, lines: Sequence[Line], real: Sequence[str], group: Callable[[int, Line], str]) -> None:
    """Fit without each group in turn, and print how that group is read."""
    hit, false = [], []
    by_group = {}
    for held in sorted({group(number, line) for number, line in enumerate(lines)}):
        rest = [line for number, line in enumerate(lines) if group(number, line) != held]
        tested = [line for number, line in enumerate(lines) if group(number, line) == held]
        found = logits(fit(rest, real[:2000]), [line.text for line in tested])
        ours = [float(logit) for logit, line in zip(found, tested, strict=True) if line.positive]
        theirs = [float(logit) for logit, line in zip(found, tested, strict=True) if not line.positive]
        by_group[held] = (
            f"{sum(one > ALONE for one in ours)}/{len(ours)} ({sum(one > ALONE for one in theirs)}/{len(theirs)})"
        )
        hit += ours
        false += theirs
    print(
        name,
        {
            cut: (round(np.mean(np.array(hit) > cut), 3), round(np.mean(np.array(false) > cut), 3))
            for cut in (-1, -0.5, 0, 0.5, 1)
        },
        by_group,
    )


def main() -> None:
    """Fit and write, or print figures."""
    lines = [*lines_of("english.txt"), *lines_of("languages.txt")]
    real = real_sentences(FITTED)[:MOST_REAL]
    if "--figures" in sys.argv:
        print_held_out("a tenth of the lines", lines, real, lambda number, _: str(number * 7919 % 10))
        print_held_out("a language", lines, real, lambda _, line: line.language if line.language != "en" else "")
        print_held_out(
            "a kind (en)", [line for line in lines if line.language == "en"], real, lambda _, line: line.kind
        )
    model = fit(lines, real)
    everything = real_sentences(FITTED)
    for _ in range(ROUNDS - 1):
        order = np.argsort(-logits(model, everything))[:HARDEST]
        real = list(dict.fromkeys([*real, *(everything[number] for number in order)]))
        model = fit(lines, real)
    for names in (FITTED, HELD_OUT):
        found = logits(model, real_sentences(names))
        print(names, len(found), {cut: float(np.mean(found > cut)) for cut in (-2.5, -1, -0.5, 0, 0.5)})
    TABLE.write_text(table_of(model), encoding="utf-8")


if __name__ == "__main__":
    main()
