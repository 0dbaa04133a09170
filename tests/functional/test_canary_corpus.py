"""A whole corpus: 472 questions to a BM25 retriever over HTTP, compared with ir-measures; then documents are deleted.

`make test` takes every fourth question, `make slow` all of them.
The corpus (chunking_evaluation, MIT) is read where it lies, outside the repository; without it these tests are skipped.
"""

from __future__ import annotations

import asyncio
import csv
import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from functional.daemon import RagwatchProcess, parse_series, write_config
from support.bm25 import Bm25
from support.retrievers import serving

from ragwatch.board import Board
from ragwatch.config.suites import canaries
from ragwatch.core.canary.definition import Canary, Retrieved
from ragwatch.core.canary.history import diff, gauges_of
from ragwatch.core.canary.report import SuiteReport, evaluate, suite_line
from ragwatch.core.snapshot import Snapshot
from ragwatch.exporter import AllowedLabels, Exporter
from ragwatch.probes.http import Options, build
from ragwatch.telemetry import Telemetry

CORPUS = Path(__file__).parents[3] / "shared" / "data" / "canary" / "chunking_eval"
KS = (5, 10)
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus ../shared/data/canary/chunking_eval")


def rows(name: str) -> list[dict[str, Any]]:
    """Decoded lines of one of the corpus's files."""
    return [json.loads(line) for line in (CORPUS / name).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module", params=[4, pytest.param(1, marks=pytest.mark.slow)], ids=["a fourth", "all"])
def queries(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """The questions: every fourth, or all."""
    return rows("queries.jsonl")[:: request.param]


@pytest.fixture(scope="module")
def qrels(queries: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Grades by question and document."""
    names = {row["_id"] for row in queries}
    found: dict[str, dict[str, int]] = defaultdict(dict)
    with (CORPUS / "qrels.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row["query-id"] in names:
                found[row["query-id"]][row["corpus-id"]] = int(row["score"])
    return found


@pytest.fixture(scope="module")
def suite(queries: list[dict[str, Any]], qrels: dict[str, dict[str, int]]) -> tuple[Canary, ...]:
    """The questions as canaries, read as from a configuration."""
    items = [{"name": row["_id"], "query": row["text"], "expected": list(qrels[row["_id"]])} for row in queries]
    return canaries(items, "items")


@pytest.fixture
def index() -> Bm25:
    """The retriever's index."""
    return Bm25({row["_id"]: row["text"] for row in rows("corpus.jsonl")})


async def run(suite: tuple[Canary, ...], address: str) -> SuiteReport:
    """One run of all canaries."""
    options = Options.model_validate(
        {
            "url": f"{address}/search",
            "body": {"query": "{{ query }}", "k": "{{ k }}"},
            "contexts": "hits",
            "score": "similarity",
            "concurrency": 8,
        }
    )
    probe = build(options, name="docs")
    replies: list[Retrieved] = await asyncio.gather(*(probe.ask(each.query, max(KS)) for each in suite))
    await probe.close()
    pairs = zip(suite, replies, strict=True)
    return SuiteReport("docs", KS, tuple(evaluate(canary, reply, max(KS), at=0.0) for canary, reply in pairs))


def exposed(found: SuiteReport) -> dict[str, float]:
    """What /metrics says of the run."""
    board = Board()
    board.publish(Snapshot(at=0.0, gauges=gauges_of(found, at=0.0, last_success=0.0)))
    exporter = Exporter(board, Telemetry(), AllowedLabels(sources=(), routes=(), judges=(), suites=("docs",)))
    return parse_series(exporter.text())


async def test_figures_equal_those_of_ir_measures(
    suite: tuple[Canary, ...], index: Bm25, qrels: dict[str, dict[str, int]]
) -> None:
    """recall@5, precision@5, MRR@10, NDCG@10 and MAP@10 to 1e-9, over HTTP and through JSON."""
    ir = pytest.importorskip("ir_measures", reason="ir-measures (test-only) is not installed")
    with serving(index.route()) as address:
        found = await run(suite, address)
    line, shown = suite_line(found), exposed(found)
    ranked = {each.name: index.search(each.query, max(KS)) for each in suite}
    by_rank = {query: {name: -float(rank) for rank, (name, _) in enumerate(hits)} for query, hits in ranked.items()}
    measures = [ir.parse_measure(name) for name in ("R@5", "P@5", "RR@10", "nDCG@10", "AP@10")]
    theirs = {str(name): value for name, value in ir.calc_aggregate(measures, qrels, by_rank).items()}
    ours = {
        "R@5": line["recall"]["5"],
        "P@5": line["precision"]["5"],
        "RR@10": line["mrr"],
        "nDCG@10": line["ndcg"]["10"],
        "AP@10": line["map"],
    }
    print(ours)
    assert ours == pytest.approx(theirs, abs=1e-9)
    on_metrics = {
        "R@5": shown['ragwatch_canary_recall_ratio{k="5",suite="docs"}'],
        "P@5": shown['ragwatch_canary_precision_ratio{k="5",suite="docs"}'],
        "RR@10": shown['ragwatch_canary_reciprocal_rank_ratio{suite="docs"}'],
        "nDCG@10": shown['ragwatch_canary_ndcg_ratio{k="10",suite="docs"}'],
    }
    assert on_metrics == pytest.approx({name: theirs[name] for name in on_metrics}, abs=1e-9)
    assert ours["R@5"] > 0.8


async def test_deleting_documents_degrades_exactly_their_canaries(suite: tuple[Canary, ...], index: Bm25) -> None:
    """A fifth of the corpus goes: every canary that had all its contexts and lost one degrades, and no other does.

    Putting the documents back heals them all; the difference names what vanished.
    """
    with serving(index.route()) as address:
        before = await run(suite, address)
        texts = dict(index.texts)
        gone = set(random.Random(1).sample(sorted(texts), len(texts) // 5))
        index.delete(gone)
        after = await run(suite, address)
        index.texts = texts
        index.delete(())
        healed = await run(suite, address)
    well = [number for number, each in enumerate(before.reports) if each.success]
    hit = {number for number in well if any(each.id in gone for each in suite[number].expected)}
    print(f"{len(suite)} canaries, {len(well)} well, {len(gone)} documents deleted, {len(hit)} canaries degraded")
    assert len(suite) / 5 < len(hit) < len(well)
    assert {number for number in well if after.reports[number].degraded} == hit
    assert [each.outcome for each in healed.reports] == [each.outcome for each in before.reports]
    for number in hit:
        change = diff(before.reports[number], after.reports[number])
        assert change is not None
        vanished = {move.label for move in change.vanished}
        assert vanished == {each.id for each in suite[number].expected if each.id in gone}


def test_the_daemon_over_a_whole_corpus(
    tmp_path: Path, suite: tuple[Canary, ...], index: Bm25, qrels: dict[str, dict[str, int]]
) -> None:
    """The real daemon: /metrics as ir-measures have it; a fifth of the documents goes, and the gauges say so in a run.

    Exactly the canaries of what went turn to 0; the documents' return heals them with the next run.
    """
    ir = pytest.importorskip("ir_measures", reason="ir-measures (test-only) is not installed")
    (tmp_path / "suite.jsonl").write_text(
        "".join(
            json.dumps({"name": each.name, "query": each.query, "expected": [known.id for known in each.expected]})
            + "\n"
            for each in suite
        )
    )
    with serving(index.route()) as address:
        probe = {"kind": "http", "url": f"{address}/search", "body": {"query": "{{ query }}", "k": "{{ k }}"}}
        probe |= {"contexts": "hits", "score": "similarity", "concurrency": 8}
        place = {"suite": "docs", "schedule": "1d", "k": list(KS), "file": str(tmp_path / "suite.jsonl")}
        config = write_config(tmp_path, canaries=json.dumps([place | {"probe": probe}]))
        with RagwatchProcess(config).wait_until_serving() as ragwatch:
            before = ragwatch.wait_for('ragwatch_canary_runs_total{suite="docs"}', 1)
            texts = dict(index.texts)
            by_rank = {
                each.name: {name: -float(rank) for rank, (name, _) in enumerate(index.search(each.query, max(KS)))}
                for each in suite
            }
            gone = set(random.Random(2).sample(sorted(texts), len(texts) // 5))
            index.delete(gone)
            assert ragwatch.get("/-/canaries/run", method="POST")[0] == 200
            after = ragwatch.wait_for('ragwatch_canary_runs_total{suite="docs"}', 2)
            index.restore(texts)
            assert ragwatch.get("/-/canaries/run", method="POST")[0] == 200
            healed = ragwatch.wait_for('ragwatch_canary_runs_total{suite="docs"}', 3)
    names = {"R@5": 'recall_ratio{k="5",', "P@5": 'precision_ratio{k="5",', "RR@10": "reciprocal_rank_ratio{"}
    names |= {"nDCG@10": 'ndcg_ratio{k="10",'}
    shown = {name: before[f'ragwatch_canary_{series}suite="docs"}}'] for name, series in names.items()}
    theirs = ir.calc_aggregate([ir.parse_measure(name) for name in names], qrels, by_rank)
    assert shown == pytest.approx({str(name): value for name, value in theirs.items()}, abs=1e-9)
    well = {each.name for each in suite if before[success(each.name)] == 1}
    hit = {each.name for each in suite if each.name in well and gone & {known.id for known in each.expected}}
    assert {name for name in well if after[success(name)] == 0} == hit
    print(shown, f"{len(well)} of {len(suite)} well, {len(gone)} documents gone, {len(hit)} canaries with them")
    degraded = 'ragwatch_canary_degraded{suite="docs"}'
    assert before[degraded] == healed[degraded] == len(suite) - len(well)
    assert after[degraded] == sum(after[success(each.name)] == 0 for each in suite)  # some rise where others went
    assert {name for name in well if healed[success(name)] == 0} == set()


def success(name: str) -> str:
    """The series of one canary."""
    return f'ragwatch_canary_success{{canary="{name}",suite="docs"}}'
