"""A whole corpus: 472 questions to a BM25 retriever over HTTP, compared with ir-measures; then documents are deleted.

`make test` takes every fourth question, `make slow` all of them.
The corpus (chunking_evaluation, MIT) is read where it lies, outside the repository; without it these tests are skipped.
"""

from __future__ import annotations

import csv
import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from functional.daemon import RagwatchProcess, write_config
from functional.forked import run_forked
from support.bm25 import Bm25, stem
from support.retrievers import serving

CORPUS = Path(__file__).parents[3] / "shared" / "data" / "canary" / "chunking_eval"
KS = (5, 10)
DEGRADED = 'ragwatch_canary_degraded{suite="docs"}'
RUNS = 'ragwatch_canary_runs_total{suite="docs"}'
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus ../shared/data/canary/chunking_eval")


def rows(name: str) -> list[dict[str, Any]]:
    """Decoded lines of one of the corpus's files."""
    return [json.loads(line) for line in (CORPUS / name).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module", params=[4, pytest.param(1, marks=pytest.mark.slow)], ids=["a fourth", "all"])
def items(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """The questions, every fourth or all, with the documents that they expect."""
    expected: dict[str, list[str]] = defaultdict(list)
    with (CORPUS / "qrels.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            expected[row["query-id"]].append(row["corpus-id"])
    return [
        {
            "name": row["_id"],
            "query": row["text"],
            "expected": expected[row["_id"]],
            "category": "simple_factual" if len(expected[row["_id"]]) == 1 else "complex_factual",
        }
        for row in rows("queries.jsonl")[:: request.param]
    ]


def configured(folder: Path, items: list[dict[str, Any]], **addresses: str) -> Path:
    """A configuration with a suite of these questions for each retriever."""
    (folder / "suite.jsonl").write_text("".join(json.dumps(each) + "\n" for each in items))
    probe = {"kind": "http", "body": {"query": "{{ query }}", "k": "{{ k }}"}, "contexts": "hits"}
    probe |= {"score": "similarity", "concurrency": 8}
    place = {"schedule": "1d", "k": list(KS), "file": str(folder / "suite.jsonl")}
    suites = [
        place | {"suite": name, "probe": probe | {"url": f"{address}/search"}} for name, address in addresses.items()
    ]
    return write_config(folder, canaries=json.dumps(suites))


def test_the_daemon_over_a_whole_corpus(tmp_path: Path, items: list[dict[str, Any]]) -> None:
    """The real daemon: /metrics as ir-measures have it; a fifth of the documents goes, and the gauges say so in a run.

    Exactly the canaries of what went turn to 0; the documents' return heals them with the next run.
    """
    ir = pytest.importorskip("ir_measures", reason="ir-measures (test-only) is not installed")
    index = Bm25({row["_id"]: row["text"] for row in rows("corpus.jsonl")})
    by_rank = {
        item["name"]: {name: -float(rank) for rank, (name, _) in enumerate(index.search(item["query"], max(KS)))}
        for item in items
    }
    texts = dict(index.texts)
    gone = set(random.Random(2).sample(sorted(texts), len(texts) // 5))
    with serving(index.route()) as address:
        config = configured(tmp_path, items, docs=address)
        with RagwatchProcess(config).wait_until_serving() as ragwatch:
            before = ragwatch.wait_for(RUNS, 1)
            index.delete(gone)
            assert ragwatch.get("/-/canaries/run", method="POST")[0] == 200
            after = ragwatch.wait_for(RUNS, 2)
            index.restore(texts)
            assert ragwatch.get("/-/canaries/run", method="POST")[0] == 200
            healed = ragwatch.wait_for(RUNS, 3)
    names = {"R@5": 'recall_ratio{k="5",', "P@5": 'precision_ratio{k="5",', "RR@10": "reciprocal_rank_ratio{"}
    names |= {"nDCG@10": 'ndcg_ratio{k="10",'}
    shown = {name: before[f'ragwatch_canary_{series}suite="docs"}}'] for name, series in names.items()}
    grades = {item["name"]: dict.fromkeys(item["expected"], 1) for item in items}
    theirs = ir.calc_aggregate([ir.parse_measure(name) for name in names], grades, by_rank)
    assert shown == pytest.approx({str(name): value for name, value in theirs.items()}, abs=1e-9)
    assert shown["R@5"] > 0.8
    well = {item["name"] for item in items if before[success(item["name"])] == 1}
    hit = {item["name"] for item in items if item["name"] in well and gone & set(item["expected"])}
    assert len(items) / 5 < len(hit) < len(well)
    assert {name for name in well if after[success(name)] == 0} == hit
    print(shown, f"{len(well)} of {len(items)} well, {len(gone)} documents gone, {len(hit)} canaries with them")
    assert before[DEGRADED] == healed[DEGRADED] == len(items) - len(well)
    # Some rise where others went.
    assert after[DEGRADED] == sum(after[success(item["name"])] == 0 for item in items)
    assert {name for name in well if healed[success(name)] == 0} == set()


def success(name: str) -> str:
    """The series of one canary."""
    return f'ragwatch_canary_success{{canary="{name}",suite="docs"}}'


def test_two_retrievers_over_a_whole_corpus(tmp_path: Path, items: list[dict[str, Any]]) -> None:
    """`compare` of BM25 with and without stemming: paired intervals, with categories."""
    texts = {row["_id"]: row["text"] for row in rows("corpus.jsonl")}
    with serving(Bm25(texts).route()) as plain, serving(Bm25(texts, stem).route()) as stemmed:
        config = configured(tmp_path, items, plain=plain, stemmed=stemmed)
        done = run_forked("compare", "plain", "stemmed", "--config", config, "--json")
    assert done.returncode in {0, 1}, done.stderr
    line = json.loads(done.stdout)
    assert (line["shared"], line["paired"], line["warnings"]) == (len(items), True, [])
    recall = next(each for each in line["metrics"] if each["metric"] == "recall@5")
    assert recall["low"] < recall["difference"] < recall["high"]
    assert recall["wins"] + recall["ties"] + recall["losses"] == recall["n"] == len(items)
    assert recall["a"] > 0.8
    assert (recall["conclusion"] == "noise") == (recall["low"] <= 0 <= recall["high"])
    assert sum(part["n"] for part in recall["categories"].values()) == len(items)
