"""Similarity: how alike two passages are as strings, for canaries that expect texts. Needs rapidfuzz, an extra."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from ragwatch.core.ranking import Similarity
from ragwatch.errors import ConfigError

MOST_CHARS = 20_000  # of each text: edits take time that grows with both, and the loop waits
SHINGLE = 3


class SimilarityMeasure(StrEnum):
    """Ways to compare, all on texts without case and without differences of white space.

    `levenshtein`: 1 - edits / length of the longer (as ragas does): for passages cut as they were expected.
    `containment`: share of the runs of three words in the shorter that the longer holds as well (Broder 1997,
        10.1109/SEQUEN.1997.666900): for passages cut differently.
    `tokens`: shared words, whatever their order.
    """

    LEVENSHTEIN = "levenshtein"
    CONTAINMENT = "containment"
    TOKENS = "tokens"


def similarity(measure: SimilarityMeasure = SimilarityMeasure.LEVENSHTEIN) -> Similarity:
    """A function from two texts to [0, 1]. An empty text is like nothing; only `MOST_CHARS` of each are looked at.

    Raises:
        ConfigError: The extra `probes` is not installed.
    """
    try:
        from rapidfuzz import fuzz  # noqa: PLC0415 - an extra
        from rapidfuzz.distance import Levenshtein  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigError("expected texts: need rapidfuzz; install ragwatch-exporter[probes]") from error
    ways: dict[SimilarityMeasure, Callable[[str, str], float]] = {
        SimilarityMeasure.LEVENSHTEIN: Levenshtein.normalized_similarity,
        SimilarityMeasure.CONTAINMENT: _containment,
        SimilarityMeasure.TOKENS: lambda one, other: fuzz.token_set_ratio(one, other) / 100,
    }
    compare = ways[measure]

    def similar(one: str, other: str) -> float:
        one, other = _plain(one), _plain(other)
        return float(compare(one, other)) if one and other else 0.0

    return similar


def _containment(one: str, other: str) -> float:
    shorter, longer = sorted((one.split(), other.split()), key=len)
    size = min(SHINGLE, len(shorter))
    wanted = _runs(shorter, size)
    return len(wanted & _runs(longer, size)) / len(wanted)


def _runs(words: list[str], size: int) -> set[tuple[str, ...]]:
    return {tuple(words[start : start + size]) for start in range(len(words) - size + 1)}


def _plain(text: str) -> str:
    return " ".join(text[:MOST_CHARS].casefold().split())
