"""Another file takes the place of a log while it is read: `sed -i`, an editor, rsync. Every line is read once."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.tail_reader import HEADER, LIVE, Reader, append, pack, rows

from ragwatch.sources.tail import content, source


def text(lines: list[bytes]) -> bytes:
    """The content of a file with these lines."""
    return b"".join(line + b"\n" for line in lines)


def copy_of(path: Path, *lines: bytes) -> Path:
    """A temporary file beside the log with its content, and further lines."""
    copy = path.with_name("temporary")
    shutil.copyfile(path, copy)
    append(copy, *lines)
    return copy


def renamed_over(path: Path, copy: Path) -> None:
    """As rsync, `sed -i`, and whoever writes a temporary file first."""
    copy.replace(path)


def after_a_backup(path: Path, copy: Path) -> None:
    """As `sed -i.bak` and Emacs."""
    path.rename(path.with_name(f"{path.name}.bak"))
    copy.rename(path)


def deleted_first(path: Path, copy: Path) -> None:
    """As `cp --remove-destination`."""
    path.unlink()
    copy.rename(path)


WAYS = pytest.mark.parametrize("put", [renamed_over, after_a_backup, deleted_first])
Put = Callable[[Path, Path], None]


@WAYS
@pytest.mark.parametrize("start", ["beginning", "end"])
@pytest.mark.parametrize("scan_seconds", [0, 1])
def test_a_copy_goes_on_with_the_lines_of_the_log(path: Path, put: Put, start: str, scan_seconds: int) -> None:
    """Several times, with new lines and without; nothing is counted as replaced, and a restart reads nothing again."""
    reader = Reader(path, start=start, scan_seconds=scan_seconds)
    reader.reads(path, *(written := rows("old", 5)))
    read = written if start == "beginning" else []
    for turn in range(4):
        put(path, copy_of(path, *(more := rows(f"turn{turn}", turn))))
        read += more
        reader.now += 2
        assert reader.drain() == read
        append(path, *(more := rows(f"after{turn}", 2)))
        read += more
        assert reader.settle(2 + 6 * (turn % 2)) == read
    reader.restart()
    assert reader.settle() == read
    assert (reader.resets, reader.reasons, len(set(reader.places))) == ({}, [], len(read))
    assert set(reader.files) == {LIVE}


def test_a_log_that_is_written_anew_with_every_record(tmp_path: Path, path: Path) -> None:
    """A service that replaces its log by a longer one, from its first record on, several times within a scan or not."""
    reader = Reader(path, scan_seconds=1)
    written = rows("r", 20)
    for count in range(1, 21):
        (tmp_path / "temporary").write_bytes(text(written[:count]))
        (tmp_path / "temporary").replace(path)
        reader.now += 0.4
        reader.drain()
    reader.settle()
    assert reader.settle() == written
    assert (reader.resets, len(reader.cursors)) == ({}, 1)


@pytest.mark.parametrize("put", [renamed_over, deleted_first])
def test_lines_that_the_tail_had_not_read_yet(tmp_path: Path, put: Put) -> None:
    """They are read once, in order, wherever a kill follows."""
    for steps in range(12):
        path = tmp_path / str(steps) / LIVE
        path.parent.mkdir()
        append(path, *rows("old", 9))
        reader = Reader(path, read_bytes=200)
        for _ in range(2):
            reader.step()
        put(path, copy_of(path, *rows("new", 3)))
        for _ in range(steps):
            reader.step()
        reader.read()
        reader.restart()
        assert reader.settle() == rows("old", 9) + rows("new", 3), steps
        assert reader.reasons == []


@pytest.mark.parametrize("reopened", [True, False])
@pytest.mark.parametrize("seen", [True, False])
def test_lines_that_came_after_the_copy_was_made(path: Path, reader: Reader, seen: bool, reopened: bool) -> None:
    """The old file has lines that the copy lacks, read before or not; its writer goes on there, or in the copy."""
    reader.reads(path, *(old := rows("old", 9)))
    with path.open("ab", buffering=0) as writer:
        copy = copy_of(path)
        append(path, *(late := rows("late", 2)))
        if seen:
            reader.drain()
        copy.replace(path)
        reader.drain()
        target = path.open("ab", buffering=0) if reopened else writer
        target.write(text(more := rows("more", 2)))
        target.close()
    assert reader.settle(20) == old + late + more
    reader.restart()
    append(path, *(last := rows("last", 2)))
    assert reader.settle() == old + late + more + last
    assert reader.resets.keys() <= {"replaced"}


def test_what_goes_on_in_both_files(path: Path, reader: Reader) -> None:
    """The writer holds the old file, and somebody else appends to the copy: all lines of both."""
    reader.reads(path, *(written := rows("old", 9)))
    with path.open("ab", buffering=0) as writer:
        copy_of(path).replace(path)
        for turn in range(3):
            append(path, *(one := rows(f"new{turn}", 2)))
            writer.write(text(other := rows(f"held{turn}", 2)))
            written += one + other
            assert sorted(reader.settle(1)) == sorted(written)
    assert reader.resets == {"replaced": 1}


def test_a_copy_in_the_making(path: Path, reader: Reader) -> None:
    """An editor that writes under the log's own name: the file is empty, then incomplete, whenever somebody looks."""
    reader.reads(path, *(written := rows("old", 9)))
    whole = path.read_bytes()
    path.unlink()
    for end in (0, 10, 100, 250, len(whole) - 1, len(whole)):
        path.write_bytes(whole[:end])
        assert reader.settle(0.1) == written
    append(path, *rows("new", 1))
    assert reader.settle() == written + rows("new", 1)
    assert (reader.resets, reader.reasons) == ({}, [])


