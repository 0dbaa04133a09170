"""The yardstick offline: `ragwatch gate` and `ragwatch compare` as a pipeline starts them."""

from __future__ import annotations

import csv
import json
import subprocess
from collections import defaultdict
from pathlib import Path
from time import monotonic

import pytest
from functional.forked import run_forked
from support.bm25 import Bm25, stem
from support.retrievers import serving

ROOT = Path(__file__).parents[2]
CORPUS = ROOT.parent / "shared" / "data" / "canary" / "chunking_eval"


def ragwatch(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The program."""
    return run_forked(*arguments, cwd=ROOT)


@pytest.mark.parametrize(("name", "code"), [("pass", 0), ("fail", 1), ("not_enough", 3)])
def test_the_exit_code_of_each_shipped_example(tmp_path: Path, name: str, code: int) -> None:
    """0, 1 and 3, with the JSON of the contract, JUnit XML and Markdown beside it."""
    junit, markdown = tmp_path / "gate.xml", tmp_path / "gate.md"
    example = f"docs/examples/gate/{name}.jsonl"
    labels = () if name == "not_enough" else ("--labels", f"docs/examples/gate/{name}_labels.jsonl")
    done = ragwatch("gate", example, *labels, "--json", "--junit", str(junit), "--markdown", str(markdown))
    assert (done.returncode, done.stderr) == (code, "")
    line = json.loads(done.stdout)
    assert line["verdict"] == {0: "PASS", 1: "FAIL", 3: "NOT_ENOUGH_DATA"}[code]
    keys = {"metric", "value", "low", "high", "n", "threshold", "severity", "pass", "corrected", "labels", "mean"}
    assert keys <= set(line["metrics"][0])
    assert next(one for one in line["metrics"] if one["metric"] == "context_recall")["value"] == 1.0  # by references
    assert ("the stage at fault is generation" in line["recommendation"]) is (code == 1)
    assert junit.read_text().startswith("<?xml")
    assert line["verdict"].replace("_", " ") in markdown.read_text()


def rows(name: str) -> list[dict[str, str]]:
    """Decoded lines of one of the corpus's files."""
    return [json.loads(line) for line in (CORPUS / name).read_text(encoding="utf-8").splitlines()]


def test_two_variants_of_live_traffic(tmp_path: Path) -> None:
    """Two variants answer the same questions; the daemon judges both, and `--live` finds the one that invents."""
    fact, invention = "The old mill stands by the river.", "Zebras invented the telegraph."
    log = tmp_path / "log.jsonl"
    with log.open("w", encoding="utf-8") as file:
        for number in range(80):
            variant, answer = ("green", invention) if number % 2 else ("blue", fact)
            row = {"id": f"r{number}", "question": f"Where is mill {number // 2}?", "contexts": [fact]}
            file.write(json.dumps(row | {"answer": answer, "metadata": {"variant": variant}}) + "\n")
    config = tmp_path / "ragwatch.yaml"
    source = {"kind": "tail", "name": "app", "path": str(log), "start": "beginning"}
    config.write_text(f"state: {tmp_path}/state\nsampling: {{probability: 1.0}}\nsources: {json.dumps([source])}\n")
    assert ragwatch("run", "--once", "--state", f"{tmp_path}/state", "--config", str(config)).returncode == 0
    done = ragwatch("compare", "blue", "green", "--live", "--config", str(config), "--json")
    assert (done.returncode, done.stderr) == (1, "")
    line = json.loads(done.stdout)
    faithful = next(each for each in line["metrics"] if each["metric"] == "faithfulness")
    assert (line["paired"], faithful["n"], faithful["losses"], faithful["conclusion"]) == (True, 40, 40, "worse")


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus ../shared/data/canary/chunking_eval")
@pytest.mark.parametrize("share", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_two_retrievers_over_a_whole_corpus(tmp_path: Path, share: int) -> None:
    """BM25 with and without stemming, one question in `share`: paired intervals, with categories."""
    expected: dict[str, list[str]] = defaultdict(list)
    with (CORPUS / "qrels.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            expected[row["query-id"]].append(row["corpus-id"])
    suite = tmp_path / "canaries.jsonl"
    items = [
        {
            "name": row["_id"],
            "query": row["text"],
            "expected": expected[row["_id"]],
            "category": "simple_factual" if len(expected[row["_id"]]) == 1 else "complex_factual",
        }
        for row in rows("queries.jsonl")[::share]
    ]
    suite.write_text("".join(json.dumps(each) + "\n" for each in items))
    texts = {row["_id"]: row["text"] for row in rows("corpus.jsonl")}
    with serving(Bm25(texts).route()) as plain, serving(Bm25(texts, stem).route()) as stemmed:
        suites = [
            {
                "suite": name,
                "k": [5, 10],
                "file": "canaries.jsonl",
                "probe": {
                    "kind": "http",
                    "url": f"{address}/search",
                    "body": {"query": "{{ query }}", "k": "{{ k }}"},
                    "contexts": "hits",
                    "score": "similarity",
                    "concurrency": 8,
                },
            }
            for name, address in (("plain", plain), ("stemmed", stemmed))
        ]
        config = tmp_path / "ragwatch.yaml"
        config.write_text(
            f"state: {tmp_path}/state\nsources: [{{kind: tail, name: app, path: {tmp_path}/none}}]\n"
            f"canaries: {json.dumps(suites)}\n"
        )
        begun = monotonic()
        done = ragwatch("compare", "plain", "stemmed", "--config", str(config), "--json")
        seconds = monotonic() - begun
    assert done.returncode in {0, 1}, done.stderr
    line = json.loads(done.stdout)
    assert (line["shared"], line["paired"], line["warnings"]) == (len(items), True, [])
    recall = next(each for each in line["metrics"] if each["metric"] == "recall@5")
    print(f"{seconds:.1f} s", {key: value for key, value in recall.items() if key != "categories"})
    assert recall["low"] < recall["difference"] < recall["high"]
    assert recall["wins"] + recall["ties"] + recall["losses"] == recall["n"] == len(items) == 472 // share
    assert recall["a"] > 0.8
    assert recall["conclusion"] == "noise" if recall["low"] <= 0 <= recall["high"] else recall["conclusion"] != "noise"
    assert sum(part["n"] for part in recall["categories"].values()) == len(items)
