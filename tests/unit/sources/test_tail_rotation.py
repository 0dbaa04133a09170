"""Rotation and truncation: every line once, whoever moves the file and whenever."""

from __future__ import annotations

import gzip
import os
import random
from pathlib import Path

import pytest
from tail_reader import Reader, append, copytruncate, lines_of

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


@pytest.mark.parametrize("seed", range(40))
def test_t01_kills_at_random_lose_nothing_and_repeat_nothing(tmp_path: Path, seed: int) -> None:
    """However writing, rotation, kills (also between read and commit) and reading fall together: no line twice.

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


def test_t02_rename_and_create_while_running(tmp_path: Path) -> None:
    """All lines once, also those written to the old file after it was renamed; the old file comes first."""
    path = tmp_path / LIVE
    old, late, new = lines_of("old", 3), lines_of("late", 2), lines_of("new", 3)
    append(path, *old)
    reader = Reader(path)
    reader.drain()
    path.rename(tmp_path / "app.jsonl.1")
    append(path, *new)
    append(tmp_path / "app.jsonl.1", *late)
    assert old + late + new == reader.drain()
    append(tmp_path / "app.jsonl.1", b"later still")
    assert [*old, *late, *new, b"later still"] == reader.settle()
    assert reader.resets == {}


def test_t03_rename_and_create_while_stopped(tmp_path: Path) -> None:
    """Both files are read, the old one first, whatever its new name."""
    path = tmp_path / LIVE
    seen, old, new = lines_of("seen", 2), lines_of("old", 2), lines_of("new", 2)
    append(path, *seen)
    reader = Reader(path)
    reader.drain()
    reader.stop()
    append(path, *old)
    path.rename(tmp_path / "archived-by-hand")
    append(path, *new)
    reader.start()
    assert seen + old + new == reader.drain()


@pytest.mark.parametrize("stopped", [True, False])
def test_t04_two_renames_before_the_next_look(tmp_path: Path, stopped: bool) -> None:  # noqa: FBT001
    """Files that were created and rotated unseen are read whole, in order; rotations older than ragwatch are not."""
    path = tmp_path / LIVE
    append(tmp_path / "app.jsonl.7", b"history")
    os.utime(tmp_path / "app.jsonl.7", (1, 1))
    one, two, three, four = (lines_of(name, 2) for name in ("one", "two", "three", "four"))
    append(path, *one)
    reader = Reader(path)
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


def test_t05_copytruncate_and_the_file_stays_shorter(tmp_path: Path) -> None:
    """One reset, new lines once, under a new stream; the old stream's cursor goes."""
    path = tmp_path / LIVE
    old, new = lines_of("old", 20), lines_of("new", 2)
    append(path, *old)
    reader = Reader(path)
    reader.drain()
    copytruncate(path, tmp_path / "copy")
    append(path, *new)
    assert old + new == reader.settle()
    assert reader.resets == {"truncated": 1}
    assert len({stream for stream, _ in reader.places}) == 2
    assert len(reader.cursors) == 1


@pytest.mark.parametrize("stopped", [True, False])
@pytest.mark.parametrize("size", ["same", "larger"])
def test_t06_copytruncate_then_regrown_past_the_offset(tmp_path: Path, stopped: bool, size: str) -> None:  # noqa: FBT001
    """Size alone cannot tell: the bytes before the offset do. Read from the first byte, counted."""
    path = tmp_path / LIVE
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
def test_t06_unread_lines_go_on_in_the_copy(tmp_path: Path, stopped: bool) -> None:  # noqa: FBT001
    """What the truncation took away before it was read is read from the rotated copy, from where reading stopped."""
    path = tmp_path / LIVE
    read, unread, new = lines_of("read", 5), lines_of("unread", 5), lines_of("new", 30)
    append(path, *read)
    reader = Reader(path)
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
def test_t07_truncated_and_rewritten_with_the_same_first_line(tmp_path: Path, stopped: bool) -> None:  # noqa: FBT001
    """A repeated header does not hide that the rest is new."""
    path = tmp_path / LIVE
    header = b'{"id":"header","answer":"' + b"h" * 2000 + b'"}'
    old, new = [header, *lines_of("old", 5)], [header, *lines_of("new", 9)]
    append(path, *old)
    reader = Reader(path)
    reader.drain()
    if stopped:
        reader.stop()
    path.write_bytes(b"")
    append(path, *new)
    if stopped:
        reader.start()
    assert old + new == reader.drain()
    assert reader.resets == {"replaced": 1}


