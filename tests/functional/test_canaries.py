"""Canaries in the daemon: a real retriever over HTTP loses a document; the series and the page say so within a run."""

import csv
import json
import random
import subprocess
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from functional.daemon import RagwatchProcess, write_config
from functional.forked import run_forked
from support.patience import SCALE, pauses
from support.programs import free_port
from support.retrievers import Bm25, FaultyRetriever, serving, stem

from ragwatch.commands.check import check_all
from ragwatch.config import load

TEXTS = {
    "refunds": "Refunds are paid within five days to the card that was used.",
    "shipping": "Shipping is free for orders above forty euros.",
    "opening": "The shop opens at nine and closes at six, except on Sundays.",
}
ITEMS: list[dict[str, Any]] = [
    {"query": "When are refunds paid?", "expected": ["refunds"], "name": "refunds"},
    {"query": "Is shipping free?", "expected": ["shipping"], "name": "shipping"},
    {"query": "xylophone zeppelin", "category": "negative", "name": "nothing", "min_relevance_score": 0.1},
]
PROBE = {"kind": "http", "body": {"query": "{{ query }}", "k": "{{ k }}"}, "contexts": "hits", "score": "similarity"}


@pytest.fixture
def index() -> Bm25:
    """The retriever's index."""
    return Bm25(TEXTS)


def suite(name: str, items: list[dict[str, Any]], url: str, **probe: Any) -> dict[str, Any]:
    """A suite that runs at the start, and hardly ever again."""
    return {"suite": name, "schedule": "1d", "k": [1, 3], "items": items, "probe": PROBE | {"url": url} | probe}


def config(folder: Path, address: str) -> Path:
    """A configuration with one suite."""
    return write_config(folder, canaries=json.dumps([suite("docs", ITEMS, f"{address}/search")]))


def run_again(ragwatch: RagwatchProcess) -> tuple[int, str]:
    """Run the suites by the hook, once the run that was just counted has ended: its claim is released after it."""
    reply = (0, "")
    for _ in pauses():
        reply = ragwatch.get("/-/canaries/run", method="POST")
        if "is running already" not in reply[1]:
            break
    return reply


def test_a_lost_document_shows_within_one_run(tmp_path: Path, index: Bm25) -> None:
    """Exactly its canary degrades; the hook runs the suite; the document's return heals it; a restart hides nothing."""
    with serving(index.route()) as address:
        path = config(tmp_path, address)
        with RagwatchProcess(path).wait_until_serving() as ragwatch:
            series = ragwatch.wait_for('ragwatch_canary_runs_total{suite="docs"}', 1)
            ragwatch.wait_for('ragwatch_canary_degraded{suite="docs"}', 0)
            assert ragwatch.series()['ragwatch_canary_recall_ratio{k="3",suite="docs"}'] == 1
            index.delete(["refunds"])
            assert run_again(ragwatch) == (200, "docs: 3 asked, 1 degraded, 0 failed\n")
            series = ragwatch.wait_for('ragwatch_canary_degraded{suite="docs"}', 1)
            assert series['ragwatch_canary_success{canary="refunds",suite="docs"}'] == 0
            assert series['ragwatch_canary_success{canary="shipping",suite="docs"}'] == 1
            for wrong in ("suite=nope", "suit=docs"):  # a slip would ask every suite
                assert ragwatch.get(f"/-/canaries/run?{wrong}", method="POST")[0] == 400
        with RagwatchProcess(
            write_config(tmp_path, canaries=canaries_off_at_start(path))
        ).wait_until_serving() as again:
            again.wait_for('ragwatch_canary_degraded{suite="docs"}', 1)
            index.restore(TEXTS)
            run_again(again)
            again.wait_for('ragwatch_canary_runs_total{suite="docs"}', 3)  # counted after its gauges are shown
            again.wait_for('ragwatch_canary_degraded{suite="docs"}', 0)


FAULTS = {
    "slow": "timeout",
    "status": "status",
    "not_json": "not_json",
    "torn": "not_json",
    "shape": "shape",
    "metadata": "redirect",
    "huge": "too_large",
}


