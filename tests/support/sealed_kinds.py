"""The daemon at work with one kind of judge or probe, for `sealed`: until it has done what the kind is for.

Embedded judges also judge on the command line.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from functional.asking import records, write_log
from functional.daemon import RagwatchProcess, write_config
from loopback.process import LoopbackProcess
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from support.retrievers import HITS, serving

ANSWERS = 4
QUIET = 2.0
"""Seconds that the daemon is left alone in the end: libraries that report home do so in the background."""

QUIET_MODEL = 15.0
"""The same for kinds that run a model: onnxruntime used to look its maker's host up ten seconds after its import."""

DETECTOR = Path(__file__).parents[1] / "data" / "detector" / "neutral"

JUDGED = 'ragwatch_samples_judged_total{judge="reader",route="search"}'
ASKED = 'ragwatch_canary_runs_total{suite="docs"}'


def run(folder: Path, kind: str, host: str) -> None:
    """Run the daemon with a kind.

    Args:
        folder: Where it has its configuration, log and state.
        kind: A name of `KINDS`.
        host: How a service on this machine is reached.
    """
    folder.mkdir()
    KINDS[kind](folder, host)


def _embedded(kind: str, quiet: float = QUIET, **options: str) -> Callable[[Path, str], None]:
    def judge(folder: Path, _host: str) -> None:
        _judge(folder, {"name": "reader", "kind": kind, **options}, quiet)
        settings = [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
        log = str(folder / "log" / "rag.jsonl")
        command = [sys.executable, "-m", "ragwatch", "judge", "--judge", kind, *settings, log]
        judged = subprocess.run(command, capture_output=True, text=True, check=True)
        if len(judged.stdout.splitlines()) != ANSWERS:
            raise RuntimeError(judged.stdout + judged.stderr)

    return judge


def _calling(kind: str, path: str, **options: Any) -> Callable[[Path, str], None]:
    def judge(folder: Path, host: str) -> None:
        with LoopbackProcess() as server:
            address = server.address.replace("127.0.0.1", host) + path
            _judge(folder, {"name": "reader", "kind": kind, "base_url": address, "api_key": server.key, **options})

    return judge


def _judge(folder: Path, judge: dict[str, Any], quiet: float = QUIET) -> None:
    write_log(folder, records(ANSWERS))
    _watch(write_config(folder, judges=json.dumps([judge])), JUDGED, ANSWERS, quiet)


def _probing(kind: str, **options: Any) -> Callable[[Path, str], None]:
    async def reply(_request: Request) -> JSONResponse:
        return JSONResponse({"hits": HITS, "answer": "Cats purr."})

    def probe(folder: Path, host: str) -> None:
        with serving(Route("/ask", reply, methods=["POST"])) as address:
            url = f"{address.replace('127.0.0.1', host)}/ask"
            asked = {"kind": kind, "url": url, "body": {"query": "{{ query }}"}, "contexts": "hits", **options}
            item = {"query": "What do cats do?", "expected": ["d1"], "name": "cats"}
            suite = {"suite": "docs", "schedule": "1d", "k": [1], "items": [item], "probe": asked}
            _watch(write_config(folder, canaries=json.dumps([suite])), ASKED, 1, QUIET)

    return probe


def _watch(config: Path, series: str, value: float, quiet: float) -> None:
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        ragwatch.wait_for(series, value)
        time.sleep(quiet)  # nothing to wait for: what is looked for should not come


KINDS: dict[str, Callable[[Path, str], None]] = {
    "lexical": _embedded("lexical"),
    "local": _embedded("local", QUIET_MODEL),
    "detector": _embedded("detector", QUIET_MODEL, model=str(DETECTOR)),
    "claude": _calling("claude", "", model="claude-test", allow_unknown_price=True),
    "openai": _calling("openai", "/v1", model="gpt-test", allow_unknown_price=True),
    "http": _probing("http"),
    "rag": _probing("rag", answer="answer"),
}
