"""String similarity of two passages, for canaries that expect texts. Needs rapidfuzz, an extra."""

from collections.abc import Callable
from enum import StrEnum

from ragwatch.statistics.ranking import Similarity

MAX_CHARS = 20_000  # of each text: the time of edit distance is quadratic, and it blocks the event loop
SHINGLE_WORDS = 3


class SimilarityMeasure(StrEnum):
    """Similarity measures. All ignore case and differences of white space.

    `levenshtein`: 1 - edit distance / length of the longer text (as in ragas), for passages with the same boundaries.
    `containment`: share of the three-word shingles of the shorter text that the longer one contains (Broder 1997,
        10.1109/SEQUEN.1997.666900), for passages with different boundaries.
    `tokens`: shared words in any order.
    """

    LEVENSHTEIN = "levenshtein"
    CONTAINMENT = "containment"
    TOKENS = "tokens"


def similarity(measure: SimilarityMeasure = SimilarityMeasure.LEVENSHTEIN) -> Similarity:
    """Return a function from two texts to [0, 1]. It is 0 for an empty text; `MAX_CHARS` of each are compared."""
    from rapidfuzz import fuzz  # noqa: PLC0415 - only suites with expected texts need it
    from rapidfuzz.distance import Levenshtein  # noqa: PLC0415 - as above

    measures: dict[SimilarityMeasure, Callable[[str, str], float]] = {
        SimilarityMeasure.LEVENSHTEIN: Levenshtein.normalized_similarity,
        SimilarityMeasure.CONTAINMENT: _containment,
        SimilarityMeasure.TOKENS: lambda first, second: fuzz.token_set_ratio(first, second) / 100,
    }
    compare = measures[measure]

    def similar(first: str, second: str) -> float:
        first, second = _normalized(first), _normalized(second)
        return float(compare(first, second)) if first and second else 0.0

    return similar


def _containment(first: str, second: str) -> float:
    shorter, longer = sorted((first.split(), second.split()), key=len)
    size = min(SHINGLE_WORDS, len(shorter))
    expected = _shingles(shorter, size)
    return len(expected & _shingles(longer, size)) / len(expected)


def _shingles(words: list[str], size: int) -> set[tuple[str, ...]]:
    return {tuple(words[start : start + size]) for start in range(len(words) - size + 1)}


def _normalized(text: str) -> str:
    return " ".join(text[:MAX_CHARS].casefold().split())
