"""Log files under the real daemon: more than it may have open, directories that vanish, logs of before its start."""

import json
import os
import shutil
from contextlib import closing, suppress
from pathlib import Path

from functional.daemon import SEEN, RagwatchProcess, record, write_config
from support.patience import wait_until

from ragwatch.sources.tail.descriptors import RESERVED_DESCRIPTORS
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.stores.texts import unpack

LIMIT, FILES = 100, 150
CLOSED = 'ragwatch_source_closed_files{source="app"}'


UNREADABLE = 'ragwatch_source_unreadable_files{source="app"}'


class LimitedProcess(RagwatchProcess):
    """`ragwatch run` that may have few files open, and that serves everybody all the while."""

    def __init__(self, config: Path) -> None:
        super().__init__(config, forked=False, open_files=LIMIT)

    def series(self) -> dict[str, float]:
        """All samples of /metrics by name and labels."""
        assert self.get("/-/healthy")[0] == 200
        return super().series()


def append(path: Path, *numbers: int) -> None:
    """Log answers."""
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as log:
        log.writelines(record(number) + "\n" for number in numbers)


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
        series = ragwatch.wait_for(UNREADABLE, 0.0)
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


def test_a_log_directory_that_is_not_there_and_one_that_vanishes(tmp_path: Path) -> None:
    """`/-/ready` and the series of the alert say so, with source and path; then reading goes on and both heal.

    An empty directory is ready. What is written in one that comes later is read from its first line.
    """
    config, log = write_config(tmp_path), tmp_path / "log" / "rag.jsonl"
    missing = f"source app: {tmp_path}/log: no such directory; create or mount it"
    (tmp_path / "log").rmdir()
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        assert missing in ragwatch.wait_until_ready(503)
        log.parent.mkdir()
        ragwatch.wait_until_ready()
        append(log, *range(10))
        ragwatch.wait_for(SEEN, 10)
        shutil.rmtree(tmp_path / "log")
        assert missing in ragwatch.wait_until_ready(503)
        ragwatch.wait_for(UNREADABLE, 1.0)
        assert "no such directory" in ragwatch.get("/")[1]
        append(log, *range(10, 25))
        ragwatch.wait_for(SEEN, 25)
        ragwatch.wait_until_ready()
        ragwatch.wait_for(UNREADABLE, 0.0)


def test_an_existing_log_that_is_not_read_is_told(tmp_path: Path) -> None:
    """With `start: end` the log, stderr and the page say how many records are passed over, until one was read."""
    sources = f"[{{kind: tail, name: app, path: '{tmp_path}/log/*'}}]"
    config, log = write_config(tmp_path, sources=sources), tmp_path / "log" / "rag.jsonl"
    append(log, *range(1234))
    said = "0 of 1,234 existing records read: `start: end`"
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        wait_until(
            lambda: any(f"source app: {said}" in line for line in ragwatch.lines if not line.startswith("{")), said
        )
        assert any(line.startswith("ragwatch serves") for line in ragwatch.lines)
        assert [event["source"] for event in ragwatch.events("existing records are not read")] == ["app"]
        ragwatch.wait_for(UNREADABLE, 0.0)
        assert said in json.loads(ragwatch.get("/api/v1/snapshot")[1])["sources"][0]["skipped"]
        assert said in ragwatch.get("/")[1]
        append(log, 1234, 1235)
        ragwatch.wait_for(SEEN, 2)
        wait_until(lambda: said not in ragwatch.get("/")[1], "the overview says no more of them")