def test_t08_deleted_and_created_again_with_the_same_inode(tmp_path: Path) -> None:
    """A new generation, although device, inode, name and size say that nothing happened."""
    path = tmp_path / LIVE
    old, new = lines_of("old", 5), lines_of("new", 5)
    append(path, *old)
    reader = Reader(path)
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


def test_t08_an_inode_that_comes_back_after_its_cursor_was_forgotten(tmp_path: Path) -> None:
    """The new stream has another name than the old one, so that records without an id stay apart."""
    path = tmp_path / LIVE
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


def test_t12_partial_line_at_rotation(tmp_path: Path) -> None:
    """The rest of the old file is counted and never glued to the first line of the next one."""
    path = tmp_path / LIVE
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


def test_t12_a_partial_line_completed_within_the_wait_is_a_line(tmp_path: Path) -> None:
    """A writer that finishes its line in the renamed file is not cut short."""
    path = tmp_path / LIVE
    append(path, b"half", end=b"")
    reader = Reader(path, rotate_wait_seconds=5)
    reader.drain()
    path.rename(tmp_path / "app.jsonl.1")
    reader.settle(3)
    append(tmp_path / "app.jsonl.1", b" and half")
    assert reader.settle() == [b"half and half"]
    assert reader.reasons == []


def test_t12_the_end_of_a_line_given_up_is_no_record(tmp_path: Path) -> None:
    """When the rest of a counted partial line arrives after all, it is dropped; lines behind it are read."""
    path = tmp_path / LIVE
    append(path, b"half", end=b"")
    reader = Reader(tmp_path / "app.jsonl*", rotate_wait_seconds=5)
    reader.drain()
    path.rename(tmp_path / "app.jsonl.1")
    reader.settle()
    reader.settle()
    append(tmp_path / "app.jsonl.1", b" and half", b"whole")
    assert reader.settle() == [b"whole"]
    assert reader.reasons == ["partial_at_rotation"]


def test_t23_offset_beyond_the_size_at_start(tmp_path: Path) -> None:
    """A reset, not silence until the file outgrows its old size."""
    path = tmp_path / LIVE
    old, new = lines_of("old", 30), lines_of("new", 1)
    append(path, *old)
    reader = Reader(path)
    reader.drain()
    reader.stop()
    path.unlink()
    path.write_bytes(b"")
    append(path, *new)
    reader.start()
    assert old + new == reader.drain()
    assert len(set(reader.places)) == 31


def test_cursors_of_files_that_are_gone_are_deleted(tmp_path: Path) -> None:
    """The table of cursors stays as small as the folder, running and after a stop."""
    path = tmp_path / LIVE
    reader = Reader(path)
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


def test_a_deleted_file_is_read_to_its_end(tmp_path: Path) -> None:
    """What was written before the deletion, and through the writer's open handle after it, is not lost."""
    path = tmp_path / LIVE
    with path.open("ab", buffering=0) as writer:
        writer.write(b"one\n")
        reader = Reader(path)
        reader.drain()
        writer.write(b"two\n")
        path.unlink()
        reader.drain()
        writer.write(b"three\n")
        assert reader.settle() == [b"one", b"two", b"three"]


def test_t24_a_rotation_that_is_compressed_later(tmp_path: Path) -> None:
    """The compressed copy of a file that was read is not read again, and the file's cursor goes with it."""
    path = tmp_path / LIVE
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


def test_t33_modification_times_do_not_identify(tmp_path: Path) -> None:
    """A file from the future, or from long ago, is still the same file."""
    path = tmp_path / LIVE
    reader = Reader(path)
    for when in (0, 4_000_000_000, 1):
        append(path, b"%d" % when)
        os.utime(path, (when, when))
        reader.settle()
        reader.restart()
    assert reader.settle() == [b"0", b"4000000000", b"1"]
    assert reader.resets == {}