@pytest.mark.parametrize("complete", [True, False])
def test_a_line_without_its_end(path: Path, reader: Reader, complete: bool) -> None:
    """The next copy has the rest of it: the line is read once, and not counted as torn, as with rsync of a live log."""
    *old, last = rows("old", 9)
    append(path, *old)
    append(path, last if complete else last[:20], end=b"")
    reader.drain()
    copy = copy_of(path)
    append(copy, b"" if complete else last[20:], *rows("new", 1))
    copy.replace(path)
    assert reader.finish() == [*old, last, *rows("new", 1)]
    assert (reader.resets, reader.reasons) == ({}, [])


def test_a_line_that_ends_in_the_old_file_alone(path: Path, reader: Reader) -> None:
    """Its writer holds the old file: the line is read there; what the copy has of it is no record yet."""
    append(path, *(old := rows("old", 9)))
    with path.open("ab", buffering=0) as writer:
        writer.write(b'{"id":"to')
        reader.drain()
        copy_of(path).replace(path)
        reader.drain()
        writer.write(b'rn"}\n')
        assert reader.settle() == [*old, b'{"id":"torn"}']
        writer.write(b'{"id":"tor')
        reader.settle()
    reader.settle(4000)
    assert (reader.resets, reader.reasons) == ({}, ["partial_at_rotation"])


@WAYS
@pytest.mark.parametrize("header", [True, False])
def test_other_content_is_read_from_its_beginning(tmp_path: Path, path: Path, put: Put, header: bool) -> None:
    """Nothing is lost; a log that was deleted for it is counted as replaced, once."""
    top = [HEADER] * header
    reader = Reader(path)
    reader.reads(path, *top, *rows("old", 1))
    append(tmp_path / "other", *top, *rows("new", 9))
    put(path, tmp_path / "other")
    assert reader.finish() == [*top, *rows("old", 1), *top, *rows("new", 9)]
    assert reader.resets == ({} if put is after_a_backup else {"replaced": 1})


def test_a_log_begun_anew_with_its_header_alone(tmp_path: Path) -> None:
    """A header is no copy of the log, whether or not the wait for more is over when the first record follows."""
    for seconds in (0, 1, 10):
        path = tmp_path / str(seconds) / LIVE
        path.parent.mkdir()
        reader = Reader(path)
        reader.reads(path, HEADER, *rows("old", 3))
        path.unlink()
        append(path, HEADER)
        reader.settle(seconds)
        append(path, *rows("new", 3))
        assert reader.settle() == [HEADER, *rows("old", 3), HEADER, *rows("new", 3)], seconds


def test_a_log_with_some_lines_changed(tmp_path: Path, path: Path, reader: Reader) -> None:
    """What stands before the first change is not read again; that the rest is, is counted."""
    reader.reads(path, *(old := rows("old", 9)))
    append(tmp_path / "edited", *old[:6], *old[7:])
    (tmp_path / "edited").replace(path)
    assert reader.settle() == old + old[7:]
    append(path, *rows("new", 1))
    reader.restart()
    assert reader.settle() == old + old[7:] + rows("new", 1)
    assert reader.resets == {"replaced": 1}


def test_a_log_with_lines_changed_and_none_longer(tmp_path: Path, path: Path, reader: Reader) -> None:
    """Redacted in place by `sed -i`: the tail goes on where it was, as it does when it was stopped meanwhile."""
    reader.reads(path, *(old := rows("old", 30)))
    (tmp_path / "edited").write_bytes(path.read_bytes().replace(b"old-15", b"xxx-15"))
    (tmp_path / "edited").replace(path)
    append(path, *rows("new", 1))
    assert reader.settle() == old + rows("new", 1)
    assert reader.resets == {}


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("lines", [[HEADER], [b"{}"]])
def test_a_log_that_was_rotated_with_nothing_but_its_header(
    tmp_path: Path,
    path: Path,
    reader: Reader,
    lines: list[bytes],
    packed: bool,
) -> None:
    """The next log begins with all that was in it. It is new: the old one lies beside it, compressed or not."""
    reader.reads(path, *lines)
    path.rename(tmp_path / f"{LIVE}.1")
    if packed:
        pack(tmp_path / f"{LIVE}.1")
    append(path, *lines, *rows("new", 1))
    assert reader.settle() == [*lines, *lines, *rows("new", 1)]
    assert reader.resets == {}


