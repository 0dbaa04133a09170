"""Rotation and truncation: every line once, whenever and however a file is moved."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from support.seeds import seeds
from support.tail_reader import Reader, append, copytruncate, lines_of

LIVE = "app.jsonl"
FIRST = b"first" * 20


class Writer:
    """A service with a log rotation of its own, acting at random. Remembers every complete line it wrote."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.path = folder / LIVE
        self.rng = rng
        self.complete: list[bytes] = []
        self.line = b""
        self.torn = 0
        self.abandoned = 0
        self.count = 0
        append(self.path)

    def write(self) -> None:
        """Some lines; the last may stay torn."""
        for _ in range(self.rng.randint(1, 5)):
            line = self.line
            if not self.torn:
                line = b'{"id":%d,"answer":"%s"}' % (self.count, b"x" * self.rng.choice((50, 53, 120, 3000)))
                self.count += 1
            rest = line[self.torn :]
            if self.rng.random() < 0.15 and len(rest) > 1:
                part = self.rng.randint(1, len(rest) - 1)
                append(self.path, rest[:part], end=b"")
                self.line, self.torn = line, self.torn + part
                return
            append(self.path, rest)
            self.torn = 0
            self.complete.append(line)

    def rename(self) -> None:
        """`create` rotation: names move up, the writer opens a new file; a torn line stays torn."""
        self._shift()
        self.path.rename(self.path.with_name(f"{LIVE}.1"))
        append(self.path)
        self.abandoned += bool(self.torn)
        self.torn = 0

    def copy(self) -> None:
        """`copytruncate` rotation between two lines."""
        if not self.torn:
            self._shift()
            copytruncate(self.path, self.path.with_name(f"{LIVE}.1"))

    def _shift(self) -> None:
        old = sorted(self.path.parent.glob(f"{LIVE}.*"), key=lambda path: -int(path.suffix[1:]))
        for path in old:
            path.rename(path.with_name(f"{LIVE}.{int(path.suffix[1:]) + 1}"))


@pytest.mark.uncounted
@pytest.mark.parametrize("seed", seeds(12, 80))
def test_t01_kills_at_random_lose_nothing_and_repeat_nothing(tmp_path: Path, seed: int) -> None:
    """However writing, rotation, kills (also between read and commit) and reading interleave: no line twice.

    Renames lose no line. (A rotated file that held nothing but one torn line may stay uncounted when the kill comes
    before the wait is over: nothing of it was ever committed.)
    """
    rng = random.Random(seed)
    writer = Writer(tmp_path, rng)
    reader = Reader(writer.path, read_bytes=rng.choice((200, 4000, 100_000)))
    append(writer.path, FIRST)
    reader.drain()
    rotations = [writer.rename] if seed % 2 else [writer.rename, writer.copy]
    for _ in range(150):
        action = rng.choices(("write", "step", "kill", "rotate", "pause", "drain"), (50, 25, 8, 6, 5, 6))[0]
        if action == "write":
            writer.write()
        elif action == "step":
            reader.step()
        elif action == "kill":
            reader.source.read()
            reader.restart()
        elif action == "rotate":
            rng.choice(rotations)()
        elif action == "pause":
            reader.now += rng.choice((0.1, 6.0))
        else:
            reader.drain()
    read, written = reader.settle(), [FIRST, *writer.complete]
    assert len(read) == len(set(read))
    assert len(reader.places) == len(set(reader.places))
    if writer.rename in rotations and len(rotations) == 1:
        assert set(written) == set(read)
        assert len(reader.reasons) <= writer.abandoned
    # With copytruncate: what was written and truncated away again before anything of it was read leaves no trace.
    assert set(read) <= set(written)
    assert {"partial_at_rotation"} >= set(reader.reasons)


def test_t02_rename_and_create_while_running(tmp_path: Path, path: Path, reader: Reader) -> None:
    """All lines once, also those written to the old file after it was renamed; the old file comes first."""
    old, late, new = lines_of("old", 3), lines_of("late", 2), lines_of("new", 3)
    append(path, *old)
    reader.drain()
    path.rename(tmp_path / "app.jsonl.1")
    append(path, *new)
    append(tmp_path / "app.jsonl.1", *late)
    assert old + late + new == reader.drain()
    append(tmp_path / "app.jsonl.1", b"later still")
    assert [*old, *late, *new, b"later still"] == reader.settle()
    assert reader.resets == {}


def test_t03_rename_and_create_while_stopped(tmp_path: Path, path: Path, reader: Reader) -> None:
    """Both files are read, the old one first, whatever its new name."""
    seen, old, new = lines_of("seen", 2), lines_of("old", 2), lines_of("new", 2)
    append(path, *seen)
    reader.drain()
    reader.stop()
    append(path, *old)
    path.rename(tmp_path / "archived-by-hand")
    append(path, *new)
    reader.start()
    assert seen + old + new == reader.drain()


