"""Gzip-compressed rotations: unread lines are read from the compressed file, and nothing is read twice."""

from __future__ import annotations

import gzip
import os
from itertools import chain
from pathlib import Path

import pytest
from support.tail_reader import LIVE, Reader, append, lines_of, pack, rotate


@pytest.mark.parametrize("pattern", [LIVE, f"{LIVE}*"])
def test_t24_rotations_that_were_packed_unseen(tmp_path: Path, path: Path, pattern: str) -> None:
    """Files that were created, rotated and compressed while ragwatch was stopped are read whole, oldest first."""
    parts = [lines_of(name, 9) for name in ("a", "b", "c", "d")]
    reader = Reader(tmp_path / pattern)
    reader.reads(path, *parts[0][:5])
    with reader.away(stopped=True):
        append(path, *parts[0][5:])
        time = path.stat().st_mtime
        for part in parts[1:]:
            rotate(path)
            append(path, *part)
            time += 1
            os.utime(path, (time, time))
        pack(tmp_path / "app.jsonl.3")
        pack(tmp_path / "app.jsonl.2")
    lines = list(reader.settle())
    if pattern == LIVE:  # where rotated names match too, they are files of their own that take turns
        assert list(chain(*parts)) == lines
    reader.restart()
    assert sorted(chain(*parts)) == sorted(reader.settle())


@pytest.mark.parametrize("pattern", [LIVE, f"{LIVE}*"])
@pytest.mark.parametrize("count", [1, 30])
@pytest.mark.parametrize("stopped", [True, False])
def test_t24_packed_after_it_was_read(tmp_path: Path, path: Path, pattern: str, count: int, stopped: bool) -> None:
    """No line twice, however small the file, whenever it is compressed, and while both files exist."""
    append(path, *lines_of("old", count))
    reader = Reader(tmp_path / pattern)
    reader.settle()
    with reader.away(stopped):
        old = rotate(path)
        append(path, b"new")
    pack(old, keep=True)
    reader.settle()
    with reader.away(stopped):
        old.unlink()
    reader.settle()
    rotate(path)
    append(path, b"newest")
    assert reader.finish() == [*lines_of("old", count), b"new", b"newest"]


def test_t24_packed_while_it_is_read(tmp_path: Path, path: Path) -> None:
    """The open file is read to its end; its compressed copy waits until then, and has nothing new."""
    append(path, *lines_of("old", 50))
    reader = Reader(tmp_path / f"{LIVE}*", read_bytes=50)
    reader.step()
    pack(rotate(path))
    append(path, b"new")
    assert [*lines_of("old", 50), b"new"] == reader.settle()
    rotate(path)
    append(path, b"newer")
    assert reader.finish() == [*lines_of("old", 50), b"new", b"newer"]


def test_packed_files_alone(tmp_path: Path) -> None:
    """A directory of archives is read whole: members, padding, trailing garbage; resumed inside a file; appended to."""
    first, second = lines_of("first", 30), lines_of("second", 30)
    packed = tmp_path / "2026-01.jsonl.gz"
    parts = [gzip.compress(line + b"\n") for line in first]
    packed.write_bytes(b"".join(parts[:20]) + b"\0" * 300_000 + b"".join(parts[20:]) + b"\0" * 100 + b"garbage")
    (tmp_path / "2026-02.jsonl.gz").write_bytes(gzip.compress(b"\n".join(second) + b"\ntorn"))
    reader = Reader(tmp_path / "*.gz", read_bytes=70)
    while reader.step() is not None:
        reader.restart()
    assert sorted(first + second) == sorted(reader.settle())
    assert len(set(reader.places)) == 60
    assert reader.reasons == ["partial_at_rotation"]
    packed.write_bytes(packed.read_bytes().rstrip(b"garbage") + gzip.compress(b"appended\n"))
    assert reader.settle()[60:] == [b"appended"]
    assert reader.source.lag().size == 0


def test_packed_files_at_the_first_start(tmp_path: Path) -> None:
    """With `start: end` existing archives are skipped, for good; later ones are read."""
    (tmp_path / "old.jsonl.gz").write_bytes(gzip.compress(b"history\n"))
    reader = Reader(tmp_path / "*.gz", start="end")
    reader.settle()
    reader.restart()
    (tmp_path / "new.jsonl.gz").write_bytes(gzip.compress(b"news\n"))
    assert reader.settle() == [b"news"]
