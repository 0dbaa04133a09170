"""Rotation, truncation and deletion: every line once, whenever and however a file is moved or begun anew."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.tail_reader import LIVE, Reader, append, copytruncate, lines_of, pack, rotate

from ragwatch.sources.tail.reader import DELETED_WAIT_SECONDS

HEADER = b'{"id":"header","answer":"' + b"h" * 2000 + b'"}'


def copied_away(path: Path) -> None:
    """As logrotate does with `copytruncate`, to a name that is none of a rotation."""
    copytruncate(path, path.with_name("copy"))


def emptied(path: Path) -> None:
    """As a service does that starts its log over."""
    path.write_bytes(b"")


def made_again(path: Path) -> None:
    """Deleted and created: where nobody holds the old file open, the new one soon gets the same inode."""
    inode = path.stat().st_ino
    for _ in range(50):
        path.unlink()
        path.touch()
        if path.stat().st_ino == inode:
            return
    pytest.skip("this file system does not use an inode again at once")


@pytest.mark.parametrize("stopped", [True, False])
@pytest.mark.parametrize(
    ("begin", "old", "new", "reset"),
    [
        (copied_away, lines_of("old", 20), lines_of("new", 2), "truncated"),
        (copied_away, lines_of("old", 5), lines_of("new", 5), "replaced"),
        (copied_away, lines_of("old", 5), lines_of("new", 50), "replaced"),
        (emptied, [HEADER, *lines_of("old", 5)], [HEADER, *lines_of("new", 9)], "replaced"),
        (made_again, lines_of("old", 5), lines_of("new", 5), "replaced"),
        (made_again, lines_of("old", 30), lines_of("new", 1), None),
    ],
    ids=["shorter", "of the same size", "longer", "with the same first line", "of the same inode", "beyond its size"],
)
def test_t05_t06_t07_t08_t23_new_content_under_the_same_name(  # noqa: PLR0917 - the columns of the table
    path: Path,
    reader: Reader,
    begin: Callable[[Path], None],
    old: list[bytes],
    new: list[bytes],
    reset: str | None,
    stopped: bool,
) -> None:
    """Read at once and from its first byte, under a stream of its own, and counted: neither size nor inode tell."""
    reader.reads(path, *old)
    with reader.away(stopped):
        begin(path)
        append(path, *new)
    assert reader.drain() == old + new
    assert reset is None or reader.resets == {reset: 1}
    assert reader.finish() == old + new
    assert len(set(reader.places)) == len(old + new)
    assert len(reader.cursors) == 1


def renamed(path: Path) -> None:
    """As logrotate does with `create`."""
    rotate(path)


def renamed_by_hand(path: Path) -> None:
    """To a name that no pattern matches."""
    path.rename(path.with_name("kept-by-hand"))


def compressed(path: Path) -> None:
    """Renamed and compressed at once."""
    pack(rotate(path))


def copied(path: Path) -> None:
    """As logrotate does with `copytruncate`."""
    copytruncate(path, path.with_name(f"{LIVE}.1"))


def copied_and_compressed(path: Path) -> None:
    """The same with `compress`."""
    copied(path)
    pack(path.with_name(f"{LIVE}.1"))


@pytest.mark.parametrize("pattern", ["*.jsonl", "*.jsonl*"])
@pytest.mark.parametrize("state", ["running", "stopped", "closed"])
@pytest.mark.parametrize("move", [renamed, renamed_by_hand, compressed, copied, copied_and_compressed])
def test_t03_t06_t24_unread_lines_are_read_where_they_went(
    tmp_path: Path, path: Path, move: Callable[[Path], None], state: str, pattern: str
) -> None:
    """Once, and before those of the new file where that is another; also of a file that was closed between reads."""
    read, unread, new = lines_of("read", 40), lines_of("unread", 20), lines_of("new", 30)
    append(path, *read)
    reader = Reader(tmp_path / pattern, read_bytes=100, open_files=1 if state == "closed" else 1000)
    reader.settle()
    other = lines_of("other", 9 if state == "closed" else 0)
    append(tmp_path / "other.jsonl", *other)
    reader.settle()
    with reader.away(state == "stopped"):
        append(path, *unread)
        move(path)
        append(path, *new)
    reader.step()
    reader.restart()  # also in the middle of the rest
    assert sorted(reader.finish()) == sorted(read + unread + new + other)
    if move in (renamed, renamed_by_hand) and pattern == "*.jsonl":
        assert [line for line in reader.lines if line not in other] == read + unread + new
    assert not reader.resets.keys() & {"truncated_unread", "deleted_unread"}


def test_t02_rename_and_create_while_running(tmp_path: Path, path: Path, reader: Reader) -> None:
    """Lines that are written to the old file after it was renamed are read, before those of the new file or later."""
    old, late, new = lines_of("old", 3), lines_of("late", 2), lines_of("new", 3)
    reader.reads(path, *old)
    rotate(path)
    append(path, *new)
    assert reader.reads(tmp_path / f"{LIVE}.1", *late) == old + late + new
    append(tmp_path / f"{LIVE}.1", b"later still")
    assert reader.settle() == [*old, *late, *new, b"later still"]
    assert reader.resets == {}


@pytest.mark.parametrize("stopped", [True, False])
def test_t04_two_renames_before_the_next_look(tmp_path: Path, path: Path, reader: Reader, stopped: bool) -> None:
    """Files that were created and rotated unseen are read whole, in order; rotations older than ragwatch are not."""
    append(tmp_path / f"{LIVE}.7", b"history")
    os.utime(tmp_path / f"{LIVE}.7", (1, 1))
    one, two, three, four = (lines_of(name, 2) for name in ("one", "two", "three", "four"))
    reader.reads(path, *one)
    with reader.away(stopped):
        append(path, *two)
        rotate(path)
        append(path, *three)
        rotate(path)
        append(path, *four)
        append(tmp_path / f"{LIVE}.audit", b"another log")
    assert reader.settle() == one + two + three + four


@pytest.mark.parametrize("pattern", [LIVE, "*.jsonl"])
@pytest.mark.parametrize("stopped", [True, False])
@pytest.mark.parametrize("second", [2, 0])
def test_t04_the_first_file_of_its_name_rotated_before_anyone_looked(
    tmp_path: Path,
    path: Path,
    second: int,
    stopped: bool,
    pattern: str,
) -> None:
    """A file that is created and renamed after the first scan is new, although nothing was read under its name."""
    append(tmp_path / f"{LIVE}.2", b"history")
    os.utime(tmp_path / f"{LIVE}.2", (0, 0))
    reader = Reader(tmp_path / pattern)
    assert reader.drain() == []
    with reader.away(stopped):
        append(path, *lines_of("first", 3))
        path.rename(tmp_path / f"{LIVE}.1")
        if second:
            append(path, *lines_of("second", second))
    assert reader.settle() == lines_of("first", 3) + lines_of("second", second)


def test_t12_partial_line_at_rotation(tmp_path: Path, path: Path) -> None:
    """The unterminated end of the old file is counted and never joined with the first line of the next file."""
    append(path, b"whole")
    append(path, b'{"id":"to', end=b"")
    reader = Reader(tmp_path / "app.jsonl*", rotate_wait_seconds=5)
    reader.drain()
    rotate(path)
    assert reader.reads(path, b'rn"}', b"next") == [b"whole", b'rn"}', b"next"]
    reader.settle(4.9)
    assert reader.reasons == []
    reader.settle(0.2)
    assert [(one.reason, Path(one.file).name, one.line) for one in reader.rejections] == [
        ("partial_at_rotation", f"{LIVE}.1", 2)
    ]
    reader.finish()
    append(tmp_path / f"{LIVE}.1", b'rn"}', b"after it")  # the rest of a line that was given up is no record
    assert reader.settle()[3:] == [b"after it"]
    assert len(reader.rejections) == 1


def test_t12_a_partial_line_completed_within_the_wait_is_a_line(tmp_path: Path, path: Path) -> None:
    """A line that is completed in the renamed file is read as one record."""
    append(path, b"half", end=b"")
    reader = Reader(path, rotate_wait_seconds=5)
    reader.drain()
    rotate(path)
    reader.settle(3)
    append(tmp_path / f"{LIVE}.1", b" and half")
    assert reader.settle() == [b"half and half"]
    assert reader.reasons == []


def test_cursors_of_files_that_are_gone_are_deleted(tmp_path: Path, path: Path, reader: Reader) -> None:
    """There are no more cursors than files in the directory, running and after a stop."""
    for turn in range(6):
        append(path, *lines_of(str(turn), 2))
        reader.settle()
        (tmp_path / f"{LIVE}.1").unlink(missing_ok=True)
        rotate(path)
    reader.settle()
    assert len(reader.cursors) <= 3
    with reader.away(stopped=True):
        (tmp_path / f"{LIVE}.1").unlink()
    assert len(reader.settle()) == 12
    assert reader.cursors == {}


def test_a_finished_file_that_grows_is_taken_up_again(tmp_path: Path, path: Path, reader: Reader) -> None:
    """A writer that never reopens its log is read at the next rotation at the latest."""
    reader.reads(path, b"one")
    rotate(path)
    append(path, b"two")
    reader.settle()
    append(tmp_path / f"{LIVE}.1", b"three")
    reader.settle()
    path.rename(tmp_path / f"{LIVE}.0")
    append(path, b"four")
    assert sorted(reader.settle()) == [b"four", b"one", b"three", b"two"]


def test_t33_modification_times_do_not_identify(path: Path, reader: Reader) -> None:
    """A file from the future, or from long ago, is still the same file."""
    for when in (0, 4_000_000_000, 1):
        append(path, b"%d" % when)
        os.utime(path, (when, when))
        reader.settle()
        reader.restart()
    assert reader.settle() == [b"0", b"4000000000", b"1"]
    assert reader.resets == {}


def said_of(reader: Reader) -> dict[str, str]:
    """What the source says about files at present."""
    return {Path(name).name: why for name, why in reader.source.lag().unreadable.items()}


def test_what_is_written_to_a_deleted_file_is_read_and_reported(path: Path) -> None:
    """At the second look that finds it larger, for as long as it goes on; however slowly, no line is lost."""
    reader = Reader(path, rotate_wait_seconds=5)
    reader.reads(path, b"before")
    with path.open("ab", buffering=0) as writer:
        path.unlink()
        reader.settle(1)
        assert said_of(reader) == {}
        writer.write(b"after\n")
        assert reader.settle(1)[-1] == b"after"
        assert "lsof +L1" in said_of(reader)[f"{LIVE} (deleted)"]
        reader.settle(600)
        writer.write(b"later\n")
        assert reader.settle(1)[-1] == b"later"
    append(path, b"new file")
    assert reader.settle(1)[-1] == b"new file"
    assert list(said_of(reader)) == [f"{LIVE} (deleted)"]
    reader.settle(DELETED_WAIT_SECONDS + 1)
    assert said_of(reader) == {}
    assert reader.reasons == []


def test_a_file_that_is_deleted_when_its_writer_is_done_is_nothing_to_report(path: Path) -> None:
    """Nor what was written before the deletion and read after it, nor a file that was renamed."""
    reader = Reader(path, rotate_wait_seconds=5)
    reader.reads(path, b"first")
    append(path, b"last")
    path.unlink()
    assert reader.settle(2)[-1] == b"last"
    assert said_of(reader) == {}
    reader.reads(path, b"of the next")
    moved = rotate(path)
    reader.settle(1)
    append(moved, b"still of the next")
    assert reader.settle(1)[-1] == b"still of the next"
    assert said_of(reader) == {}


def test_a_copy_with_the_inode_of_an_old_rotation(path: Path, reader: Reader) -> None:
    """Between two starts the rotation was deleted and the log saved by an editor, which got the inode: read once."""
    reader.reads(path, *lines_of("old", 9))
    rotated = rotate(path)
    reader.reads(path, *lines_of("new", 9))
    with reader.away(stopped=True):
        rotated.write_bytes(path.read_bytes())
        rotated.rename(path)
        append(path, b"late")
    assert reader.drain() == [*lines_of("old", 9), *lines_of("new", 9), b"late"]
    assert len(set(reader.places)) == 19
