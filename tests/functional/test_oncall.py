"""Somebody is called: a broken retriever becomes one page that names its stage, mending ends it, and silence is told.

A real RAG service, ragwatch, Prometheus and Alertmanager on loopback, with windows of seconds instead of hours.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from functional.daemon import RagwatchProcess, write_config
from functional.test_prometheus import free_port, program

from ragwatch.core.scores import Quantity
from ragwatch.demo import Demo
from ragwatch.demo.breakage import Breakage
from ragwatch.exporter.oncall import Limits, Links, Plan, boards, prometheus, yaml_text

ROOT = Path(__file__).parents[2]
DEADLINE = 120.0
RATE = 12.0
SCRAPING = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: [ragwatch-recording.yaml, ragwatch-alerts.yaml]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ["127.0.0.1:{manager}"]}}]}}]}}
scrape_configs: [{{job_name: ragwatch, static_configs: [{{targets: ["127.0.0.1:{ragwatch}"]}}]}}]
"""
# What this service has none of: canaries, a judge that costs money, failures, people's labels, enough life to drift;
# and its judge is blind to contradiction and to the parts of a question.
NOT_HERE = re.compile(
    r"ragwatch_(canary|traffic_drift|drift|judge_(budget|call_failures|cost|tokens|agreement|repeat|probe|drift)|step_failures)"
    r"|judge:|ALERTS|contradiction|need_recall"
)


class Ears(BaseHTTPRequestHandler):
    """A webhook that keeps what it is told, by receiver."""

    heard: list[tuple[str, dict[str, Any]]]

    def do_POST(self) -> None:
        """Take one notification."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.heard.append((self.path.strip("/"), json.loads(body)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def webhook() -> Iterator[tuple[int, list[tuple[str, dict[str, Any]]]]]:
    """A loopback webhook: its port, and what it heard."""
    heard: list[tuple[str, dict[str, Any]]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Ears,), {"heard": heard}))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port, heard
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def running(log: Path, *command: str) -> Iterator[None]:
    """A program until the end of the block."""
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            yield
        finally:
            process.kill()


def until(what: str, found: Callable[[], Any]) -> Any:
    """The first thing found that is not empty."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        try:
            if thing := found():
                return thing
        except OSError:
            pass  # it is still starting
        time.sleep(0.2)  # other processes, other clocks: there is nothing to wait on
    return pytest.fail(f"{what}: not within {DEADLINE} s")


def ask(port: int, expression: str) -> list[dict[str, Any]]:
    """What Prometheus answers to an instant query."""
    url = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
    with urllib.request.urlopen(url, timeout=10) as reply:
        data: list[dict[str, Any]] = json.load(reply)["data"]["result"]
        return data


def told(heard: list[tuple[str, dict[str, Any]]], receiver: str, name: str, status: str) -> list[dict[str, Any]]:
    """Notifications of a receiver about an alert."""
    return [
        body
        for place, body in list(heard)
        if place == receiver
        and body["status"] == status
        and any(alert["labels"]["alertname"] == name for alert in body["alerts"])
    ]


def write_files(folder: Path, plan: Plan, *, ragwatch: int, manager: int, hook: int) -> None:
    """Rules, and the configurations of Prometheus and Alertmanager: the committed one, with shorter waits."""
    for name, file in prometheus(plan).items():
        (folder / name).write_text(yaml_text(file))
    (folder / "prometheus.yaml").write_text(SCRAPING.format(manager=manager, ragwatch=ragwatch))
    text = (ROOT / "deploy" / "alertmanager" / "alertmanager.yaml").read_text()
    text = text.replace("127.0.0.1:9095", f"127.0.0.1:{hook}")
    text = text.replace("group_wait: 30s", "group_wait: 2s").replace("group_interval: 5m", "group_interval: 2s")
    (folder / "alertmanager.yaml").write_text(text)


