"""Estimates recall from judged pools of contexts, with an interval; agreement of annotators (Krippendorff's alpha).

Relevant contexts in the top k are counted, because all of these are judged. Those below are estimated by stratum: the
share of relevant ones (Hajek, over 1 / inclusion probability) times the size. The interval of their total combines
those of the strata (MOVER, Zou and Donner 2008), and that of recall = top / (top + below) follows, because recall falls
with the total. It is about these queries: those of the traffic differ by more.

Judging every pair of query and context is too costly: 500 queries and 100,000 contexts are 50 million pairs. A pool
holds, for one query, the first k contexts of the retriever; a stratified sample from below k, by rank in bands that
double (k+1 to 2k, 2k+1 to 4k, ...), as many from each; and a sample of the contexts that the retriever did not return.
Within a stratum contexts are drawn with equal probability without replacement, by a hash, so that the same input gives
the same pool.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from statistics import NormalDist

from ragwatch.model.estimate import Addends
from ragwatch.statistics.estimators import hajek
from ragwatch.statistics.estimators.interval import CountedInterval

TOP, UNRETRIEVED = "top", "unretrieved"


class Grade(StrEnum):
    """Relevance of a context to a query, in two grades, and not relevant."""

    NOT_RELEVANT = "not_relevant"
    RELEVANT = "relevant"
    HIGHLY_RELEVANT = "highly_relevant"

    @property
    def gain(self) -> int:
        """The grade as a number, as qrels hold it: 0, 1 or 2."""
        return _GRADES.index(self)


@dataclass(frozen=True, slots=True)
class PoolSizes:
    """How many contexts of a query are judged: of the top k all, some of each band below, and some not returned."""

    k: int = 10
    below: int = 3
    negatives: int = 3


@dataclass(frozen=True, slots=True)
class Candidate:
    """One context to judge for one query."""

    query: str
    id: str
    text: str  # its text; empty if it is unknown
    rank: int | None  # rank in the retriever's reply, from 1; None if the retriever did not return it
    stratum: str  # `top`, the ranks of a band such as `11-20`, or `unretrieved`
    probability: float  # inclusion probability, in (0, 1]

    def __post_init__(self) -> None:
        if not 0.0 < self.probability <= 1.0:
            raise ValueError(f"probability must be in (0, 1], not {self.probability}")


@dataclass(frozen=True, slots=True)
class QueryPool:
    """The candidates of one query, in an order that tells nothing of their ranks, and the sizes of the strata."""

    query: str
    k: int
    candidates: tuple[Candidate, ...]
    sizes: Mapping[str, int]


def draw_pool(
    query: str, ranked: Sequence[tuple[str, str]], corpus: Iterable[tuple[str, str]], sizes: PoolSizes, seed: str
) -> QueryPool:
    """Draw the contexts of a query to judge, from the reply of the retriever and from the corpus (id and text).

    A repeated id counts once; without a corpus there are no negatives; equal seeds give equal pools.
    """
    unique = list(dict(ranked).items())
    strata: list[tuple[str, int, list[tuple[str, str, int | None]]]] = []
    start, end = 0, sizes.k
    while start < len(unique):
        last = min(end, len(unique))
        members = [(name, text, rank) for rank, (name, text) in enumerate(unique[start:last], start=start + 1)]
        strata.append((f"{start + 1}-{last}" if start else TOP, sizes.below if start else last, list(members)))
        start, end = last, 2 * end
    returned = {name for name, _ in unique}
    others = [(name, text, None) for name, text in dict(corpus).items() if name not in returned]
    if others:
        strata.append((UNRETRIEVED, sizes.negatives, list(others)))
    candidates = []
    for stratum, wanted, members_of in strata:
        number = min(wanted, len(members_of))
        drawn = sorted(members_of, key=lambda member: _hash(seed, query, member[0]))[:number]
        probability = number / len(members_of) if number else 1.0
        candidates += [
            Candidate(query, name, text, rank=rank, stratum=stratum, probability=probability)
            for name, text, rank in drawn
        ]
    candidates.sort(key=lambda one: _hash("order", seed, query, one.id))
    return QueryPool(query, sizes.k, tuple(candidates), {name: len(members) for name, _, members in strata})


def _hash(*parts: str) -> bytes:
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()


def pairs_to_judge(pools: Iterable[QueryPool]) -> tuple[int, int]:
    """Return the number of pairs of a query and a context to judge, and of all pairs.

    >>> one = QueryPool("q", 1, (Candidate("q", "a", "", 1, TOP, 1.0),), {TOP: 1, UNRETRIEVED: 99_999})
    >>> pairs_to_judge([one] * 500)
    (500, 50000000)
    """
    known = list(pools)
    return sum(len(pool.candidates) for pool in known), sum(sum(pool.sizes.values()) for pool in known)


Grades = Mapping[tuple[str, str], Mapping[str, Grade]]
"""Judgements by query and id of the context: the grade by annotator."""

_GRADES = tuple(Grade)


@dataclass(frozen=True, slots=True)
class StratumReport:
    """Judgements of one stratum over all queries, and the estimated number of relevant contexts; None without any."""

    stratum: str
    contexts: int
    judged: int
    relevant: int
    total: CountedInterval | None


@dataclass(frozen=True, slots=True)
class RelevanceReport:
    """What the judgements say of a retriever."""

    queries: int  # number of queries all of whose candidates are judged; only these count
    strata: tuple[StratumReport, ...]
    # estimated recall at k over the pairs of these queries; None if nothing relevant was found
    recall: CountedInterval | None
    # share of the relevant contexts outside the top k, 1 - recall: what judgements of the top k alone miss
    outside: CountedInterval | None
    alpha: CountedInterval | None  # agreement of the annotators; None if no pair was judged twice


def consensus(grades: Iterable[Grade]) -> Grade | None:
    """Returns the grade of several annotators: the median, the lower one of two; None without a grade.

    >>> [str(consensus([Grade(name) for name in names])) for names in (
    ...     ["relevant", "not_relevant", "relevant"], ["highly_relevant", "not_relevant"])]
    ['relevant', 'not_relevant']
    """
    ordered = sorted(grades, key=lambda grade: grade.gain)
    return ordered[(len(ordered) - 1) // 2] if ordered else None


def report(pools: Sequence[QueryPool], grades: Grades, confidence: float = 0.95) -> RelevanceReport:
    """Estimates recall of the retriever from the judgements so far, one pool a query."""
    agreed = {pair: grade for pair, by_person in grades.items() if (grade := consensus(by_person.values()))}
    complete = [pool for pool in pools if all((pool.query, one.id) in agreed for one in pool.candidates)]
    strata = _strata(complete, agreed, confidence)
    recall = _recall(strata)
    outside = recall and CountedInterval(1.0 - recall.value, 1.0 - recall.high, 1.0 - recall.low, recall.n)
    units = [list(by_person.values()) for by_person in grades.values()]
    return RelevanceReport(len(complete), strata, recall, outside, alpha(units, confidence))


def _strata(
    pools: Sequence[QueryPool], agreed: Mapping[tuple[str, str], Grade], confidence: float
) -> tuple[StratumReport, ...]:
    sizes: defaultdict[str, int] = defaultdict(int)
    judged: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for pool in pools:
        for one in pool.candidates:
            judged[one.stratum].append((float(agreed[pool.query, one.id].gain > 0), one.probability))
        for stratum, size in pool.sizes.items():
            sizes[stratum] += size
    return tuple(_stratum(name, size, judged[name], confidence) for name, size in sizes.items())


def _stratum(name: str, size: int, judged: Sequence[tuple[float, float]], confidence: float) -> StratumReport:
    relevant = int(sum(value for value, _ in judged))
    if not judged:
        return StratumReport(name, size, 0, 0, None)
    if len(judged) == size:
        total = CountedInterval(relevant, relevant, relevant, len(judged))
    else:
        value, low, high, _ = hajek.interval(Addends.of(judged), confidence)
        total = CountedInterval(size * value, max(relevant, size * low), size * high, len(judged))
        total = CountedInterval(max(total.value, relevant), total.low, max(total.high, relevant), total.n)
    return StratumReport(name, size, len(judged), relevant, total)


def _recall(strata: Sequence[StratumReport]) -> CountedInterval | None:
    """Recall from the exact number in the top and the estimated ones below; None if nothing is relevant."""
    known = [one.total for one in strata if one.total is not None]
    top = next((one.total.value for one in strata if one.stratum == TOP and one.total is not None), 0.0)
    below = [one.total for one in strata if one.stratum != TOP and one.total is not None]
    value = math.fsum(total.value for total in below)
    low = value - math.sqrt(math.fsum((total.value - total.low) ** 2 for total in below))
    high = value + math.sqrt(math.fsum((total.high - total.value) ** 2 for total in below))
    if top + value <= 0.0:
        return None
    n = sum(total.n for total in known)
    lowest = 0.0 if top <= 0.0 else top / (top + high)
    highest = 0.0 if top <= 0.0 else top / (top + max(0.0, low))
    return CountedInterval(top / (top + value), lowest, highest, n)


def alpha(units: Iterable[Sequence[Grade]], confidence: float = 0.95) -> CountedInterval | None:
    """Computes Krippendorff's alpha for ordinal grades; any number of annotators may have judged each pair.

    The interval is a jackknife over pairs. 1 is perfect agreement and 0 that of chance. None if no pair was judged by
    two annotators, or if all grades are the same.

    >>> low, mid, high = Grade
    >>> round(alpha([[low, low], [mid, high], [high, high], [low, low, mid]]).value, 3)
    0.742
    """
    counts = [[unit.count(grade) for grade in _GRADES] for unit in map(list, units) if len(unit) > 1]
    matrix = [
        [math.fsum(column) for column in zip(*rows, strict=True)] for rows in zip(*map(_pairs, counts), strict=True)
    ]
    value = ordinal_alpha(matrix) if matrix else None
    if value is None:
        return None
    without = [
        ordinal_alpha([[a - b for a, b in zip(*rows, strict=True)] for rows in zip(matrix, _pairs(unit), strict=True)])
        for unit in counts
    ]
    known = [one for one in without if one is not None]
    mean = math.fsum(known) / len(known) if known else value
    variance = math.fsum((one - mean) ** 2 for one in known) * (len(known) - 1) / max(1, len(known))
    half = NormalDist().inv_cdf(0.5 + confidence / 2.0) * math.sqrt(variance)
    return CountedInterval(value, max(-1.0, value - half), min(1.0, value + half), len(counts))


def _pairs(counts: Sequence[int]) -> list[list[float]]:
    """Coincidences of one unit: pairs of its values by different annotators, each weighted 1 / (annotators - 1)."""
    weight = 1.0 / (sum(counts) - 1)
    return [[weight * a * (b - (i == j)) for j, b in enumerate(counts)] for i, a in enumerate(counts)]


def ordinal_alpha(matrix: Sequence[Sequence[float]]) -> float | None:
    """Returns Krippendorff's ordinal alpha of a coincidence matrix; None if at most one value occurs."""
    margins = [math.fsum(row) for row in matrix]
    total, values = math.fsum(margins), range(len(margins))
    below = [math.fsum(margins[:value]) + margins[value] / 2.0 for value in values]
    observed = math.fsum(matrix[i][j] * (below[i] - below[j]) ** 2 for i in values for j in values)
    expected = math.fsum(margins[i] * margins[j] * (below[i] - below[j]) ** 2 for i in values for j in values)
    return None if expected <= 1e-9 else 1.0 - (total - 1.0) * observed / expected
