"""More log files than the process may have open: everything is read once, and everybody is served all the while."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest
from functional.daemon import RagwatchProcess, record, write_config
from support.patience import DEADLINE, pauses

from ragwatch.sources.tail.descriptors import RESERVED_DESCRIPTORS
from ragwatch.stores.rows import unpack
from ragwatch.stores.sqlite.store import SqliteStore

LIMIT, FILES = 100, 150
SEEN = 'ragwatch_requests_seen_total{source="app"}'
CLOSED = 'ragwatch_source_closed_files{source="app"}'


class LimitedProcess(RagwatchProcess):
    """`ragwatch run` that may have few files open. What it writes to stderr goes to a file, so that nothing blocks."""

    def __init__(self, config: Path, limit: int = LIMIT) -> None:
        self.errors = config.with_suffix(".err")
        self.address, self.log = "", []
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "error", "-m", "ragwatch", "run", "--config", str(config)],
                stderr=errors,
                text=True,
                preexec_fn=partial(resource.setrlimit, resource.RLIMIT_NOFILE, (limit, limit)),  # noqa: PLW1509 - one call
            )

    def events(self, name: str) -> list[dict[str, Any]]:
        """What was logged under this name so far."""
        lines = [line for line in self.errors.read_text().splitlines() if line.startswith("{") and line.endswith("}")]
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def wait_until_serving(self) -> Self:
        """Read its log until it names its address."""
        end = time.monotonic() + DEADLINE
        while not (started := self.events("started")):
            assert self.process.poll() is None, self.errors.read_text()
            assert time.monotonic() < end, self.errors.read_text()
            time.sleep(0.05)
        self.address = str(started[0]["address"])
        return self

    def wait_for(self, name: str, value: float) -> dict[str, float]:
        """Scrape until a series has this value; meanwhile everybody is served."""
        series: dict[str, float] = {}
        for _ in pauses():
            assert self.get("/-/healthy")[0] == 200
            if (series := self.series()).get(name) == value:
                return series
        raise AssertionError(f"{name} is {series.get(name)}, not {value}")


def append(path: Path, number: int) -> None:
    """Log one answer."""
    with path.open("a") as log:
        log.write(record(number) + "\n")


@pytest.fixture
def logs(tmp_path: Path) -> list[Path]:
    """Files with one record each, written one after another."""
    source = f"[{{kind: tail, name: app, path: '{tmp_path}/log/*.jsonl', start: beginning}}]"
    write_config(tmp_path, sources=source)
    logs = [tmp_path / "log" / f"{number:03}.jsonl" for number in range(FILES)]
    for number, path in enumerate(logs):
        append(path, number)
        os.utime(path, ns=(10**18 + number, 10**18 + number))
    return logs


@pytest.fixture
def ragwatch(tmp_path: Path, logs: list[Path]) -> Iterator[LimitedProcess]:
    """The daemon beside them, with everything read that was there."""
    with LimitedProcess(tmp_path / "ragwatch.yaml").wait_until_serving() as ragwatch:
        ragwatch.wait_for(SEEN, len(logs))
        yield ragwatch


def stored(folder: Path) -> list[str]:
    """Ids of everything that was drawn, by the daemon that has ended."""
    with closing(SqliteStore(folder / "state")) as store:
        return sorted(unpack(body)["id"] for (body,) in store.engine._reader.rows("SELECT body FROM samples"))


def open_files(process: int) -> list[str]:
    """What the descriptors of a process refer to: the shortest of five lists.

    A list is no snapshot: on a busy machine one file may be closed and the next opened between two of its entries.
    """
    lists: list[list[str]] = []
    for _ in range(5):
        paths: list[str] = []
        for descriptor in Path(f"/proc/{process}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed since
                paths.append(str(descriptor.readlink()))
        lists.append(paths)
    return min(lists, key=len)


def ids(count: int) -> list[str]:
    """Ids of the first records."""
    return sorted(f"request-{number}" for number in range(count))


def test_every_line_is_read_once_and_everybody_is_served(tmp_path: Path, ragwatch: LimitedProcess) -> None:
    """More files than descriptors: all lines are counted, everybody is served, and one warning says why."""
    descriptors = open_files(ragwatch.process.pid)
    logs = [path for path in descriptors if path.endswith(".jsonl")]
    assert (LIMIT - RESERVED_DESCRIPTORS) // 2 < len(logs) <= LIMIT - RESERVED_DESCRIPTORS
    assert len(descriptors) < LIMIT - 32
    series = ragwatch.wait_for('ragwatch_source_unreadable_files{source="app"}', 0.0)
    assert series[CLOSED] >= FILES - LIMIT
    assert ragwatch.get("/-/ready")[0] == 200
    (warning,) = ragwatch.events("log files are closed between reads: more match than may be open")
    assert (warning["source"], warning["limit"]) == ("app", LIMIT)
    assert ragwatch.errors.stat().st_size < 20_000
    ragwatch.process.terminate()
    assert ragwatch.end() == 0
    assert stored(tmp_path) == ids(FILES)


def test_what_is_appended_to_closed_files_is_read(tmp_path: Path, logs: list[Path], ragwatch: LimitedProcess) -> None:
    """Each file gets a second line: each is read, once, and no file is taken for another one."""
    for number, path in enumerate(logs):
        append(path, FILES + number)
    ragwatch.wait_for(SEEN, 2 * FILES)
    ragwatch.process.terminate()
    assert ragwatch.end() == 0
    assert stored(tmp_path) == ids(2 * FILES)


def test_closed_files_are_rotated(tmp_path: Path, logs: list[Path], ragwatch: LimitedProcess) -> None:
    """Written, renamed to a name that nobody watches and begun anew: both lines of each are read, one by one."""
    config = (tmp_path / "ragwatch.yaml").read_text()
    closed = int(ragwatch.series()[CLOSED])
    assert closed >= FILES - LIMIT
    assert "log/*.jsonl" in config
    rotated = logs[:40]  # written least recently, and so closed
    for number, path in enumerate(rotated):
        append(path, FILES + number)
        path.rename(path.with_name(f"{path.name}.1"))
        append(path, FILES + len(rotated) + number)
    ragwatch.wait_for(SEEN, FILES + 2 * len(rotated))
    ragwatch.process.terminate()
    assert ragwatch.end() == 0
    assert stored(tmp_path) == ids(FILES + 2 * len(rotated))


def test_connections_beyond_the_limit_are_told_once(tmp_path: Path) -> None:
    """When no connection can be accepted for want of descriptors, it is counted and told once, without traceback."""
    config = write_config(tmp_path)
    with LimitedProcess(config, 1024).wait_until_serving() as ragwatch:
        host, _, port = ragwatch.address.removeprefix("http://").rpartition(":")
        pid = ragwatch.process.pid
        open_files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (open_files, limits[1]))  # whatever else comes is one too many
        clients = [socket.create_connection((host, int(port))) for _ in range(8)]
        end = time.monotonic() + DEADLINE
        event = "connections cannot be accepted: the limit on open files is reached"
        while not ragwatch.events(event):
            assert time.monotonic() < end
            time.sleep(0.1)
        time.sleep(3)  # more than one further attempt of the event loop
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        for client in clients:
            client.close()
        name = "ragwatch_web_accept_failures_total"
        while not (failures := ragwatch.series().get(name)):
            assert time.monotonic() < end
        assert failures > 1
        assert len(ragwatch.events(event)) == 1
        assert "Traceback" not in ragwatch.errors.read_text()
        assert ragwatch.errors.stat().st_size < 20_000
