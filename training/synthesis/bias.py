"""Whether a pair gives its label away: what a claim alone, shared words, and the lexical judge say about it.

`python -m synthesis.bias` in training/ prints the areas under the curve (supported against the rest). Claim alone and
shared words ought to be near .5: what is left to learn is then what the passage says.
"""

import random
import re
import sys
import zlib
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from fit import auroc  # noqa: E402

from ragwatch.judges.claims.words import terms  # noqa: E402
from ragwatch.judges.lexical.features import claim_words, features, match  # noqa: E402
from ragwatch.judges.lexical.passages import passage  # noqa: E402
from ragwatch.judges.lexical.tables import shipped  # noqa: E402
from synthesis import Pair, pairs  # noqa: E402

SLOTS = 1 << 18
EPOCHS = 6


def parts(claim: str) -> NDArray[np.int64]:
    """Slots of a claim's words and pairs of words."""
    words = re.findall(r"\w+|[^\w\s]", claim.lower())
    grams = words + [f"{first} {second}" for first, second in pairwise(words)]
    return np.array(sorted({zlib.crc32(gram.encode()) % SLOTS for gram in grams}), dtype=np.int64)


def claim_alone(train: Sequence[Pair], test: Sequence[Pair], seed: int = 7) -> list[float]:
    """Log-odds that claims are supported, by logistic regression on their words and pairs of words (AdaGrad)."""
    weights, squares = np.zeros(SLOTS), np.full(SLOTS, 1e-2)
    rows = [(parts(item.claim), 1.0 if item.verdict == "supported" else 0.0) for item in train]
    rng = random.Random(seed)
    for _ in range(EPOCHS):
        rng.shuffle(rows)
        for slots, label in rows:
            pull = 1.0 / (1.0 + np.exp(-weights[slots].sum())) - label
            step = pull + 1e-4 * weights[slots]
            squares[slots] += step * step
            weights[slots] -= 0.1 * step / np.sqrt(squares[slots])
    return [float(weights[parts(item.claim)].sum()) for item in test]


def overlap(item: Pair) -> float:
    """Share of the claim's words that the passages hold."""
    wanted = set(terms(item.claim))
    return len(wanted & set(terms(" ".join(item.passages)))) / max(1, len(wanted))


def lexical(item: Pair) -> float:
    """Logit of support, by the shipped lexical judge over all passages."""
    tables = shipped()
    words = claim_words(item.claim, tables.rarity)
    found = features(words, [match(words, passage(text)) for text in item.passages], frozenset())
    return float(tables.support.bias + sum(w * x for w, x in zip(tables.support.weights, found, strict=True)))


def main(count: int = 40_000) -> None:
    """Print the table."""
    made = list(pairs(11, count))
    held = {group for group in {item.group for item in made} if zlib.crc32(group.encode()) % 5 == 0}
    train = [item for item in made if item.group not in held]
    test = [item for item in made if item.group in held]
    scores = {"claim alone": claim_alone(train, test), "shared words": [overlap(item) for item in test]}
    scores["claim length"] = [float(len(item.claim)) for item in test]
    scores["lexical judge"] = [lexical(item) for item in test]
    supported = [item.verdict == "supported" for item in test]
    print(f"{len(made)} pairs, {len(test)} held out, {sum(supported) / len(test):.2f} supported")
    for name, values in scores.items():
        print(f"all: {name} {auroc(supported, values):.3f}")
    families: dict[str, list[int]] = defaultdict(list)
    for index, item in enumerate(test):
        families[item.recipe.rstrip("+~=")].append(index)
    for family, indices in sorted(families.items()):
        labels = [supported[index] for index in indices]
        if 0 < sum(labels) < len(labels):
            line = " ".join(f"{name} {auroc(labels, [v[i] for i in indices]):.3f}" for name, v in scores.items())
            print(f"{family:24s} n={len(indices):5d} {line}")


if __name__ == "__main__":
    main()
