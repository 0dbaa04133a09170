"""Pools of contexts whose relevance people judge: the top of a retriever, a sample from below it, random negatives.

Judging every pair of query and context is too costly: 500 queries and 100,000 contexts are 50 million pairs. A pool
holds, for one query,

- the first k contexts of the retriever, all of them;
- a stratified sample from below k, by rank in bands that double (k+1 to 2k, 2k+1 to 4k, ...), as many from each band;
- a sample of the contexts of the corpus that the retriever did not return.

Within a stratum contexts are drawn with equal probability without replacement, by a hash, so that the same input gives
the same pool. Each candidate keeps its inclusion probability, from which `relevance_estimate` computes recall.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b

TOP, UNRETRIEVED = "top", "unretrieved"


class Grade(StrEnum):
    """Relevance of a context to a query, in two grades, and not relevant."""

    NOT_RELEVANT = "not_relevant"
    RELEVANT = "relevant"
    HIGHLY_RELEVANT = "highly_relevant"

    @property
    def gain(self) -> int:
        """The grade as a number, as qrels hold it."""
        return _GAINS[self]


_GAINS: Mapping[Grade, int] = {Grade.NOT_RELEVANT: 0, Grade.RELEVANT: 1, Grade.HIGHLY_RELEVANT: 2}


@dataclass(frozen=True, slots=True)
class PoolSizes:
    """How many contexts of a query are judged: of the top k all, some of each band below, and some not returned."""

    k: int = 10
    below: int = 3
    negatives: int = 3


@dataclass(frozen=True, slots=True)
class Candidate:
    """One context to judge for one query.

    Attributes:
        text: Its text; empty if it is unknown.
        rank: Rank in the retriever's reply, from 1; None if the retriever did not return it.
        stratum: `top`, the ranks of a band such as `11-20`, or `unretrieved`.
        probability: Inclusion probability, in (0, 1].
    """

    query: str
    id: str
    text: str
    rank: int | None
    stratum: str
    probability: float

    def __post_init__(self) -> None:
        if not 0.0 < self.probability <= 1.0:
            raise ValueError(f"probability must be in (0, 1], not {self.probability}")


@dataclass(frozen=True, slots=True)
class QueryPool:
    """The candidates of one query, and the sizes of the strata that they were drawn from.

    Attributes:
        candidates: In an order that tells nothing of their ranks.
        sizes: Number of contexts by stratum.
    """

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
