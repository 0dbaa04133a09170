"""The provider's key stands nowhere: not in logs, tracebacks, series, pages, the state directory, or on a terminal."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from functional.asking import an_llm, configure, records, write_log
from functional.forked import run_forked
from loopback.process import LoopbackProcess
from support.patience import DEADLINE

PAGES = (
    *("/", "/canaries", "/metrics", "/-/healthy", "/-/ready", "/api/v1/snapshot", "/api/v1/canaries"),
    *("/api/v1/samples", "/no/such/page"),
)
# Something of ours that fails while the key is a local variable's attribute, as any bug in a provider could.
BUGGY = """
import sys
from ragwatch.judges.claude import Claude

async def call(self, ask, *, max_tokens, timeout):
    key, options, client = self._key, self._options, self._client
    headers = {"authorization": f"Bearer {key}"}
    return headers[max_tokens]

Claude.call = call
sys.argv = ["ragwatch", "run", "--config", sys.argv[1]]
from ragwatch.__main__ import main
main()
"""
ADDRESS = re.compile(r"""address(?:=|": ")(http://[.0-9:]+)""")
BODY = "The old mill stands by the river"


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Everything below a folder."""
    for path in folder.rglob("*"):
        if path.is_file():
            yield str(path), path.read_bytes()


def run(folder: Path, command: list[str], until: str) -> tuple[str, list[tuple[str, bytes]]]:
    """A daemon's log up to its end, and its pages, once the log holds these words."""
    log = folder / "stderr.txt"
    end = time.monotonic() + DEADLINE
    with log.open("w") as stderr, subprocess.Popen(command, stderr=stderr) as process:
        try:
            while until not in log.read_text() or not (found := ADDRESS.search(log.read_text())):
                assert time.monotonic() < end, log.read_text()
                time.sleep(0.05)
            pages = [(path, got(found[1] + path)) for path in PAGES]
        finally:
            process.terminate()
    return log.read_text(), pages


def got(url: str) -> bytes:
    """Headers and body of whatever is answered."""
    done = subprocess.run(["curl", "-si", "-m", "20", url], capture_output=True, check=True)
    return done.stdout


@pytest.mark.parametrize("format_", ["json", pytest.param("text", marks=pytest.mark.slow)])
def test_x5_x16_neither_logs_nor_pages_nor_state_hold_the_key(
    tmp_path: Path, loopback: LoopbackProcess, format_: str
) -> None:
    """With failures of the provider, and with a bug of ours whose traceback is logged, in both shapes of the log."""
    key = str(loopback.key)
    loopback.control({"kind": "bad_request", "times": 3}, {"kind": "html", "times": 2})
    write_log(tmp_path, records(8))
    config = configure(tmp_path, an_llm(loopback), log=f"{{level: debug, format: {format_}}}")
    good = [sys.executable, "-m", "ragwatch", "run", "--config", str(config)]
    log, pages = run(tmp_path, good, until="judge call failed")
    assert "HTTP 400" in log
    write_log(tmp_path, records(12)[8:], "more.jsonl")
    (tmp_path / "buggy.py").write_text(BUGGY)
    buggy, more = run(tmp_path, [sys.executable, str(tmp_path / "buggy.py"), str(config)], until="step failed")
    assert "KeyError" in buggy
    assert "Traceback" in buggy
    assert "headers[max_tokens]" in buggy  # the code is told, the values are not
    assert len(pages) == len(more) == len(PAGES)
    for name, body in [("log", log.encode()), ("buggy log", buggy.encode()), *pages, *more, *files(tmp_path / "state")]:
        assert key.encode() not in body, name
        if name.endswith("log"):
            assert BODY.encode() not in body, "no log holds text of a sample"


def test_check_and_its_errors_do_not_show_the_key(tmp_path: Path, loopback: LoopbackProcess) -> None:
    """`ragwatch check` shows the line of the probe; refused keys and wrong configurations are told without the key."""
    key = str(loopback.key)
    write_log(tmp_path, records(3))
    cases = {
        "answers at": an_llm(loopback),
        "authentication_error": an_llm(loopback) | {"api_key": key + "-wrong"},
        "api_kye": {**{name: value for name, value in an_llm(loopback).items() if name != "api_key"}, "api_kye": key},
        "api_key": an_llm(loopback) | {"api_key": [key]},
    }
    shown = {}
    for expected, judge in cases.items():
        config = configure(tmp_path, judge)
        done = run_forked("check", "--config", config)
        shown[expected] = done.stdout + done.stderr
        assert (done.returncode == 0) is (expected == "answers at"), shown[expected]
        assert key not in shown[expected], expected
    assert "claude-haiku-5-5 answers at" in shown["answers at"]
    assert all(expected in told for expected, told in shown.items())