def test_each_fault_is_a_counted_reason_and_no_score(tmp_path: Path, index: Bm25) -> None:
    """Slow, 500, no JSON, a redirect to a metadata address, 50 MB, nobody there: counted by reason, and nothing else.

    The other suite, and the canaries beside the failing ones, have their figures; what failed has none. A suite that
    could not be asked whole keeps the time of its last success, so that a missed one is seen.
    """
    faulty = FaultyRetriever()
    items = [{"query": fault, "expected": ["d1"], "name": fault} for fault in (*FAULTS, "cats")]
    with serving(*faulty.routes()) as wrong, serving(index.route()) as right:
        suites = [
            suite("faulty", items, f"{wrong}/search", timeout=4.0 * SCALE),
            suite("down", items[:2], f"http://127.0.0.1:{free_port()}/search"),
            suite("docs", ITEMS, f"{right}/search"),
        ]
        with RagwatchProcess(write_config(tmp_path, canaries=json.dumps(suites))).wait_until_serving() as ragwatch:
            for name in ("faulty", "down", "docs"):
                series = ragwatch.wait_for(f'ragwatch_canary_runs_total{{suite="{name}"}}', 1)
    failures = {
        (suite, reason): series[f'ragwatch_canary_failures_total{{reason="{reason}",suite="{suite}"}}']
        for suite, reason in {("faulty", reason) for reason in FAULTS.values()} | {("down", "connect")}
    }
    expected = Counter(("faulty", reason) for reason in FAULTS.values()) | Counter({("down", "connect"): 2})
    assert failures == expected
    asked = {key for key in series if key.startswith("ragwatch_canary_success{")}
    assert asked == {
        'ragwatch_canary_success{canary="cats",suite="faulty"}',
        *(f'ragwatch_canary_success{{canary="{each["name"]}",suite="docs"}}' for each in ITEMS),
    }
    assert all(series[key] == 1 for key in asked)
    assert series['ragwatch_canary_recall_ratio{k="3",suite="faulty"}'] == 1
    assert series['ragwatch_canary_degraded{suite="faulty"}'] == 0
    assert not [key for key in series if 'suite="down"' in key and ("_ratio" in key or "_degraded" in key)]
    succeeded = {key for key in series if key.startswith("ragwatch_canary_last_success_timestamp_seconds")}
    assert succeeded == {'ragwatch_canary_last_success_timestamp_seconds{suite="docs"}'}
    assert series['ragwatch_canary_last_run_timestamp_seconds{suite="down"}'] > 0
    assert faulty.followed == 0


def canaries_off_at_start(path: Path) -> str:
    """The same suites, that wait for their time."""
    line = next(line for line in path.read_text().splitlines() if line.startswith("canaries: "))
    return json.dumps([each | {"at_start": False} for each in json.loads(line.removeprefix("canaries: "))])


def ask(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """`ragwatch canary`."""
    return run_forked("canary", "--config", path, *options)


def test_check_asks_the_endpoint(tmp_path: Path, index: Bm25) -> None:
    """`ragwatch check` puts one question, and says what came, or why nothing did."""
    with serving(index.route()) as address:
        fine = tried(config(tmp_path, address))
    down = tried(config(tmp_path, f"http://127.0.0.1:{free_port()}"))
    assert fine["canaries[0]"] == ("ok", "docs: the retriever returned 1 passages")
    state, told = down["canaries[0]"]
    assert (state, told.startswith("docs: connect:")) == ("failed", True)


def tried(path: Path) -> dict[str, tuple[str, str]]:
    """State and finding by what was tried."""
    return {each.subject: (each.state, each.detail) for each in check_all(load(path))}


CORPUS = Path(__file__).parents[3] / "shared" / "data" / "canary" / "chunking_eval"
KS = (5, 10)
DEGRADED = 'ragwatch_canary_degraded{suite="docs"}'
RUNS = 'ragwatch_canary_runs_total{suite="docs"}'
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus ../shared/data/canary/chunking_eval")


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


@needs_corpus
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


@needs_corpus
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
