"""More log files than the process may have open: everything is read once, and everybody is served all the while."""

from __future__ import annotations

import os
import resource
import socket
import time
from contextlib import closing, suppress
from pathlib import Path

from functional.daemon import RagwatchProcess, record, write_config
from support.patience import wait_until

from ragwatch.sources.tail.descriptors import RESERVED_DESCRIPTORS
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.stores.texts import unpack

LIMIT, FILES = 100, 150
SEEN = 'ragwatch_requests_seen_total{source="app"}'
CLOSED = 'ragwatch_source_closed_files{source="app"}'


class LimitedProcess(RagwatchProcess):
    """`ragwatch run` that may have few files open, and that serves everybody all the while."""

    def __init__(self, config: Path, limit: int = LIMIT) -> None:
        super().__init__(config, forked=False, open_files=limit)

    def series(self) -> dict[str, float]:
        """All samples of /metrics by name and labels."""
        assert self.get("/-/healthy")[0] == 200
        return super().series()


def append(path: Path, number: int) -> None:
    """Log one answer."""
    with path.open("a") as log:
        log.write(record(number) + "\n")


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


def test_every_line_is_read_once_and_everybody_is_served(tmp_path: Path) -> None:
    """More files than descriptors: all lines are counted, everybody is served, and one warning says why.

    What is appended to closed files is read, once, and no file is taken for another one; so are files that were renamed
    to a name that nobody watches, and begun anew.
    """
    logs = [tmp_path / "log" / f"{number:03}.jsonl" for number in range(FILES)]
    source = f"[{{kind: tail, name: app, path: '{tmp_path}/log/*.jsonl', start: beginning}}]"
    config = write_config(tmp_path, sources=source)
    for number, path in enumerate(logs):
        append(path, number)
        os.utime(path, ns=(10**18 + number, 10**18 + number))  # written one after another
    with LimitedProcess(config).wait_until_serving() as ragwatch:
        ragwatch.wait_for(SEEN, FILES)
        descriptors = open_files(ragwatch.process.pid)
        held = [path for path in descriptors if path.endswith(".jsonl")]
        assert (LIMIT - RESERVED_DESCRIPTORS) // 2 < len(held) <= LIMIT - RESERVED_DESCRIPTORS
        assert len(descriptors) < LIMIT - 32
        series = ragwatch.wait_for('ragwatch_source_unreadable_files{source="app"}', 0.0)
        assert series[CLOSED] >= FILES - LIMIT
        assert ragwatch.get("/-/ready")[0] == 200
        (warning,) = ragwatch.events("log files are closed between reads: more match than may be open")
        assert (warning["source"], warning["limit"]) == ("app", LIMIT)
        assert sum(map(len, ragwatch.lines)) < 20_000
        rotated = logs[:40]  # written least recently, and so closed
        for number, path in enumerate(rotated):
            append(path, FILES + number)
            path.rename(path.with_name(f"{path.name}.1"))
            append(path, FILES + len(rotated) + number)
        lines = FILES + 2 * len(rotated)
        ragwatch.wait_for(SEEN, lines)
        for number, path in enumerate(logs):
            append(path, lines + number)
        lines += FILES
        ragwatch.wait_for(SEEN, lines)
        ragwatch.process.terminate()
        assert ragwatch.end() == 0
    with closing(SqliteStore(tmp_path / "state")) as store:
        drawn = [unpack(body)["id"] for (body,) in store.engine._reader.rows("SELECT body FROM samples")]
    assert sorted(drawn) == sorted(f"request-{number}" for number in range(lines))


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
        event = "connections cannot be accepted: the limit on open files is reached"
        wait_until(lambda: ragwatch.events(event), "it is told")
        time.sleep(3)  # more than one further attempt of the event loop
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        for client in clients:
            client.close()
        name = "ragwatch_web_accept_failures_total"
        wait_until(lambda: ragwatch.series().get(name, 0.0) > 1, "more than one is counted")
        assert len(ragwatch.events(event)) == 1
        assert not any("Traceback" in line for line in ragwatch.lines)
        assert sum(map(len, ragwatch.lines)) < 20_000
