"""What the trivial score, the lexical judge and the local judge say of rows; in as many processes as are allowed."""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from accuracy.rows import Row

from ragwatch.judges.claims.atomic_facts import facts_of
from ragwatch.judges.claims.words import terms
from ragwatch.judges.lexical import judge as lexical
from ragwatch.judges.lexical.judge import LexicalJudge
from ragwatch.judges.lexical.reader import Thresholds, read
from ragwatch.judges.lexical.tables import shipped
from ragwatch.judges.local import judge as local
from ragwatch.model.evidence import ClaimVerdict
from ragwatch.model.sample import Sample
from ragwatch.pipeline.sampling_control import InMemoryBudget
from ragwatch.ports import JudgeContext
from ragwatch.statistics.scores import top_ranked_ignored
from ragwatch.telemetry import Telemetry

OVERLAP, LEXICAL, LOCAL = "word overlap", "lexical", "local"


@dataclass(frozen=True, slots=True)
class Reading:
    """What one judge says of one row."""

    doubt: float | None  # probability that it is unfaithful: one less the least support of its claims; None without any
    flagged: bool  # its own verdict: some claim is not supported
    contradicted: bool = False  # some claim is contradicted
    relevance: tuple[float | None, ...] = ()  # of each context; None where unknown
    # start and end of each claim, and the ranks of the contexts whose cells are marked
    cells: tuple[tuple[int, int, tuple[int, ...]], ...] = ()
    uses_first: bool | None = None  # whether some claim uses the first context; None where unknown


def overlap(sample: Sample) -> Reading:
    """The trivial score: share of the answer's content words that stand in no context."""
    said = set(terms(sample.answer))
    found = {word for context in sample.contexts for word in terms(context.text)}
    doubt = len(said - found) / len(said) if said else 0.0
    return Reading(doubt, flagged=doubt > 0.5)


class Bench:
    """The judges under test.

    Args:
        weights: Folder of another model; None for the one in the package.
    """

    def __init__(self, weights: Path | None = None) -> None:
        context = JudgeContext(Telemetry(), InMemoryBudget(), time.time)
        self.lexical = lexical.build(lexical.Options(), name=LEXICAL, context=context)
        self.local = local.build(local.Options(weights=weights), name=LOCAL, context=context)

    def read(self, row: Row) -> dict[str, Reading]:
        """What each says."""
        found = {OVERLAP: overlap(row.sample), LEXICAL: reading(self.lexical, row.sample)}
        return found if self.local.fallback else {**found, LOCAL: reading(self.local, row.sample)}


def reading(judge: LexicalJudge, sample: Sample) -> Reading:
    """What an embedded judge says of one row."""
    answer = facts_of(sample.answer, sample.question)
    evidence = read(sample, answer, shipped(), Thresholds(), judge.cross_encoder)
    ignored = top_ranked_ignored(evidence)
    return Reading(
        doubt=max((1.0 - (claim.support or 0.0) for claim in evidence.claims), default=None),
        flagged=any(claim.verdict is not ClaimVerdict.SUPPORTED for claim in evidence.claims),
        contradicted=any(claim.verdict is ClaimVerdict.CONTRADICTED for claim in evidence.claims),
        relevance=tuple(column.relevance for column in evidence.contexts),
        cells=tuple(
            (claim.start or 0, claim.end or 0, tuple(rank for rank, cell in enumerate(claim.cells) if cell))
            for claim in evidence.claims
        ),
        uses_first=None if ignored is None else not ignored,
    )


_bench: Bench | None = None


def _begin(weights: Path | None) -> None:
    global _bench  # noqa: PLW0603 - one for each process of the pool
    _bench = Bench(weights)


def _read(row: Row) -> dict[str, Reading]:
    if _bench is None:
        raise RuntimeError("the process has no judges")
    return _bench.read(row)


@contextmanager
def readers(weights: Path | None, jobs: int) -> Iterator[Callable[[Iterable[Row]], Iterator[dict[str, Reading]]]]:
    """A function that reads rows, in their order, with so many processes."""
    if jobs == 1:
        _begin(weights)
        yield lambda rows: map(_read, rows)
        return
    with ProcessPoolExecutor(jobs, initializer=_begin, initargs=(weights,)) as pool:
        yield lambda rows: pool.map(_read, rows, chunksize=4)
