"""Compressed files that are truncated, damaged, far too large, or change while they are read."""

from __future__ import annotations

import gzip
import os
import random
import tracemalloc
from pathlib import Path

import pytest
from support.tail_reader import LIVE, Reader, append, lines_of, pack, rotate

from ragwatch.errors import SourceError

pytestmark = pytest.mark.uncounted


@pytest.mark.parametrize("pattern", [LIVE, f"{LIVE}*"])
def test_t25_a_packed_file_that_is_not_complete(tmp_path: Path, path: Path, pattern: str) -> None:
    """Counted once it has not changed for a while; nothing of it is read before it is complete, then all is."""
    old = lines_of("old", 400)
    reader = Reader(tmp_path / pattern, rotate_wait_seconds=5)
    reader.reads(path, *old[:100])
    with reader.away(stopped=True):
        append(path, *old[100:])
        packed = pack(rotate(path))
        append(path, b"new")
        whole = packed.read_bytes()
        packed.write_bytes(whole[: len(whole) // 2])
    reader.settle(4)
    assert [*old[:100], b"new"] == reader.lines
    assert reader.resets["gz_truncated"] == 0
    assert str(packed) in reader.source.unreadable
    reader.settle(4)
    reader.settle(4)
    reader.restart()
    reader.settle()
    reader.settle()
    assert reader.resets["gz_truncated"] == 2
    packed.write_bytes(whole)
    assert sorted([*old, b"new"]) == sorted(reader.settle())
    assert reader.source.unreadable == {}


def test_t25_a_checksum_that_does_not_match(tmp_path: Path) -> None:
    """Nothing of a damaged file is read; it is counted once, and read when it has been repaired."""
    packed = tmp_path / "a.jsonl.gz"
    whole = gzip.compress(b"one\ntwo\n")
    packed.write_bytes(whole[:-8] + bytes(4) + whole[-4:])
    (tmp_path / "b.jsonl.gz").write_bytes(b"plain text\n")
    (tmp_path / "c.jsonl.gz").write_bytes(b"")
    reader = Reader(tmp_path / "*.gz")
    with pytest.raises(SourceError, match="incorrect data check"):
        reader.drain()
    reader.now += 9
    with pytest.raises(SourceError):
        reader.drain()
    assert reader.resets == {"gz_damaged": 2, "gz_truncated": 1}
    (tmp_path / "b.jsonl.gz").unlink()
    (tmp_path / "c.jsonl.gz").unlink()
    packed.write_bytes(whole)
    assert reader.settle() == [b"one", b"two"]


@pytest.mark.costly
def test_t25_a_bomb(tmp_path: Path) -> None:
    """A decompression bomb is refused early, in little memory, and counted."""
    packed = tmp_path / "a.jsonl.gz"
    with gzip.open(packed, "wb") as file:
        for _ in range(200):
            file.write(b"\n" * (1 << 20))
    append(tmp_path / "b.jsonl", b"one")
    reader = Reader(tmp_path / "*.jsonl*")
    tracemalloc.start()
    assert reader.settle() == [b"one"]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20
    assert reader.resets == {"gz_bomb": 1}
    assert "in" in reader.source.unreadable[str(packed)]


@pytest.mark.costly
def test_a_large_packed_file_in_little_memory(tmp_path: Path) -> None:
    """Only a window of the content is in memory, wherever reading begins."""
    packed = tmp_path / "a.jsonl.gz"
    rng = random.Random(3)
    with gzip.open(packed, "wb", compresslevel=1) as file:
        for number in range(40_000):
            file.write(b'{"id":%d,"text":"%s"}\n' % (number, rng.randbytes(300).hex().encode()))
    reader = Reader(packed, read_bytes=1 << 20)
    count = 0
    tracemalloc.start()
    while reader.step() is not None:
        count += len(reader.lines)
        reader.lines.clear()
        reader.places.clear()
        if rng.random() < 0.2:
            reader.restart()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 40_000
    assert peak < 16 << 20


def test_a_packed_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    """It is checked again before more of it is read: an appended member is read, other content is new."""
    packed = tmp_path / "a.jsonl.gz"
    old = lines_of("old", 30)
    packed.write_bytes(gzip.compress(b"\n".join(old) + b"\n"))
    reader = Reader(packed, read_bytes=100)
    reader.step()
    with packed.open("ab") as file:
        file.write(gzip.compress(b"appended\n"))
    with pytest.raises(SourceError, match="changed"):
        reader.drain()
    assert [*old, b"appended"] == reader.settle()
    assert reader.resets == {}


def test_a_packed_file_that_is_a_folder_or_fifo(tmp_path: Path) -> None:
    """Only regular files are opened, whatever the name and the directory."""
    append(tmp_path / LIVE, b"one")
    (tmp_path / f"{LIVE}.1.gz").mkdir()
    os.mkfifo(tmp_path / f"{LIVE}.2.gz")
    reader = Reader(tmp_path / LIVE)
    assert reader.settle() == [b"one"]
    (tmp_path / LIVE).rename(tmp_path / f"{LIVE}.3")
    append(tmp_path / LIVE, b"two")
    assert reader.settle() == [b"one", b"two"]
