"""Files that begin with the same header: none is taken for a copy of another."""

import os
import shutil
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest
from support.tail_reader import HEADER, LIVE, Reader, append, copytruncate, lines_of, pack, rotate


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("pattern", [LIVE, f"{LIVE}*"])
@pytest.mark.parametrize("read", [0, 5])
@pytest.mark.parametrize("stopped", [True, False])
def test_m4_rotated_unseen_with_a_known_header(
    tmp_path: Path,
    read: int,
    pattern: str,
    stopped: bool,
    packed: bool,
) -> None:
    """A file that was never seen under its first name is read whole, also where only the header is the same."""
    path = tmp_path / LIVE
    parts = [lines_of(name, 7) for name in "abc"]
    reader = Reader(tmp_path / pattern)
    reader.reads(path, HEADER, *parts[0][:read])
    with reader.away(stopped):
        append(path, *parts[0][read:])
        for part in parts[1:]:
            rotate(path)
            append(path, HEADER, *part)
        if packed:
            pack(tmp_path / f"{LIVE}.1")
    written = Counter([*chain(*parts), *[HEADER] * 3])
    assert Counter(reader.finish()) == written


@pytest.mark.parametrize("stopped", [True, False])
@pytest.mark.parametrize("read", [0, 1, 5])
def test_m4_between_copy_and_truncation(tmp_path: Path, path: Path, read: int, stopped: bool) -> None:
    """A copy of an existing file is not read, however little was read of that file, and is not lost later."""
    old, new = [HEADER, *lines_of("old", 9)], [HEADER, *lines_of("new", 3)]
    reader = Reader(path, read_bytes=150)
    reader.reads(path, *old[:read])
    append(path, *old[read:])
    reader.source._scanner.scan()
    whole = path.read_bytes()
    for size in (1, 60, len(whole) // 2, len(whole)):  # as far as the copy is when somebody looks
        (tmp_path / f"{LIVE}.1").write_bytes(whole[:size])
        if stopped:
            reader.restart()
        reader.source._scanner.scan()
    reader.step()
    with path.open("r+b") as file:
        file.truncate(0)
    append(path, *new)
    assert Counter(reader.finish()) == Counter(old + new)
    assert "truncated_unread" not in reader.resets


def test_m4_a_copy_that_somebody_keeps(tmp_path: Path, path: Path, reader: Reader) -> None:
    """The same bytes in two files that both stay are read once."""
    old = [HEADER, *lines_of("old", 9)]
    reader.reads(path, *old)
    shutil.copy(path, tmp_path / f"{LIVE}.old")
    reader.restart()
    reader.settle()
    append(path, b"new")
    rotate(path)
    append(path, b"newer")
    assert reader.finish() == [*old, b"new", b"newer"]


def test_m4_a_rotation_that_holds_no_more_than_the_header_yet(path: Path, reader: Reader) -> None:
    """A rotation that has only the header is read once its writer, which holds it open, continues."""
    reader.reads(path, HEADER, b"one")
    rotate(path)
    append(path, HEADER)
    unseen = rotate(path)
    append(path, HEADER, b"three")
    reader.settle()
    append(unseen, b"two")
    append(path, b"four")
    assert sorted([b"one", b"two", b"three", b"four", *[HEADER] * 3]) == sorted(reader.settle())


@pytest.mark.parametrize("regrown", [0, 5, 40])
@pytest.mark.parametrize("stopped", [True, False])
def test_m4_copytruncate_of_files_with_a_header(
    tmp_path: Path,
    path: Path,
    reader: Reader,
    stopped: bool,
    regrown: int,
) -> None:
    """Two truncations in a row, and only the header was read before: the rest of one copy, and all of the other."""
    parts = [[HEADER, *lines_of(name, count)] for name, count in (("a", 9), ("b", 5), ("c", regrown))]
    reader.reads(path, HEADER)
    with reader.away(stopped):
        append(path, *parts[0][1:])
        if not stopped:
            reader.source.lag()
        copytruncate(path, tmp_path / f"{LIVE}.2")
        append(path, *parts[1])
        copytruncate(path, tmp_path / f"{LIVE}.1")
        append(path, *parts[2])
    assert Counter(chain(*parts)) == Counter(reader.settle())
    assert "truncated_unread" not in reader.resets


@pytest.mark.costly
@pytest.mark.parametrize("rotations", [80, pytest.param(300, marks=pytest.mark.slow)])
def test_m4_many_rotations_unseen_beside_one_another(tmp_path: Path, path: Path, rotations: int) -> None:
    """Hundreds of files with the same header are told apart in one scan and read once, oldest first."""
    reader = Reader(path)
    reader.reads(path, HEADER, b"first")
    with reader.away(stopped=True):
        for number in range(rotations):
            path.rename(tmp_path / f"{LIVE}.{number:03}")
            append(path, HEADER, b"%d" % number)
    rest = [b"%d" % number for number in range(rotations)]
    assert sorted(reader.settle()) == sorted([HEADER] * (rotations + 1) + [b"first", *rest])


def test_truncated_before_more_than_the_header_was_read(path: Path, reader: Reader) -> None:
    """Without a copy, unread bytes after the header are counted as lost, once."""
    reader.reads(path, HEADER)
    append(path, *lines_of("old", 9))
    reader.source.lag()
    path.write_bytes(HEADER + b"\n")
    reader.settle()
    reader.restart()
    append(path, b"new")
    assert reader.settle() == [HEADER, b"new"]
    assert reader.resets["truncated_unread"] == 1


def test_space_that_a_writer_reserved_and_gave_back_is_no_loss(path: Path, reader: Reader) -> None:
    """A file that shrinks by NUL bytes alone was not truncated."""
    path.write_bytes(b"one\n" + bytes(5000))
    reader.settle()
    path.write_bytes(b"one\ntwo\n")
    assert reader.settle() == [b"one", b"two"]
    assert reader.resets == {}


def test_streams_that_begin_alike_have_names_of_their_own(path: Path) -> None:
    """Same inode, same first batch, cursor deleted in between: records without an id are still distinct."""
    reader = Reader(path, read_bytes=len(HEADER) + 1, rotate_wait_seconds=0)
    for number in range(30):
        append(path, HEADER, b"%d" % number)
        reader.settle()
        path.unlink()
        reader.settle()
    assert len(set(reader.places)) == 60


def test_the_same_size_and_time_are_no_proof_at_once(path: Path, reader: Reader) -> None:
    """Rewritten within the timestamp granularity: content counts as unchanged only after a second."""
    old, new = lines_of("old", 5), lines_of("new", 5)
    append(path, *old)
    times = path.stat().st_mtime_ns
    reader.drain()
    path.write_bytes(b"\n".join(new) + b"\n")
    os.utime(path, ns=(times, times))
    assert old + new == reader.settle()


def test_a_loss_is_counted_whatever_else_is_found(path: Path) -> None:
    """Truncated, rewritten and rotated, and then another file: that one is new, and no copy of the lost content."""
    append(path, *lines_of("old", 20))
    reader = Reader(path, read_bytes=100)
    reader.step()
    path.write_bytes(b"")
    append(path, *lines_of("new", 40))
    rotate(path)
    append(path, b"unseen")
    rotate(path)
    reader.settle()
    assert reader.settle()[-41:] == [*lines_of("new", 40), b"unseen"]
    assert reader.resets == {"replaced": 1, "truncated_unread": 1}
