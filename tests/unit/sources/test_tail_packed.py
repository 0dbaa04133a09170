"""Gzip-compressed rotations: unread lines are read from the compressed file, and nothing is read twice.

They may be truncated, damaged, far too large, or change while they are read.
"""

import gzip
import os
import random
import tracemalloc
from itertools import chain
from pathlib import Path

import pytest
from support.tail_reader import LIVE, Reader, append, lines_of, pack, rotate

from ragwatch.errors import SourceError


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


@pytest.mark.uncounted
@pytest.mark.costly
def test_t25_a_bomb(tmp_path: Path) -> None:
    """A decompression bomb is refused early, in little memory, and counted."""
    packed = tmp_path / "a.jsonl.gz"
    with gzip.open(packed, "wb") as file:
        for _ in range(100):
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


@pytest.mark.uncounted
@pytest.mark.costly
def test_a_large_packed_file_in_little_memory(tmp_path: Path) -> None:
    """Only a window of the content is in memory, wherever reading begins."""
    packed = tmp_path / "a.jsonl.gz"
    rng = random.Random(3)
    with gzip.open(packed, "wb", compresslevel=1) as file:
        for number in range(30_000):
            file.write(b'{"id":%d,"text":"%s"}\n' % (number, rng.randbytes(300).hex().encode()))
    reader = Reader(packed, read_bytes=1 << 20)
    count = 0
    tracemalloc.start()
    while reader.step() is not None:
        count += len(reader.lines)
        reader.lines.clear()
        reader.places.clear()
        if rng.random() < 0.1:
            reader.restart()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 30_000
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
