"""Canaries in the daemon: a real retriever over HTTP loses a document; the series and the page say so within a run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from bm25 import Bm25
from functional.daemon import RagwatchProcess, write_config
from retrievers import free_port, serving

from ragwatch.commands.check import try_all
from ragwatch.config import load

TEXTS = {
    "refunds": "Refunds are paid within five days to the card that was used.",
    "shipping": "Shipping is free for orders above forty euros.",
    "opening": "The shop opens at nine and closes at six, except on Sundays.",
}
ITEMS = [
    {"query": "When are refunds paid?", "expected": ["refunds"], "name": "refunds"},
    {"query": "Is shipping free?", "expected": ["shipping"], "name": "shipping"},
    {"query": "xylophone zeppelin", "category": "negative", "name": "nothing", "min_relevance_score": 0.1},
]
PROBE = {
    "kind": "http",
    "body": {"query": "{{ query }}", "k": "{{ k }}"},
    "contexts": "hits",
    "score": "similarity",
}


@pytest.fixture
def index() -> Bm25:
    """The retriever's index."""
    return Bm25(TEXTS)


def config(folder: Path, address: str) -> Path:
    """A configuration with one suite that runs at the start, and hardly ever again."""
    suite = {
        "suite": "docs",
        "schedule": "1d",
        "k": [1, 3],
        "items": ITEMS,
        "probe": PROBE | {"url": f"{address}/search"},
    }
    return write_config(folder, canaries=json.dumps([suite]))


def test_a_lost_document_shows_within_one_run(tmp_path: Path, index: Bm25) -> None:
    """Exactly its canary degrades; the hook runs the suite; the document's return heals it; a restart hides nothing."""
    with serving(index.route()) as address:
        path = config(tmp_path, address)
        with RagwatchProcess(path).wait_until_serving() as ragwatch:
            series = ragwatch.wait_for('ragwatch_canary_runs_total{suite="docs"}', 1)
            ragwatch.wait_for('ragwatch_canary_degraded{suite="docs"}', 0)
            assert ragwatch.series()['ragwatch_canary_recall_ratio{k="3",suite="docs"}'] == 1
            index.delete(["refunds"])
            assert ragwatch.get("/-/canaries/run", method="POST") == (200, "docs: 3 asked, 1 degraded, 0 failed\n")
            series = ragwatch.wait_for('ragwatch_canary_degraded{suite="docs"}', 1)
            assert series['ragwatch_canary_success{canary="refunds",suite="docs"}'] == 0
            assert series['ragwatch_canary_success{canary="shipping",suite="docs"}'] == 1
            assert ragwatch.get("/-/canaries/run?suite=nope", method="POST")[0] == 400
        with RagwatchProcess(
            write_config(tmp_path, canaries=canaries_off_at_start(path))
        ).wait_until_serving() as again:
            again.wait_for('ragwatch_canary_degraded{suite="docs"}', 1)
            index.restore(TEXTS)
            again.get("/-/canaries/run", method="POST")
            again.wait_for('ragwatch_canary_degraded{suite="docs"}', 0)
            assert again.series()['ragwatch_canary_runs_total{suite="docs"}'] == 3


def canaries_off_at_start(path: Path) -> str:
    """The same suites, that wait for their time."""
    line = next(line for line in path.read_text().splitlines() if line.startswith("canaries: "))
    return json.dumps([each | {"at_start": False} for each in json.loads(line.removeprefix("canaries: "))])


def ask(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """`ragwatch canary`."""
    command = [sys.executable, "-W", "error", "-m", "ragwatch", "canary", "--config", str(path), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_check_asks_the_endpoint(tmp_path: Path, index: Bm25) -> None:
    """`ragwatch check` puts one question, and says what came, or why nothing did."""
    with serving(index.route()) as address:
        fine = tried(config(tmp_path, address))
    down = tried(config(tmp_path, f"http://127.0.0.1:{free_port()}"))
    assert fine["canaries[0]"] == ("ok", "docs: 1 passages came back")
    state, told = down["canaries[0]"]
    assert (state, told.startswith("docs: connect:")) == ("failed", True)


def tried(path: Path) -> dict[str, tuple[str, str]]:
    """State and finding by what was tried."""
    return {each.subject: (each.state, each.told) for each in try_all(load(path))}


def test_the_command_says_what_failed_and_why(tmp_path: Path, index: Bm25) -> None:
    """Exit code 0 when all is well, 1 with the name of what is gone, 3 when nobody answers; JSON as in the contract."""
    with serving(index.route()) as address:
        path = config(tmp_path, address)
        good = ask(path)
        index.delete(["shipping"])
        bad = ask(path)
        as_json = ask(path, "--json")
    unknown = ask(path, "--suite", "nope")
    down = ask(config(tmp_path, f"http://127.0.0.1:{free_port()}"))
    assert (good.returncode, bad.returncode, as_json.returncode, down.returncode, unknown.returncode) == (0, 1, 1, 3, 2)
    assert "every canary succeeded" in good.stdout
    assert "shipping" in bad.stdout
    assert "missing_from_top_k" in bad.stdout
    (suite,) = json.loads(as_json.stdout)["suites"]
    assert suite["degraded"] == ["Is shipping free?"]
    assert suite["recall"] == {"1": 0.5, "3": 0.5}
    assert "connect" in down.stdout
