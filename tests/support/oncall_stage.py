"""A stage for the on-call kit: a real Prometheus, a real Alertmanager and a webhook on loopback, with short waits."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ragwatch.rules import RulePlan, prometheus, yaml_text
from support.answering import Asked, Reply, answering
from support.patience import DEADLINE, pauses
from support.programs import free_port, installed

ROOT = Path(__file__).parents[2]
SCRAPING = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: [ragwatch-recording.yaml, ragwatch-alerts.yaml]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ["127.0.0.1:{manager}"]}}]}}]}}
scrape_configs:
"""
WAITS = (("group_wait: 30s", "group_wait: 1s"), ("group_interval: 5m", "group_interval: 1s"))
Heard = list[tuple[str, dict[str, Any]]]


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
    for _ in pauses():
        try:
            if thing := found():
                return thing
        except OSError:
            pass  # it is still starting
    return pytest.fail(f"{what}: not within {DEADLINE} s")


def get(url: str, method: str = "GET") -> Any:
    """Status and text of a page."""
    with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=DEADLINE) as reply:
        return reply.status, reply.read().decode()


def manager(folder: Path, port: int, hook: int) -> list[str]:
    """Writes the committed configuration of Alertmanager with shorter waits; the command that runs it."""
    text = (ROOT / "deploy" / "alertmanager" / "alertmanager.yaml").read_text()
    text = text.replace("127.0.0.1:9095", f"127.0.0.1:{hook}")
    for long, short in WAITS:
        assert long in text
        text = text.replace(long, short)
    (folder / "alertmanager.yaml").write_text(text)
    return [
        installed("prometheus-alertmanager"),
        f"--config.file={folder / 'alertmanager.yaml'}",
        f"--storage.path={folder / 'manager'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ]


@dataclass
class Stage:
    """Addresses of what runs, and what was heard."""

    jobs: Mapping[str, Sequence[int]]  # ports that are scraped, by the label `job`
    heard: Heard = field(default_factory=list)  # notifications in order, each with the name of its receiver
    hook: int = 0  # port of the webhook, which gives out the runbooks as well
    manager: int = field(default_factory=free_port)
    server: int = field(default_factory=free_port)

    @contextmanager
    def open(self, folder: Path, plan: Callable[[Stage], RulePlan]) -> Iterator[Stage]:
        """Start everything; `plan` is asked once the port of the webhook is known."""
        with self.open_rules(
            folder, lambda stage: {name: yaml_text(file) for name, file in prometheus(plan(stage)).items()}
        ):
            yield self

    @contextmanager
    def open_rules(self, folder: Path, rules: Callable[[Stage], Mapping[str, str]]) -> Iterator[Stage]:
        """Start everything with these rule files, by name; `rules` is asked once the port of the webhook is known."""
        with ExitStack() as stack:
            self.hook = int(stack.enter_context(answering(self._hear))[0].rpartition(":")[2])
            for name, text in rules(self).items():
                (folder / name).write_text(text)
            jobs = [
                {"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in ports]}]}
                for job, ports in self.jobs.items()
            ]
            text = SCRAPING.format(manager=self.manager) + "".join(f"  - {json.dumps(job)}\n" for job in jobs)
            (folder / "prometheus.yaml").write_text(text)
            stack.enter_context(running(folder / "manager.log", *manager(folder, self.manager, self.hook)))
            stack.enter_context(
                running(
                    folder / "prometheus.log",
                    installed("prometheus"),
                    f"--config.file={folder / 'prometheus.yaml'}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self.server}",
                )
            )
            yield self

    def _hear(self, asked: Asked) -> Reply:
        """Keep what is posted, by receiver; give out the runbooks, as a wiki would."""
        if asked.content:
            self.heard.append((asked.path.strip("/"), asked.body))
        file = ROOT / "deploy" / "runbooks" / Path(asked.path).name
        return (200, file.read_bytes(), {}) if file.is_file() else (200 if asked.content else 404, b"", {})

    def ask(self, expression: str) -> list[dict[str, Any]]:
        """What Prometheus answers to an instant query."""
        found: list[dict[str, Any]] = self._api("query", query=expression)["result"]
        return found

    def value(self, expression: str) -> float | None:
        """The only value that an expression finds; None for none."""
        found = self.ask(expression)
        assert len(found) <= 1, f"{expression}: {found}"
        return float(found[0]["value"][1]) if found else None

    def over(self, expression: str, begin: float, end: float, step: float) -> list[dict[str, Any]]:
        """What Prometheus answers to a query over a time, in seconds since the epoch."""
        found: list[dict[str, Any]] = self._api(
            "query_range", query=expression, start=f"{begin}", end=f"{end}", step=f"{step}"
        )["result"]
        return found

    def values_of(self, label: str, selector: str) -> list[str]:
        """Values of a label, as Grafana asks for them for `label_values(selector, label)`."""
        found: list[str] = self._api(f"label/{label}/values", **{"match[]": selector})
        return found

    def _api(self, path: str, **query: str) -> Any:
        url = f"http://127.0.0.1:{self.server}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        return json.loads(get(url)[1])["data"]

    def told(
        self, receiver: str, job: str, name: str = ".+", status: str = "firing", *, since: int = 0
    ) -> list[dict[str, Any]]:
        """Notifications of a receiver about a job and an alert (a pattern), in order; those after the first `since`."""
        return [
            body
            for place, body in self.heard[since:]
            if (place, body["status"], body["groupLabels"]["job"]) == (receiver, status, job)
            and any(re.fullmatch(name, alert["labels"]["alertname"]) for alert in body["alerts"])
        ]

    def ended(self, receiver: str, job: str, name: str) -> bool:
        """Whether a receiver was told that an alert is resolved, itself: others of its group may still fire."""
        return any(
            (alert["labels"]["alertname"], alert["status"]) == (name, "resolved")
            for place, body in self.heard
            if (place, body["groupLabels"]["job"]) == (receiver, job)
            for alert in body["alerts"]
        )

    def alerts(self, job: str, route: str) -> list[dict[str, Any]]:
        """Alerts about a route (a pattern) that Alertmanager knows of now."""
        query = urllib.parse.urlencode({"filter": [f'job="{job}"', f'route=~"{route}"']}, doseq=True)
        shown: list[dict[str, Any]] = json.loads(get(f"http://127.0.0.1:{self.manager}/api/v2/alerts?{query}")[1])
        return shown
