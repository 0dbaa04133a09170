"""The real daemon as a process, for functional tests."""

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from resource import RLIMIT_NOFILE, setrlimit
from ssl import SSLContext
from types import TracebackType
from typing import Any, NamedTuple, Self

from functional.forked import ForkedProcess
from support.patience import DEADLINE, pauses

SEEN = 'ragwatch_requests_seen_total{source="app"}'
DRAWN = 'ragwatch_samples_drawn_total{route="search"}'
JUDGED = 'ragwatch_samples_judged_total{judge="embedded",route="search"}'


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


def append_records(folder: Path, numbers: Iterable[int], **changes: object) -> None:
    """Append records to a log that the configuration of `write_config` watches."""
    with (folder / "log" / "rag.jsonl").open("a") as log:
        log.writelines(record(number, **changes) + "\n" for number in numbers)


class Reply(NamedTuple):
    """A reply to a request."""

    status: int
    body: bytes
    headers: Mapping[str, str]


def asked(
    url: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    method: str | None = None,
    context: SSLContext | None = None,
) -> Reply:
    """The reply to a request, whatever its status."""
    request = urllib.request.Request(url, body, dict(headers or {}), method=method)
    try:
        reply = urllib.request.urlopen(request, timeout=DEADLINE, context=context)
    except urllib.error.HTTPError as error:
        reply = error
    with reply:
        return Reply(reply.status, reply.read(), reply.headers)


class RagwatchProcess:
    """`ragwatch run` in a process of its own. As a context manager it is ended, whatever happened.

    What it writes to standard error is read all the while, so that it never waits for a full pipe.

    Args:
        config: Its configuration.
        forked: Whether it is forked from a process that has imported everything, instead of being a new Python.
        code: Folder with the package of another version; None for this one.
        open_files: How many files a new Python may have open; None for as many as this process.

    Attributes:
        address: Where it serves; empty before.
        lines: What it has written to standard error.
    """

    def __init__(
        self, config: Path, *, forked: bool = True, code: Path | None = None, open_files: int | None = None
    ) -> None:
        arguments = ["run", "--config", str(config)]
        self.process: ForkedProcess | subprocess.Popen[str]
        if forked:
            self.process = ForkedProcess(arguments)
        else:
            command = [sys.executable, "-W", "error", "-m", "ragwatch", *arguments]
            environment = None if code is None else {**os.environ, "PYTHONPATH": str(code)}
            limit = None if open_files is None else partial(setrlimit, RLIMIT_NOFILE, (open_files, open_files))
            self.process = subprocess.Popen(
                command,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
                cwd=code,
                preexec_fn=limit,  # noqa: PLW1509 - one call
            )
        self.address = ""
        self.lines: list[str] = []
        self._serves = threading.Event()
        self._reads = threading.Thread(target=self._read, daemon=True)
        self._reads.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                self.lines.append(line)
                if '"started"' in line and (started := self.events("started")):
                    self.address = str(started[0]["address"])
                    self._serves.set()
        self._serves.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.terminate()
        try:
            self.end()
        except subprocess.TimeoutExpired:
            self.kill()

    def wait_until_serving(self) -> Self:
        """Wait until its log names its address."""
        self._serves.wait(DEADLINE)
        assert self.address, f"ended with {self.process.poll()} before it served: {self.lines}"
        return self

    @property
    def log(self) -> list[dict[str, Any]]:
        """The events that it has logged."""
        return [json.loads(line) for line in self.lines if line.startswith("{") and line.endswith("}\n")]

    def events(self, name: str) -> list[dict[str, Any]]:
        """The events that it has logged under this name."""
        return [event for event in self.log if event["event"] == name]

    def get(self, path: str, *, method: str = "GET") -> tuple[int, str]:
        """Status and body of a request."""
        reply = asked(self.address + path, method=method)
        return reply.status, reply.body.decode()

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

    def wait_until_ready(self, status: int = 200, *, naming: str = "") -> str:
        """Ask `/-/ready` until it has this status and says this; all that it says."""
        reply = (0, "")
        for _ in pauses():
            reply = self.get("/-/ready")
            if reply[0] == status and naming in reply[1]:
                return reply[1]
        raise AssertionError(f"readiness is {reply}, not {status} {naming!r}")

    def memory(self, name: str = "VmHWM") -> int:
        """Bytes of memory: the most so far, or what another line of /proc/PID/status says."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition(f"{name}:")[2].split()[0]) << 10

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.end()

    def end(self) -> int:
        """Wait for its end; its exit code."""
        code = self.process.wait(DEADLINE)
        self._reads.join(DEADLINE)
        return code


def parse_series(text: str) -> dict[str, float]:
    """Samples of an exposition by name and labels."""
    lines = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}