def panels_without_series(port: int, window: str) -> set[str]:
    """Expressions of panels that find nothing, though this service should have it."""
    empty = set()
    filled = {"$__rate_interval": "15s", "$job": "ragwatch", "$route": ".+", "$judge": "embedded", "$window": window}
    for board in boards("http://127.0.0.1").values():
        panels: Any = board["panels"]
        for expression in (target["expr"] for panel in panels for target in panel.get("targets", ())):
            asked = expression
            for name, value in filled.items():
                asked = asked.replace(name, value)
            if not ask(port, asked) and not NOT_HERE.search(expression):
                empty.add(asked)
    return empty


def test_one_page_that_names_the_stage_and_ends(tmp_path: Path) -> None:
    """Breaking the retriever calls once, with working links; mending ends it; stopping ragwatch is told as well."""
    if shutil.which("prometheus-alertmanager") is None:
        pytest.skip("prometheus-alertmanager is missing: Debian package of that name")
    server, manager, own = free_port(), free_port(), free_port()
    plan = Plan(
        judge="embedded",
        job="ragwatch",
        links=Links("https://runbooks.example.com", "https://grafana.example.com", f"http://127.0.0.1:{own}"),
        thresholds={Quantity.CONTEXT_PRECISION: 0.7, Quantity.FAITHFULNESS: 0.7},
        windows=(10.0, 20.0, 60.0),
        window=20.0,
        limits=Limits(samples=20, hold=2.0),
    )
    log = tmp_path / "rag.jsonl"
    config = write_config(
        tmp_path,
        routes="[]",
        web=f"{{listen: '127.0.0.1:{own}'}}",
        sources=f"[{{kind: tail, name: app, path: '{log}', start: beginning}}]",
    )
    with ExitStack() as stack:
        hook, heard = stack.enter_context(webhook())
        write_files(tmp_path, plan, ragwatch=own, manager=manager, hook=hook)
        demo = stack.enter_context(Demo(log, rate=RATE))
        watch = stack.enter_context(RagwatchProcess(config)).wait_until_serving()
        stack.enter_context(
            running(
                tmp_path / "manager.log",
                "prometheus-alertmanager",
                f"--config.file={tmp_path / 'alertmanager.yaml'}",
                f"--storage.path={tmp_path / 'manager'}",
                f"--web.listen-address=127.0.0.1:{manager}",
                "--cluster.listen-address=",
            )
        )
        stack.enter_context(
            running(
                tmp_path / "prometheus.log",
                program("prometheus"),
                f"--config.file={tmp_path / 'prometheus.yaml'}",
                f"--storage.tsdb.path={tmp_path / 'data'}",
                f"--web.listen-address=127.0.0.1:{server}",
            )
        )
        good = 'route:ragwatch_quality:shortfall{quantity="context_precision"} < 0'
        until("a healthy estimate", lambda: ask(server, good))
        until("the longest window", lambda: ask(server, 'all:ragwatch_quality:mean{window="1m"}'))
        assert panels_without_series(server, "20s") == set()
        assert not told(heard, "oncall", "RagwatchQualityBad", "firing")

        demo.break_it(Breakage.VANISH)
        broken = time.monotonic()
        (page,) = until("a page", lambda: told(heard, "oncall", "RagwatchQualityBad", "firing"))
        print(f"from breakage to page: {time.monotonic() - broken:.1f} s")
        (alert,) = page["alerts"]
        said = alert["annotations"]
        assert "retrieval" in said["description"], said
        assert "context_precision" in said["description"]
        assert said["runbook_url"] == f"{plan.links.runbooks}/RagwatchQualityBad.md"
        status, body = watch.get(
            said["samples_url"].removeprefix(plan.links.pages).replace("/samples", "/api/v1/samples")
        )
        assert (status, "retrieval" in body) == (200, True)

        demo.mend()
        until("its end", lambda: told(heard, "oncall", "RagwatchQualityBad", "resolved"))
        pages = [body for place, body in heard if place == "oncall" and body["status"] == "firing"]
        assert len(pages) == 1, pages

        watch.kill()
        until("that nobody watches", lambda: told(heard, "oncall", "RagwatchAbsent", "firing"))