@pytest.mark.parametrize("late", [0, 2])
def test_a_replaced_log_was_closed(tmp_path: Path, late: int) -> None:
    """One file may be open: the old one was closed to save descriptors, and cannot be compared."""
    path = tmp_path / "a.jsonl"
    append(path, *(old := rows("a", 9)))
    reader = Reader(tmp_path / "*.jsonl", open_files=1)
    reader.settle()
    append(tmp_path / "b.jsonl", *rows("b", 9))
    reader.settle()
    append(path, *(more := rows("late", late)))
    copy_of(path, *rows("new", 1)).replace(path)
    assert reader.finish() == [*old, *rows("b", 9), *more, *rows("new", 1)]
    assert reader.resets == {}


def test_the_old_file_stays_open_until_it_was_compared(path: Path) -> None:
    """No wait for files that have left, and much to read: the comparison is not made too late."""
    append(path, *(old := rows("old", 40)))
    reader = Reader(path, read_bytes=200, scan_seconds=1, rotate_wait_seconds=0)
    reader.step()
    copy_of(path, *rows("new", 2)).replace(path)
    while reader.step() is not None:
        reader.now += 0.3
    assert reader.settle() == old + rows("new", 2)
    assert reader.resets == {}


def test_the_new_file_is_gone_before_it_was_compared(tmp_path: Path, path: Path) -> None:
    """It was rotated while the old one was still being read: it is open, and nothing of it is lost or read twice."""
    append(path, *(old := rows("old", 9)))
    reader = Reader(path, read_bytes=200)
    reader.step()
    copy_of(path, *rows("new", 2)).replace(path)
    reader.step()
    path.rename(tmp_path / f"{LIVE}.1")
    append(path, *rows("newest", 2))
    reader.step()
    (tmp_path / f"{LIVE}.1").unlink()
    assert reader.settle() == old + rows("new", 2) + rows("newest", 2)
    assert reader.resets == {}


def test_long_logs_are_compared_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the first difference is does not depend on how much is read at once, nor on whether lines are counted."""
    monkeypatch.setattr(source, "CHUNK_BYTES", 50)
    for lines in (content.MAX_COUNTED_BYTES, 100):
        monkeypatch.setattr(content, "MAX_COUNTED_BYTES", lines)
        (tmp_path / str(lines)).mkdir()
        path = tmp_path / str(lines) / LIVE
        test_a_log_with_some_lines_changed(path.parent, path, Reader(path))


def test_a_copy_that_was_rotated_before_it_was_seen(tmp_path: Path, path: Path, reader: Reader) -> None:
    """Saved in an editor and rotated within one look: of the rotation, the lines are read that the log did not have."""
    reader.reads(path, *(old := rows("old", 9)))
    copy_of(path, *rows("new", 2)).replace(path)
    path.rename(tmp_path / f"{LIVE}.1")
    append(path, *rows("newest", 2))
    assert reader.finish() == old + rows("new", 2) + rows("newest", 2)
    assert reader.resets == {"replaced": 1}


@pytest.mark.parametrize("other", ["a.jsonl", "z.jsonl", "app.tmp"])
def test_its_inode_went_to_another_file_while_nobody_looked(tmp_path: Path, path: Path, other: str) -> None:
    """As rsync does with two logs while ragwatch is stopped: the second copy gets the inode of the first old file."""
    append(path, *(old := rows("old", 9)))
    reader = Reader(tmp_path / "*.jsonl")
    reader.settle()
    with reader.away(stopped=True):
        copy = copy_of(path, *rows("new", 2))
        path.rename(tmp_path / other)
        (tmp_path / other).write_bytes(text(rows("other", 3)))
        copy.rename(path)
    written = [*old, *rows("new", 2), *(rows("other", 3) if other.endswith(".jsonl") else ())]
    assert sorted(reader.settle()) == sorted(written)
    reader.restart()
    assert (len(reader.settle()), reader.resets) == (len(written), {})


def test_a_closed_log_was_deleted_and_its_inode_went_to_another_file(tmp_path: Path) -> None:
    """One file may be open, so the inode was free; the log that was begun anew has an equal header, and is all new."""
    path = tmp_path / "a.jsonl"
    append(path, HEADER, *rows("old", 1))
    reader = Reader(tmp_path / "*.jsonl", open_files=1, scan_seconds=1)
    reader.settle()
    append(tmp_path / "b.jsonl", *rows("b", 9))
    reader.settle()
    path.rename(tmp_path / "c.jsonl")
    (tmp_path / "c.jsonl").write_bytes(text(rows("c", 9)))
    append(path, HEADER, *rows("new", 3))
    written = [HEADER, *rows("old", 1), *rows("b", 9), *rows("c", 9), HEADER, *rows("new", 3)]
    assert sorted(reader.settle()) == sorted(written)
