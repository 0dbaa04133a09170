"""Directories that vanish and come back, and logs that were there before ragwatch was."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from functional.daemon import RagwatchProcess, record, write_config
from support.patience import wait_until

SEEN = 'ragwatch_requests_seen_total{source="app"}'
UNREADABLE = 'ragwatch_source_unreadable_files{source="app"}'


def _write(path: Path, first: int, last: int) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as log:
        log.write("".join(record(number) + "\n" for number in range(first, last)))


def test_a_log_directory_that_vanishes_and_comes_back(tmp_path: Path) -> None:
    """`/-/ready` and the series of the alert say so, with source and path; then reading goes on and both heal."""
    config, log = write_config(tmp_path), tmp_path / "log" / "rag.jsonl"
    _write(log, 0, 10)
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        ragwatch.wait_for(SEEN, 10)
        ragwatch.wait_until_ready()
        shutil.rmtree(tmp_path / "log")
        assert f"source app: {tmp_path}/log: no such directory; create or mount it" in ragwatch.wait_until_ready(503)
        ragwatch.wait_for(UNREADABLE, 1.0)
        assert "no such directory" in ragwatch.get("/")[1]
        _write(log, 10, 25)
        ragwatch.wait_for(SEEN, 25)
        ragwatch.wait_until_ready()
        ragwatch.wait_for(UNREADABLE, 0.0)


def test_a_directory_that_is_not_there_at_the_start(tmp_path: Path) -> None:
    """A missing directory is not ready; an empty one is. What is written in it later is read from its first line."""
    config, log = write_config(tmp_path), tmp_path / "log" / "rag.jsonl"
    (tmp_path / "log").rmdir()
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        assert "source app: " in ragwatch.wait_until_ready(503)
        log.parent.mkdir()
        ragwatch.wait_until_ready()
        _write(log, 0, 5)
        ragwatch.wait_for(SEEN, 5)


def test_an_existing_log_that_is_not_read_is_told(tmp_path: Path) -> None:
    """With `start: end` the log, stderr and the page say how many records are passed over, until one was read."""
    sources = f"[{{kind: tail, name: app, path: '{tmp_path}/log/*'}}]"
    config, log = write_config(tmp_path, sources=sources), tmp_path / "log" / "rag.jsonl"
    _write(log, 0, 1234)
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
        _write(log, 1234, 1236)
        ragwatch.wait_for(SEEN, 2)
        wait_until(lambda: said not in ragwatch.get("/")[1], "the overview says no more of them")