@pytest.mark.parametrize("stopped", [True, False])
def test_t04_two_renames_before_the_next_look(tmp_path: Path, path: Path, reader: Reader, stopped: bool) -> None:  # noqa: FBT001
    """Files that were created and rotated unseen are read whole, in order; rotations older than ragwatch are not."""
    append(tmp_path / "app.jsonl.7", b"history")
    os.utime(tmp_path / "app.jsonl.7", (1, 1))
    one, two, three, four = (lines_of(name, 2) for name in ("one", "two", "three", "four"))
    append(path, *one)
    reader.drain()
    if stopped:
        reader.stop()
    append(path, *two)
    path.rename(tmp_path / "app.jsonl.2")
    append(path, *three)
    path.rename(tmp_path / "app.jsonl.1")
    append(path, *four)
    append(tmp_path / "app.jsonl.audit", b"another log")
    if stopped:
        reader.start()
    assert one + two + three + four == reader.settle()


def test_t05_copytruncate_and_the_file_stays_shorter(tmp_path: Path, path: Path, reader: Reader) -> None:
    """One reset, new lines once, under a new stream; the old stream's cursor goes."""
    old, new = lines_of("old", 20), lines_of("new", 2)
    append(path, *old)
    reader.drain()
    copytruncate(path, tmp_path / "copy")
    append(path, *new)
    assert old + new == reader.settle()
    assert reader.resets == {"truncated": 1}
    assert len({stream for stream, _ in reader.places}) == 2
    assert len(reader.cursors) == 1


@pytest.mark.parametrize("stopped", [True, False])
@pytest.mark.parametrize("size", ["same", "larger"])
def test_t06_copytruncate_then_regrown_past_the_offset(tmp_path: Path, path: Path, stopped: bool, size: str) -> None:  # noqa: FBT001
    """The bytes before the offset show the truncation, not the size. Read from the first byte, counted."""
    old = lines_of("old", 5)
    new = lines_of("new", 5 if size == "same" else 50)
    append(path, *old)
    reader = Reader(path)
    reader.drain()
    if stopped:
        reader.stop()
    copytruncate(path, tmp_path / "copy")
    append(path, *new)
    if stopped:
        reader.start()
    assert old + new == reader.drain()
    assert reader.resets == {"replaced": 1}


@pytest.mark.parametrize("stopped", [True, False])
def test_t06_unread_lines_go_on_in_the_copy(tmp_path: Path, path: Path, reader: Reader, stopped: bool) -> None:  # noqa: FBT001
    """What the truncation took away before it was read is read from the rotated copy, from where reading stopped."""
    read, unread, new = lines_of("read", 5), lines_of("unread", 5), lines_of("new", 30)
    append(path, *read)
    reader.drain()
    if stopped:
        reader.stop()
    append(path, *unread)
    copytruncate(path, tmp_path / "app.jsonl.1")
    append(path, *new)
    if stopped:
        reader.start()
    assert sorted(read + unread + new) == sorted(reader.settle())


@pytest.mark.parametrize("stopped", [True, False])
def test_t07_truncated_and_rewritten_with_the_same_first_line(path: Path, reader: Reader, stopped: bool) -> None:  # noqa: FBT001
    """A repeated header does not hide that the rest is new."""
    header = b'{"id":"header","answer":"' + b"h" * 2000 + b'"}'
    old, new = [header, *lines_of("old", 5)], [header, *lines_of("new", 9)]
    append(path, *old)
    reader.drain()
    if stopped:
        reader.stop()
    path.write_bytes(b"")
    append(path, *new)
    if stopped:
        reader.start()
    assert old + new == reader.drain()
    assert reader.resets == {"replaced": 1}


def test_t08_deleted_and_created_again_with_the_same_inode(path: Path, reader: Reader) -> None:
    """A new generation, although device, inode, name and size say that nothing happened."""
    old, new = lines_of("old", 5), lines_of("new", 5)
    append(path, *old)
    reader.drain()
    reader.stop()
    inode = path.stat().st_ino
    for _ in range(50):
        path.unlink()
        append(path, *new)
        if path.stat().st_ino == inode:
            break
    else:
        pytest.skip("this file system does not use an inode again at once")
    reader.start()
    assert old + new == reader.drain()
    assert reader.resets == {"replaced": 1}
    assert len(set(reader.places)) == 10


def test_t08_an_inode_that_comes_back_after_its_cursor_was_forgotten(path: Path) -> None:
    """The new stream has another name than the old one, so that records without an id stay apart."""
    inodes = []
    reader = Reader(path, rotate_wait_seconds=1)
    for name in ("a", "b", "c"):
        append(path, *lines_of(name, 3))
        inodes.append(path.stat().st_ino)
        reader.settle()
        path.unlink()
        reader.settle()
        append(path)
        reader.settle()
        path.unlink()
        reader.settle()
    assert len(set(reader.places)) == 9
    assert len(reader.cursors) <= 1
