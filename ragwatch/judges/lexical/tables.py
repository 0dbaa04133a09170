"""Loads the fitted tables of the lexical judge from two JSON files.

Only `training/lexical.py` writes them. The version of the judge is a hash of them, so that verdicts by different
weights never share a mean.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from ragwatch.judges.claims import words
from ragwatch.judges.text_classifier import table_text

FILES = ("lexical_weights.json", "idf.json")

Split = Callable[[str], list[str]]
"""Splits a text into content terms, as `claims.words.terms` does in English."""

_CLIP = 1e-6  # a probability is clipped to this distance from 0 and 1


def logit(probability: float) -> float:
    """Logit of a probability.

    >>> logit(0.5), round(logit(1.0), 3)
    (0.0, 13.816)
    """
    clipped = min(1.0 - _CLIP, max(_CLIP, probability))
    return math.log(clipped / (1.0 - clipped))


def logistic(logit: float) -> float:
    """Probability of a logit, which counts up to 60."""
    return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, logit))))


@dataclass(frozen=True, slots=True)
class LogisticModel:
    """A logistic model: sigmoid(bias + sum of weight * feature), on the raw scale of the features."""

    bias: float
    weights: tuple[float, ...]

    def probability(self, features: tuple[float, ...]) -> float:
        """The probability, in [0, 1].

        >>> LogisticModel(0.0, (2.0,)).probability((0.0,))
        0.5
        """
        return logistic(math.fsum((self.bias, *(w * x for w, x in zip(self.weights, features, strict=True)))))


@dataclass(frozen=True, slots=True)
class FittedTables:
    """The fitted tables."""

    support: LogisticModel  # probability that passages support a claim, from `features.NAMES`
    relevance: LogisticModel  # probability that a context is useful for the answer, from `relevance.NAMES`
    # inverse document frequency of a term, scaled to [0, 1]; 1 for a term that is not in the table
    rarity: Mapping[str, float]
    version: str  # eight hexadecimal digits of the hash of the files
    names: frozenset[str] = frozenset()  # terms of that table that are names: nearly always written with a capital
    split: Split | None = None  # how texts of another language are split into terms; None for English

    def terms(self, text: str) -> list[str]:
        """Split a text into content terms, in order, with duplicates."""
        return (self.split or words.terms)(text)


def parse(weights: str, idf: str) -> FittedTables:
    """Parse the two files.

    Raises:
        KeyError, ValueError: The files are not in the format that `training/` writes.
    """
    fitted = json.loads(weights)
    support, relevance = (
        LogisticModel(float(fitted[part]["bias"]), tuple(map(float, fitted[part]["weights"].values())))
        for part in ("support", "relevance")
    )
    listed = {word: int(level) / 100 for level, words in json.loads(idf)["levels"].items() for word in words.split()}
    return FittedTables(
        support,
        relevance,
        rarity={word.lower(): value for word, value in listed.items()},
        version=hashlib.sha256((weights + idf).encode()).hexdigest()[:8],
        names=frozenset(word.lower() for word in listed if not word.islower() and word[0].isalpha()),
    )


@cache
def shipped() -> FittedTables:
    """The tables of the package, from a cache."""
    return parse(*map(table_text, FILES))
