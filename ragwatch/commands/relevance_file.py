"""Reads and writes the file of a relevance labelling: pools of candidates, and judgements, one JSON object a line.

Lines are only appended, so that an interruption loses no judgement. Of several judgements of one pair by one annotator
the last counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, final

from ragwatch.core.canary.definition import Canary, Category
from ragwatch.core.relevance_estimate import Grades, consensus
from ragwatch.core.relevance_pool import Candidate, Grade, QueryPool
from ragwatch.errors import ConfigError


class CandidateRow(TypedDict):
    """A candidate in the line of a pool."""

    id: str
    text: str
    rank: int | None
    stratum: str
    probability: float


@final
class PoolRow(TypedDict):
    """A line with a pool."""

    query: str
    k: int
    sizes: dict[str, int]
    candidates: list[CandidateRow]


@final
class JudgementRow(TypedDict):
    """A line with a judgement."""

    query: str
    id: str
    annotator: str
    grade: str
    at: float


@dataclass(slots=True)
class RelevanceFile:
    """Pools and judgements of one file.

    Attributes:
        path: The file; it need not exist yet.
        pools: By query.
        grades: By query and id of the context: the grade by annotator.
    """

    path: Path
    pools: dict[str, QueryPool]
    grades: dict[tuple[str, str], dict[str, Grade]]

    @classmethod
    def read(cls, path: Path) -> RelevanceFile:
        """Read a file; empty if there is none. `ConfigError` names the line that is neither a pool nor a judgement."""
        file = cls(path, {}, {})
        try:
            text = path.read_text(encoding="utf-8") if path.exists() else ""
        except (OSError, ValueError) as error:
            raise ConfigError(f"--relevance {path}: cannot be read: {error}") from error
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                try:
                    file._add(json.loads(line))
                except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                    raise ConfigError(
                        f"--relevance {path} line {number}: is no pool and no judgement ({type(error).__name__}: "
                        f"{error}); give a file that `ragwatch label --relevance` wrote"
                    ) from error
        return file

    def append(self, records: Iterable[PoolRow | JudgementRow]) -> None:
        """Add pools or judgements to the file and to this object."""
        rows = list(records)
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
        except OSError as error:
            raise ConfigError(f"--relevance {self.path}: cannot be written: {error.strerror}") from error
        for row in rows:
            self._add(row)

    def _add(self, row: PoolRow | JudgementRow) -> None:
        if "candidates" in row:
            candidates = tuple(Candidate(row["query"], **one) for one in row["candidates"])
            self.pools[row["query"]] = QueryPool(str(row["query"]), int(row["k"]), candidates, dict(row["sizes"]))
        else:
            pair = str(row["query"]), str(row["id"])
            self.grades.setdefault(pair, {})[str(row["annotator"])] = Grade(row["grade"])

    def open_pairs(self, annotator: str) -> Iterator[Candidate]:
        """Candidates that this annotator has not judged, query by query."""
        for pool in self.pools.values():
            for one in pool.candidates:
                if annotator not in self.grades.get((pool.query, one.id), {}):
                    yield one


def pool_record(pool: QueryPool) -> PoolRow:
    """Convert a pool to a line of the file."""
    candidates: list[CandidateRow] = [
        {"id": one.id, "text": one.text, "rank": one.rank, "stratum": one.stratum, "probability": one.probability}
        for one in pool.candidates
    ]
    return {"query": pool.query, "k": pool.k, "sizes": dict(pool.sizes), "candidates": candidates}


def judgement_record(candidate: Candidate, annotator: str, grade: Grade, at: float) -> JudgementRow:
    """Convert a judgement to a line of the file."""
    return {"query": candidate.query, "id": candidate.id, "annotator": annotator, "grade": str(grade), "at": at}


def qrels(canaries: Sequence[Canary], grades: Grades) -> str:
    """Return the judgements as qrels with the four columns of TREC: name of the canary, 0, id, and grade 0, 1 or 2."""
    lines = []
    for canary in canaries:
        for identity, grade in _agreed(canary.query, grades):
            for text in (canary.name, identity):
                if text.split() != [text]:
                    raise ConfigError(f"--qrels: {text!r} contains white space, which separates columns; rename it")
            lines.append(f"{canary.name}\t0\t{identity}\t{grade.gain}\n")
    return "".join(lines)


def suite_lines(canaries: Sequence[Canary], pools: Mapping[str, QueryPool], grades: Grades) -> str:
    """Return the judged queries as a canary suite (JSONL): each expects the contexts that people found relevant.

    A query of which every candidate is judged and none is relevant becomes a negative canary.
    """
    lines = []
    for canary in canaries:
        agreed = dict(_agreed(canary.query, grades))
        pool = pools.get(canary.query)
        if pool is None or any(one.id not in agreed for one in pool.candidates):
            continue
        expected = [{"id": name, "grade": str(grade)} for name, grade in agreed.items() if grade.gain]
        category = canary.category if expected and not canary.negative else Category.SIMPLE_FACTUAL
        row = {"query": canary.query, "name": canary.name, "category": str(category), "expected": expected}
        if not expected:
            row = {"query": canary.query, "name": canary.name, "category": str(Category.NEGATIVE)}
        lines.append(json.dumps(row) + "\n")
    return "".join(lines)


def _agreed(query: str, grades: Grades) -> Iterator[tuple[str, Grade]]:
    for (of, identity), by_person in sorted(grades.items()):
        grade = consensus(by_person.values()) if of == query else None
        if grade is not None:
            yield identity, grade
