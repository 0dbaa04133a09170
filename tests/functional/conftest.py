"""The stage on which commands are driven through everything that a user or a host may do to them."""

import json
import socket
from collections.abc import Iterator

import pytest
from functional.daemon import record, write_config
from functional.endings import CommandLine, Stage
from functional.forked import end_server
from loopback.fixture import loopback, loopback_process  # noqa: F401 - fixtures
from support.counting import uncounted

from ragwatch.audit import AuditLog

SUITE = "items:\n  - query: Where does the mill stand?\n    expected: [d1]\n"
CANARIES = (
    "[{suite: docs, file: suite.yaml, at_start: false,"
    " probe: {kind: http, url: 'ADDRESS/search', params: {q: '{{ query }}'}, contexts: hits}}]"
)
ROLLOUT = (
    "{a: a, b: b, offline: {a: recorded.json, b: recorded.json}, judged: {since: 9999d}, live: {start: 2020-01-01}}"
)


def pytest_unconfigure() -> None:
    """End the process that forks daemons, which is no leftover of a test."""
    end_server()


@pytest.fixture(scope="module", autouse=True)
def unmeasured() -> Iterator[None]:
    """Neither these tests nor the processes that they start count lines: unit tests cover them, in less time."""
    with pytest.MonkeyPatch.context() as patch, uncounted():
        patch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
        patch.delenv("COVERAGE_PROCESS_START", raising=False)
        yield


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A state with judged answers, a log, scores, labels, a recorded run, and canaries whose endpoint is not there."""
    folder = tmp_path_factory.mktemp("stage")
    run = CommandLine(folder)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound and not listening: whoever calls is refused
        dead = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        (folder / "suite.yaml").write_text(SUITE)
        write_config(folder, canaries=CANARIES.replace("ADDRESS", dead), rollout=ROLLOUT)
        runs = [{"canary": f"c{n}", "query": f"Where is {n}?", "ranks": [1], "grades": [1]} for n in range(40)]
        recorded = {"suites": [{"suite": "docs", "recall": {"10": 1.0}, "items": runs}]}
        (folder / "recorded.json").write_text(json.dumps(recorded))
        rows = [record(number, metadata={"variant": "ab"[number % 2]}) for number in range(60)]
        (folder / "log" / "rag.jsonl").write_text("\n".join(rows) + "\n")
        scores = [{"at": 1e9 + 60 * number, "faithfulness": 1.0} for number in range(300)]
        (folder / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in scores))
        judge = {"kind": "lexical", "version": "lexical-0-r1"}
        verdicts = [{"id": f"request-{n}", "scores": {"faithfulness": 1.0}, "judge": judge} for n in range(60)]
        (folder / "verdicts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in verdicts))
        labels = [{"source": "app", "id": f"request-{n}", "scores": {"faithfulness": 1}} for n in range(9)]
        (folder / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labels))
        AuditLog(folder / "audit.jsonl").record(actor="anna", action="sample.read")
        found = Stage(run, folder, dead)
        for name in ("kept", "import"):
            ended = run(*found.argv(name))
            assert ended.code == 0, ended.told
        yield found
