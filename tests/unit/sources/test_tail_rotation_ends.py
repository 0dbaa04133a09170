"""Ends of files: unterminated lines, and files that were deleted, compressed, or have grown again."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from support.tail_reader import Reader, append, lines_of

LIVE = "app.jsonl"
FIRST = b"first" * 20


def test_t12_partial_line_at_rotation(tmp_path: Path, path: Path) -> None:
    """The unterminated end of the old file is counted and never joined with the first line of the next file."""
    append(path, b"whole")
    append(path, b'{"id":"to', end=b"")
    reader = Reader(path, rotate_wait_seconds=5)
    reader.drain()
    path.rename(tmp_path / "app.jsonl.1")
    append(path, b'rn"}', b"next")
    assert reader.drain() == [b"whole", b'rn"}', b"next"]
    assert reader.reasons == []
    reader.settle(4.9)
    assert reader.reasons == []
    reader.settle(0.2)
    assert [(r.reason, Path(r.file).name, r.line) for r in reader.rejections] == [("partial_at_rotation", LIVE, 2)]
    reader.restart()
    assert len(reader.settle()) == 3
    assert len(reader.rejections) == 1


def test_t12_a_partial_line_completed_within_the_wait_is_a_line(tmp_path: Path, path: Path) -> None:
    """A line that is completed in the renamed file is read as one record."""
    append(path, b"half", end=b"")
    reader = Reader(path, rotate_wait_seconds=5)
    reader.drain()
    path.rename(tmp_path / "app.jsonl.1")
    reader.settle(3)
    append(tmp_path / "app.jsonl.1", b" and half")
    assert reader.settle() == [b"half and half"]
    assert reader.reasons == []


def test_t12_the_end_of_a_line_given_up_is_no_record(tmp_path: Path, path: Path) -> None:
    """When the rest of a counted partial line arrives after all, it is dropped; lines after it are read."""
    append(path, b"half", end=b"")
    reader = Reader(tmp_path / "app.jsonl*", rotate_wait_seconds=5)
    reader.drain()
    path.rename(tmp_path / "app.jsonl.1")
    reader.settle()
    reader.settle()
    append(tmp_path / "app.jsonl.1", b" and half", b"whole")
    assert reader.settle() == [b"whole"]
    assert reader.reasons == ["partial_at_rotation"]


def test_t23_offset_beyond_the_size_at_start(path: Path, reader: Reader) -> None:
    """A truncated file is read at once, not only after it exceeds its old size."""
    old, new = lines_of("old", 30), lines_of("new", 1)
    append(path, *old)
    reader.drain()
    reader.stop()
    path.unlink()
    path.write_bytes(b"")
    append(path, *new)
    reader.start()
    assert old + new == reader.drain()
    assert len(set(reader.places)) == 31


def test_cursors_of_files_that_are_gone_are_deleted(tmp_path: Path, path: Path, reader: Reader) -> None:
    """There are no more cursors than files in the directory, running and after a stop."""
    for turn in range(6):
        append(path, *lines_of(str(turn), 2))
        reader.settle()
        (tmp_path / "app.jsonl.1").unlink(missing_ok=True)
        path.rename(tmp_path / "app.jsonl.1")
    reader.settle()
    assert len(reader.cursors) <= 3
    reader.stop()
    (tmp_path / "app.jsonl.1").unlink()
    reader.start()
    assert len(reader.settle()) == 12
    assert reader.cursors == {}


def test_a_finished_file_that_grows_is_taken_up_again(tmp_path: Path) -> None:
    """A writer that never reopens its log is read at the next rotation at the latest."""
    path, old = tmp_path / LIVE, tmp_path / "app.jsonl.1"
    append(path, b"one")
    reader = Reader(path)
    reader.drain()
    path.rename(old)
    append(path, b"two")
    reader.settle()
    append(old, b"three")
    reader.settle()
    path.rename(tmp_path / "app.jsonl.0")
    append(path, b"four")
    assert {b"one", b"two", b"three", b"four"} == set(reader.settle())
    assert len(reader.lines) == 4


def test_a_deleted_file_is_read_to_its_end(path: Path) -> None:
    """What was written before the deletion, and through the writer's open handle after it, is not lost."""
    with path.open("ab", buffering=0) as writer:
        writer.write(b"one\n")
        reader = Reader(path)
        reader.drain()
        writer.write(b"two\n")
        path.unlink()
        reader.drain()
        writer.write(b"three\n")
        assert reader.settle() == [b"one", b"two", b"three"]


def test_t24_a_rotation_that_is_compressed_later(tmp_path: Path, path: Path) -> None:
    """The compressed copy of a file that was read is not read again, and the file's cursor goes with it."""
    append(path, *lines_of("old", 9))
    reader = Reader(tmp_path / "app.jsonl*")
    reader.drain()
    path.rename(tmp_path / "app.jsonl.1")
    append(path, b"new")
    reader.settle()
    (tmp_path / "app.jsonl.1.gz").write_bytes(gzip.compress((tmp_path / "app.jsonl.1").read_bytes()))
    (tmp_path / "app.jsonl.1").unlink()
    path.rename(tmp_path / "app.jsonl.1")
    append(path, b"newest")
    reader.settle()
    reader.restart()
    assert [*lines_of("old", 9), b"new", b"newest"] == reader.settle()


def test_t33_modification_times_do_not_identify(path: Path, reader: Reader) -> None:
    """A file from the future, or from long ago, is still the same file."""
    for when in (0, 4_000_000_000, 1):
        append(path, b"%d" % when)
        os.utime(path, (when, when))
        reader.settle()
        reader.restart()
    assert reader.settle() == [b"0", b"4000000000", b"1"]
    assert reader.resets == {}


@pytest.mark.parametrize("pattern", [LIVE, "*.jsonl"])
@pytest.mark.parametrize("stopped", [True, False])
@pytest.mark.parametrize("again", [True, False])
def test_t04_the_first_file_of_its_name_rotated_before_anyone_looked(
    tmp_path: Path,
    stopped: bool,  # noqa: FBT001
    again: bool,  # noqa: FBT001
    pattern: str,
) -> None:
    """A file that is created and renamed after the first scan is new, although nothing was read under its name."""
    append(tmp_path / "app.jsonl.2", b"history")
    os.utime(tmp_path / "app.jsonl.2", (0, 0))
    reader = Reader(tmp_path / pattern)
    assert reader.drain() == []
    if stopped:
        reader.stop()
    append(tmp_path / LIVE, *lines_of("first", 3))
    (tmp_path / LIVE).rename(tmp_path / "app.jsonl.1")
    if again:
        append(tmp_path / LIVE, *lines_of("second", 2))
    if stopped:
        reader.start()
    assert reader.settle() == lines_of("first", 3) + (lines_of("second", 2) if again else [])
