"""The first scan: which existing records are skipped, and missing directories."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import orjson
import pytest
from support.tail_reader import Reader, append, lines_of

from ragwatch.sources.tail import content
from ragwatch.sources.tail.disk import GONE, UNMOUNTED, missing_directories
from ragwatch.sources.tail.identity import FileIdentity, FilePosition
from ragwatch.sources.tail.scanner import FirstScan, load


def test_skipped_records_are_reported_also_after_a_restart(tmp_path: Path) -> None:
    """With `start: end` existing records are counted once; a later file is read whole."""
    append(tmp_path / "a.jsonl", *lines_of("a", 1200))
    append(tmp_path / "b.jsonl", *lines_of("b", 34))
    reader = Reader(tmp_path / "*.jsonl", start="end")
    assert reader.drain() == []
    assert reader.source.lag().skipped.startswith(
        "0 of 1,234 existing records read: `start: end`; only what is written"
    )
    append(tmp_path / "c.jsonl", b"new")
    reader.restart()
    assert reader.drain() == [b"new"]
    assert "1,234" in reader.source.lag().skipped


def test_nothing_is_reported_when_nothing_is_skipped(tmp_path: Path) -> None:
    """Empty files, or reading from the beginning."""
    append(tmp_path / "a.jsonl")
    (tmp_path / "a.jsonl").write_bytes(b"")
    reader = Reader(tmp_path / "*.jsonl", start="end")
    reader.drain()
    assert reader.source.lag().skipped == ""
    append(tmp_path / "b.jsonl", b"one")
    reader = Reader(tmp_path / "*.jsonl")
    reader.drain()
    assert reader.source.lag().skipped == ""


def test_large_files_are_not_counted_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit the text says `more than`, or how many bytes."""
    append(tmp_path / "a.jsonl", *lines_of("a", 2000))
    monkeypatch.setattr(content, "MAX_COUNTED_BYTES", 1000)
    reader = Reader(tmp_path / "*.jsonl", start="end")
    reader.drain()
    assert reader.source.lag().skipped.startswith("0 of 30.2 KiB of existing records read")
    append(tmp_path / "b.jsonl", *lines_of("b", 9))
    reader = Reader(tmp_path / "*.jsonl", start="end")
    reader.drain()
    assert reader.source.lag().skipped.startswith("0 of more than 9 existing records read")


@pytest.mark.parametrize(("size", "text"), [(1, "1 bytes"), (5 << 30, "5 GiB"), (3 << 50, "3.07e+03 TiB")])
def test_bytes_in_words(size: int, text: str) -> None:
    """A figure of three digits and a unit."""
    assert str(FirstScan(size=size, more=True)).startswith(f"0 of {text} of existing records")


def test_the_cursor_of_an_earlier_version_is_read() -> None:
    """It only holds the time since which files are new."""
    assert load(orjson.dumps({"since_ns": 7}).decode()) == FirstScan(7)
    assert load("{}") == FirstScan()
    first_scan = FirstScan(7).skipping(FilePosition(1, 2, "a", offset=9, line=3))
    assert load(first_scan.dump()) == first_scan


def test_a_missing_directory_is_reported_and_an_empty_one_is_not(tmp_path: Path) -> None:
    """Reported as the directory above the first wildcard; reading continues once it exists."""
    folder = tmp_path / "logs"
    reader = Reader([str(folder / "*.jsonl"), str(folder / "sub*" / "a.jsonl"), str(tmp_path / "b.jsonl")])
    reader.drain()
    lag = reader.source.lag()
    assert (lag.problems, lag.seconds) == ((f"{folder}: {GONE}",), None)
    assert dict(lag.unreadable) == {str(folder): GONE}
    folder.mkdir()
    reader.drain()
    assert (reader.source.lag().problems, reader.source.lag().unreadable) == ((), {})
    append(folder / "a.jsonl", b"one")
    assert reader.drain() == [b"one"]
    shutil.rmtree(folder)
    reader.settle()
    assert reader.source.lag().problems == (f"{folder}: {GONE}",)


def test_a_directory_without_access_is_not_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory without access is unreadable, not missing; paths without a directory are in the current one."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert missing_directories([str(tmp_path / "loop" / "a.jsonl")], [], {}) == {}
    monkeypatch.chdir(tmp_path)
    assert missing_directories(["a.jsonl", "*.jsonl"], [], {}) == {}


def test_a_file_system_that_is_no_longer_mounted(tmp_path: Path) -> None:
    """Files were read on another device, and none is there now: reported until a file matches."""
    append(tmp_path / "a.jsonl", *lines_of("a", 9))
    reader = Reader(tmp_path / "*.jsonl")
    reader.drain()
    reader.stop()
    status = (tmp_path / "a.jsonl").stat()
    elsewhere = {stream: orjson.loads(cursor) for stream, cursor in reader.cursors.items()}
    reader.cursors = {
        stream: orjson.dumps(place | {"dev": status.st_dev + 1, "ino": 1}).decode()
        for stream, place in elsewhere.items()
    }
    (tmp_path / "a.jsonl").rename(tmp_path / "hidden")
    reader.start()
    reader.drain()
    assert reader.source.lag().problems == (f"{tmp_path}: {UNMOUNTED}",)
    append(tmp_path / "b.jsonl", b"new")
    reader.drain()
    assert reader.source.lag().problems == ()
    gone = FilePosition(status.st_dev + 1, 1, str(tmp_path / "gone" / "a.jsonl"))
    here = FilePosition(status.st_dev, 2, os.fspath(tmp_path / "a.jsonl"))
    assert missing_directories([], [gone, here], {FileIdentity(1, 1): None}) == {}  # type: ignore[dict-item]
