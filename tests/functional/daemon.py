"""The real daemon as a process, for functional tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

from functional.forked import ForkedProcess
from support.patience import DEADLINE, pauses


def record(number: int, **changes: object) -> str:
    """A canonical log line about a mill, supported by its context."""
    row = {
        "id": f"request-{number}",
        "question": "Where does the old mill stand?",
        "contexts": [{"id": "d1", "text": "The old mill stands by the river since 1820.", "score": 0.5}],
        "answer": "The old mill stands by the river.",
        "route": "search",
        "metadata": {"trace_id": f"{number:032x}"},
    }
    return json.dumps(row | changes)


def write_config(folder: Path, **sections: str) -> Path:
    """A configuration that watches `folder/log/*` at p = 1; each section is a YAML line that adds or replaces."""
    (folder / "log").mkdir(exist_ok=True)
    parts = {
        "state": f"{folder}/state",
        "web": "{listen: '127.0.0.1:0'}",
        "routes": "[search, support]",
        "sources": f"[{{kind: tail, name: app, path: '{folder}/log/*', start: beginning}}]",
        "sampling": "{probability: 1.0}",
        "estimates": "{windows: [15m, 1h], every: 200ms}",
    } | sections
    path = folder / "ragwatch.yaml"
    path.write_text("".join(f"{key}: {value}\n" for key, value in parts.items()))
    return path


class RagwatchProcess:
    """`ragwatch run` in a process of its own. As a context manager it is ended, whatever happened.

    Args:
        config: Its configuration.
        forked: Whether it is forked from a process that has imported everything, instead of being a new Python.
        code: Folder with the package of another version; None for this one.
    """

    def __init__(self, config: Path, *, forked: bool = True, code: Path | None = None) -> None:
        self.started = time.monotonic()
        arguments = ["run", "--config", str(config)]
        self.process: ForkedProcess | subprocess.Popen[str]
        if forked:
            self.process = ForkedProcess(arguments)
        else:
            command = [sys.executable, "-W", "error", "-m", "ragwatch", *arguments]
            environment = None if code is None else {**os.environ, "PYTHONPATH": str(code)}
            self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, cwd=code)
        self.address = ""
        self.log: list[dict[str, object]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.terminate()
        try:
            self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.kill()
        if self.process.stderr is not None:
            self.process.stderr.close()

    def wait_until_serving(self) -> Self:
        """Read its log until it names its address."""
        assert self.process.stderr is not None
        others = []
        for line in self.process.stderr:
            if not line.startswith("{"):
                others.append(line)
            else:
                self.log.append(json.loads(line))
                if self.log[-1]["event"] == "started":
                    self.address = str(self.log[-1]["address"])
                    return self
        raise AssertionError(f"ended with {self.process.wait()} before it served: {self.log} {others}")

    def get(self, path: str, *, method: str = "GET") -> tuple[int, str]:
        """Status and body of a request."""
        request = urllib.request.Request(self.address + path, method=method)
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def series(self) -> dict[str, float]:
        """All samples of /metrics by name and labels."""
        return parse_series(self.get("/metrics")[1])

    def wait_for(self, name: str, value: float) -> dict[str, float]:
        """Scrape until a series has this value."""
        series: dict[str, float] = {}
        for _ in pauses():
            if (series := self.series()).get(name) == value:
                return series
        raise AssertionError(f"{name} is {series.get(name)}, not {value}")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        """Wait for its end; its exit code."""
        return self.process.wait(DEADLINE)


def parse_series(text: str) -> dict[str, float]:
    """Samples of an exposition by name and labels."""
    lines = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}
