"""`ragwatch label --relevance`: people judge how relevant contexts are to the queries of a canary suite.

Pools of candidates and judgements are kept in a file, one JSON object a line. Lines are only appended, so that an
interruption loses no judgement; of several judgements of one pair by one annotator the last counts.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ragwatch.config import Config
from ragwatch.errors import ConfigError
from ragwatch.offline.canary import built_suites
from ragwatch.offline.relevance_estimate import (
    Candidate,
    Grade,
    Grades,
    PoolSizes,
    QueryPool,
    RelevanceReport,
    consensus,
    draw_pool,
    pairs_to_judge,
    report,
)
from ragwatch.pipeline.canaries import CanarySuite
from ragwatch.statistics.canary.definition import Canary, Category
from ragwatch.terminal.event_loop import run_async
from ragwatch.terminal.given import read_text, suites_of, write_text
from ragwatch.terminal.options.people import LabelArguments
from ragwatch.terminal.output import counted, printable, say


@dataclass(slots=True)
class RelevanceFile:
    """Pools and judgements of one file."""

    path: Path  # the file; it need not exist yet
    pools: dict[str, QueryPool]  # by query
    grades: dict[tuple[str, str], dict[str, Grade]]  # by query and id of the context: the grade by annotator

    @classmethod
    def read(cls, path: Path) -> RelevanceFile:
        """Read a file; empty if there is none. `ConfigError` names the line that is neither a pool nor a judgement."""
        file = cls(path, {}, {})
        text = read_text(f"--relevance {path}", path) if path.exists() else ""
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                try:
                    row = json.loads(line)
                    if "candidates" in row:
                        candidates = tuple(Candidate(row["query"], **one) for one in row["candidates"])
                        pool = QueryPool(str(row["query"]), int(row["k"]), candidates, dict(row["sizes"]))
                        file.pools[row["query"]] = pool
                    else:
                        file._grade(str(row["query"]), str(row["id"]), str(row["annotator"]), Grade(row["grade"]))
                except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                    raise ConfigError(
                        f"--relevance {path} line {number}: is no pool and no judgement ({type(error).__name__}: "
                        f"{error}); give a file that `ragwatch label --relevance` wrote"
                    ) from error
        return file

    def add(self, pool: QueryPool) -> None:
        """Add a pool to the file and to this object."""
        rows = [{name: value for name, value in asdict(one).items() if name != "query"} for one in pool.candidates]
        self._append({"query": pool.query, "k": pool.k, "sizes": dict(pool.sizes), "candidates": rows})
        self.pools[pool.query] = pool

    def judge(self, pair: Candidate, annotator: str, grade: Grade) -> None:
        """Add a judgement to the file and to this object."""
        said = {"query": pair.query, "id": pair.id, "annotator": annotator, "grade": str(grade), "at": time.time()}
        self._append(said)
        self._grade(pair.query, pair.id, annotator, grade)

    def _append(self, row: Mapping[str, object]) -> None:
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        except OSError as error:
            raise ConfigError(f"--relevance {self.path}: cannot be written: {error.strerror}") from error

    def _grade(self, query: str, context: str, annotator: str, grade: Grade) -> None:
        self.grades.setdefault((query, context), {})[annotator] = grade


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


GRADES: Mapping[str, Grade | None] = {
    "n": Grade.NOT_RELEVANT,
    "r": Grade.RELEVANT,
    "h": Grade.HIGHLY_RELEVANT,
    "-": None,
}
QUIT = "q"
FAILURE = 1
HELP = (
    "How relevant is each context to its query? [n]ot, [r]elevant: it has a part of the answer, [h]ighly relevant: "
    "it answers alone. - to skip, q to quit. Each judgement is saved at once. The order says nothing of ranks."
)
Meaning = TypeVar("Meaning")


def label_relevance(config: Config, path: Path, annotator: str, given: LabelArguments) -> int:
    """Judge contexts of the pools in a file, which are drawn first if it has none; or write what was judged.

    Returns the exit code: 0; 1 if the retriever gave no contexts for some queries.
    """
    chosen = suites_of(config, *([] if given.suite is None else [given.suite]))
    (suite,) = built_suites(config, chosen[0].place.suite)
    file = RelevanceFile.read(path)
    left_out: Counter[str] = Counter()
    confidence = config.settings.estimates.confidence
    if given.qrels is not None or given.suite_out is not None:
        if given.qrels is not None:
            write_text(f"--qrels {given.qrels}", given.qrels, qrels(suite.canaries, file.grades))
        if given.suite_out is not None:
            if given.suite_out.suffix != ".jsonl":
                raise ConfigError(f"--suite-out {given.suite_out}: give a name that ends in .jsonl")
            lines = suite_lines(suite.canaries, file.pools, file.grades)
            write_text(f"--suite-out {given.suite_out}", given.suite_out, lines)
    else:
        left_out = _add_pools(suite, file, given)
        _session(file, annotator, given.count, all_asked=not left_out)
    pools = list(file.pools.values())
    _show(report(pools, file.grades, confidence), max(suite.ks), pairs_to_judge(pools))
    if not left_out:
        return 0
    say(
        f"{left_out.total()} of {len(suite.canaries)} queries were left out: {counted(left_out)}; "
        "the next run asks the retriever for them again"
    )
    return FAILURE


def _add_pools(suite: CanarySuite, file: RelevanceFile, given: LabelArguments) -> Counter[str]:
    """Ask the retriever for each query without a pool, and append its pool.

    A failure is reported. Returns how many queries were left out, by reason.
    """
    left_out: Counter[str] = Counter()
    queries = [canary.query for canary in suite.canaries if canary.query not in file.pools]
    if not queries:
        return left_out
    k = max(suite.ks)
    depth = max(k, given.depth or 5 * k)
    corpus = list(_corpus(given.corpus)) if given.corpus is not None else []
    sizes = PoolSizes(k, given.below, given.negatives)

    async def ask() -> None:
        try:
            for query in queries:
                retrieved = await suite.probe.ask(query, depth)
                hits = [(hit.id, hit.text or "") for hit in retrieved.hits if hit.id]
                if retrieved.failure is not None or len(hits) < len(retrieved.hits):
                    reason = str(retrieved.failure or "the reply has contexts without an id")
                    left_out[reason] += 1
                    say(f"{query}: left out: {reason} {retrieved.detail}".rstrip())
                    continue
                texts = dict(corpus)
                ranked = [(name, text or texts.get(name, "")) for name, text in hits]
                file.add(draw_pool(query, ranked, corpus, sizes, suite.name))
        finally:
            await suite.probe.close()

    run_async(ask())
    return left_out


def _corpus(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(read_text(f"--corpus {path}", path).split("\n"), start=1):
        if line.strip():
            try:
                row = json.loads(line)
                yield str(row["id"] if "id" in row else row["_id"]), str(row["text"])
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                raise ConfigError(f'--corpus {path} line {number}: is not {{"id": ..., "text": ...}}') from error


def _session(file: RelevanceFile, annotator: str, count: int, *, all_asked: bool) -> None:
    console = Console(soft_wrap=True, highlight=False)
    candidates = (one for pool in file.pools.values() for one in pool.candidates)
    unjudged = (one for one in candidates if annotator not in file.grades.get((one.query, one.id), {}))
    pairs = list(islice(unjudged, count))
    if not pairs:
        judged, missing = "you have judged every candidate of every query", "some queries have no candidates"
        console.print(f"There is nothing to judge: {judged if all_asked else missing}.")
        return
    console.print(Text(HELP, style="dim"))
    saved = 0
    for number, pair in enumerate(pairs, start=1):
        console.rule(Text(f"{number} of {len(pairs)}"))
        console.print(Text.assemble(("query    ", "bold cyan"), printable(pair.query)))
        console.print(Text.assemble(("context  ", "bold cyan"), printable(pair.text or f"(no text) {pair.id}")))
        try:
            grade = ask(console, "relevant? [n/r/h/-]", GRADES)
        except (SessionEnded, KeyboardInterrupt):
            break
        if grade is not None:
            file.judge(pair, annotator, grade)
            saved += 1
    console.print(f"\n{saved} saved. Thank you.")


class SessionEnded(Exception):  # noqa: N818 - not an error
    """The annotator quits, or standard input ends."""


def ask(console: Console, question: str, meanings: Mapping[str, Meaning]) -> Meaning:
    """Ask until a reply has a meaning; `SessionEnded` if it is `QUIT`."""
    while True:
        reply = read_line(console, question).lower()
        if reply == QUIT:
            raise SessionEnded
        if reply in meanings:
            return meanings[reply]
        console.print(f"{reply or 'nothing'!r} is none of {', '.join(meanings)}, {QUIT}", style="red", markup=False)


def read_line(console: Console, question: str) -> str:
    """Ask, and return the next line of standard input; `SessionEnded` at its end."""
    console.print(Text(f"{question} ", style="bold"), end="")
    line = sys.stdin.readline()
    if not line:
        raise SessionEnded
    return line.strip()


def _show(judged: RelevanceReport, k: int, pairs: tuple[int, int]) -> None:
    console = Console(soft_wrap=True, highlight=False)
    table = Table("ranks", "contexts", "judged", "relevant", "relevant, estimated", title=f"{judged.queries} queries")
    for stratum in judged.strata:
        total = "unknown" if stratum.total is None else stratum.total.shown(1)
        table.add_row(stratum.stratum, *map(str, (stratum.contexts, stratum.judged, stratum.relevant)), total)
    console.print(table)
    console.print(f"{pairs[0]:,} pairs of a query and a context to judge, of {pairs[1]:,} that there are")
    if judged.recall is None or judged.outside is None:
        console.print(f"recall@{k} unknown: no query is judged completely, or nothing relevant was found.")
    else:
        console.print(f"recall@{k} {judged.recall.shown()}, estimated by inclusion probabilities")
        console.print(
            f"bias towards the current retriever: {judged.outside.shown()} of the relevant contexts lie outside its "
            f"first {k}; a suite of these judgements misses those that were not drawn"
        )
    if any(stratum.total is None for stratum in judged.strata):
        console.print("strata without a judged context count as holding nothing relevant: recall may be lower.")
    if judged.alpha is None:
        console.print("agreement unknown: no pair was judged by two annotators (or all grades are the same).")
    else:
        console.print(f"Krippendorff's alpha {judged.alpha.shown()} over {judged.alpha.n} pairs judged more than once")
