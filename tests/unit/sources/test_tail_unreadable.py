"""Failing disks, files that cannot be opened or read, directories without access, names that are no text."""

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.tail_reader import Reader, append, lines_of, rotate

from ragwatch.errors import SourceError
from ragwatch.statistics.snapshot import Lag


def failing(monkeypatch: pytest.MonkeyPatch, hurts: Callable[[int, int], bool]) -> set[int]:
    """Inodes of which a read of that size and offset may fail, as with a bad sector or a lost network share."""
    inodes: set[int] = set()
    pread = os.pread

    def read(fd: int, size: int, offset: int) -> bytes:
        if os.fstat(fd).st_ino in inodes and hurts(size, offset):
            raise OSError(errno.EIO, "Input/output error")
        return pread(fd, size, offset)

    monkeypatch.setattr(os, "pread", read)
    return inodes


@pytest.fixture
def bad(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Inodes whose bytes cannot be read."""
    return failing(monkeypatch, lambda *_: True)


@pytest.fixture
def scratched(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Inodes of which only the first byte can be read."""
    return failing(monkeypatch, lambda size, offset: size > 1 or offset > 0)


def descriptors() -> int:
    """Count the open descriptors of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_file_that_cannot_be_read_holds_no_more_descriptors(path: Path, reader: Reader, bad: set[int]) -> None:
    """Each scan opens the file again and closes it when that fails; reading continues once it can be read."""
    reader.reads(path, b"one")
    bad.add(path.stat().st_ino)
    append(path, b"two")
    before = descriptors()
    for _ in range(9):
        reader.now += 1
        with pytest.raises(SourceError, match="Input/output error"):
            reader.step()
    assert descriptors() <= before
    bad.clear()
    assert reader.drain() == [b"one", b"two"]


@pytest.mark.parametrize("name", ["bad.jsonl", "good.jsonl.1", "bad.jsonl.2026-01-01"])
def test_a_file_that_cannot_be_read_stops_no_other(tmp_path: Path, bad: set[int], name: str) -> None:
    """Whatever its name: other files are read, it is reported as unreadable, and it is read once it can be."""
    good, log = tmp_path / "good.jsonl", tmp_path / name
    append(good, b"first")
    append(log, *lines_of("s", 9))
    bad.add(log.stat().st_ino)
    reader = Reader(tmp_path / "*.jsonl*")
    before = descriptors()
    for round_ in range(9):
        append(good, b"%d" % round_)
        reader.now += 1
        reader.drain()
    assert reader.lines[-9:] == [b"%d" % round_ for round_ in range(9)]
    assert reader.unreadable == {name}
    assert descriptors() <= before + 1
    bad.clear()
    reader.drain()
    append(log, b"new")
    assert [*lines_of("s", 9), b"new"] == [
        line for line, file in zip(reader.settle(), reader.files, strict=True) if file == name
    ]


def test_a_bad_sector_after_the_first_bytes(tmp_path: Path, scratched: set[int]) -> None:
    """A file that opens, but cannot be searched for its last line, stops no other file and is not read whole."""
    good, log = tmp_path / "good.jsonl", tmp_path / "failing.jsonl"
    append(good, b"first")
    append(log, *lines_of("s", 9))
    scratched.add(log.stat().st_ino)
    reader = Reader(tmp_path / "*.jsonl", start="end")
    reader.drain()
    append(good, b"new")
    before = descriptors()
    for _ in range(9):
        reader.now += 1
        reader.drain()
    assert (reader.lines, descriptors()) == ([b"new"], before)
    assert reader.unreadable == {"failing.jsonl"}


def test_a_rotation_that_cannot_be_read_stops_no_other(path: Path, reader: Reader, bad: set[int]) -> None:
    """It was renamed while ragwatch was stopped: the new log at its path is read, and the rotation once it can be."""
    reader.reads(path, b"one")
    with reader.away(stopped=True):
        append(path, b"two")
        moved = rotate(path)
        append(path, b"three")
        bad.add(moved.stat().st_ino)
    reader.settle()
    assert reader.lines == [b"one", b"three"]
    bad.clear()
    assert sorted(reader.settle()) == sorted([b"one", b"three", b"two"])


@pytest.mark.parametrize("pattern", ["open/*.jsonl", "open/link.jsonl", "shut/*/*.jsonl", "shut/deep/app.jsonl"])
def test_a_directory_without_access_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    """Links into a directory of another user, as with pods and containers, are reported as unreadable."""
    shut, link = tmp_path / "shut", tmp_path / "open" / "link.jsonl"
    (shut / "deep").mkdir(parents=True)
    link.parent.mkdir()
    link.symlink_to(shut / "deep" / "app.jsonl")
    append(shut / "deep" / "app.jsonl", b"one")
    stat, scandir = os.stat, os.scandir
    closed = True

    def denied(name: object) -> bool:
        return closed and os.fspath(name).startswith((str(shut), str(link)))

    def look(name: object, **how: object) -> os.stat_result:
        if isinstance(name, str) and denied(name) and how.get("follow_symlinks", True) and name != str(shut):
            raise PermissionError(errno.EACCES, "Permission denied")
        return stat(name, **how)

    def listed(name: object) -> object:
        if isinstance(name, str) and denied(name):
            raise PermissionError(errno.EACCES, "Permission denied")
        return scandir(name)

    monkeypatch.setattr(os, "stat", look)
    monkeypatch.setattr(os, "scandir", listed)
    reader = Reader(tmp_path / pattern)
    with pytest.raises(SourceError, match="Permission denied"):
        reader.step()
    assert reader.source.lag() == Lag(0, None, reader.source.unreadable)
    assert set(reader.source.lag().unreadable.values()) == {"Permission denied"}
    closed = False
    assert reader.drain() == [b"one"]


@pytest.mark.parametrize("pattern", ["nowhere/*.jsonl", "file/*.jsonl", "file/app.jsonl", "*.jsonl", "dangling"])
def test_a_missing_file_is_no_error(tmp_path: Path, pattern: str) -> None:
    """A service that has not started has no log."""
    append(tmp_path / "file", b"one")
    (tmp_path / "dangling").symlink_to(tmp_path / "missing")
    reader = Reader(tmp_path / pattern)
    assert (reader.drain(), reader.source.unreadable) == ([], {})


@pytest.mark.parametrize("emptied", [True, False])
def test_a_copy_with_a_bad_sector_stops_no_other(tmp_path: Path, scratched: set[int], *, emptied: bool) -> None:
    """It opens, and fails when it is compared with what was read: other files are read, and it is reported."""
    path, other = tmp_path / "app.jsonl", tmp_path / "other.jsonl"
    append(path, *lines_of("old", 200))
    reader = Reader(tmp_path / "*.jsonl")
    reader.reads(other, b"first")
    copy = tmp_path / "app.jsonl.1"
    copy.write_bytes(path.read_bytes())
    scratched.add(copy.stat().st_ino)
    if emptied:
        path.write_bytes(b"")
    append(path, b"new")
    before, rounds = descriptors(), [b"%d" % number for number in range(9)]
    named = set()
    for line in rounds:
        append(other, line)
        reader.now += 1
        reader.drain()
        named |= reader.unreadable
    assert [line for line in reader.lines if line in rounds] == rounds
    assert (b"new" in reader.lines, named, descriptors() <= before) == (True, {"app.jsonl.1"}, True)


def test_a_finished_file_with_a_bad_sector_stops_no_other(path: Path, reader: Reader, scratched: set[int]) -> None:
    """A rotation that was read to its end and has grown is checked again, and compared with new files."""
    reader.reads(path, *lines_of("old", 200))
    moved = rotate(path)
    append(path, b"one")
    reader.settle()
    scratched.add(moved.stat().st_ino)
    append(moved, b"late")
    rotate(path)
    append(path, b"two")
    reader.settle()
    assert reader.lines[-2:] == [b"one", b"two"]
    assert reader.unreadable == {"app.jsonl.2"}
    scratched.clear()
    append(path, b"three")
    assert {b"late", b"three"} <= set(reader.settle())


BAD = os.fsdecode(b"caf\xe9.jsonl")


@pytest.mark.parametrize("pattern", ["*.jsonl", "**/*.jsonl*"])
@pytest.mark.parametrize("start", ["beginning", "end"])
def test_a_name_that_is_not_utf8_stops_no_other(tmp_path: Path, pattern: str, start: str) -> None:
    """It cannot be stored in a cursor. It is named, escaped, and its rotations are not read either; others are."""
    reader = Reader(tmp_path / pattern, start=start)
    reader.drain()
    append(tmp_path / BAD, b"one")
    append(tmp_path / "good.jsonl", b"first")
    (tmp_path / os.fsdecode(b"\xff")).mkdir()
    append(tmp_path / os.fsdecode(b"\xff") / "app.jsonl", b"one")
    names = {r"caf\xe9.jsonl"} | ({"app.jsonl"} if "**" in pattern else set())
    assert reader.settle() == [b"first"]
    assert reader.unreadable == names
    assert set(reader.source.unreadable.values()) == {"its name is not UTF-8; rename it"}
    rotate(tmp_path / BAD)
    append(tmp_path / BAD, b"two")
    append(tmp_path / "good.jsonl", b"second")
    assert reader.settle() == [b"first", b"second"]
    reader.restart()
    (tmp_path / BAD).rename(tmp_path / "cafe.jsonl")
    (tmp_path / f"{BAD}.1").unlink()
    assert reader.settle() == [b"first", b"second", b"two"]
    assert (reader.resets, reader.unreadable) == ({}, names - {r"caf\xe9.jsonl"})


def test_a_name_that_is_not_utf8_alone(tmp_path: Path) -> None:
    """With no other file, the source says what is wrong; it goes on once the file is gone and another one is there."""
    append(tmp_path / BAD, b"one")
    reader = Reader(tmp_path / "*.jsonl")
    with pytest.raises(SourceError, match=r"caf\\xe9.jsonl: its name is not UTF-8; rename it$"):
        reader.drain()
    (tmp_path / BAD).unlink()
    assert reader.reads(tmp_path / "good.jsonl", b"first") == [b"first"]
    assert reader.source.unreadable == {}


def test_a_link_to_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    """The link's own name does not help: cursors hold the path of the file itself."""
    (tmp_path / "elsewhere").mkdir()
    target = tmp_path / "elsewhere" / BAD
    append(target, b"one")
    (tmp_path / "link.jsonl").symlink_to(target)
    append(tmp_path / "good.jsonl", b"first")
    reader = Reader(tmp_path / "*.jsonl")
    assert reader.settle() == [b"first"]
    assert reader.unreadable == {r"caf\xe9.jsonl"}
    rotate(target)
    append(target, b"two")
    assert reader.settle() == [b"first"]


def test_a_log_that_gets_a_name_that_is_not_utf8(tmp_path: Path, path: Path) -> None:
    """It is read to its end, and named; what is written to it afterwards is read once it has a good name again."""
    append(tmp_path / "other.jsonl", b"other")
    reader = Reader(tmp_path / "*.jsonl")
    reader.reads(path, *lines_of("a", 9))
    append(path, b"late")
    path.rename(tmp_path / BAD)
    assert reader.settle()[10:] == [b"late"]
    assert reader.unreadable == {r"caf\xe9.jsonl"}
    reader.restart()
    append(tmp_path / BAD, b"later")
    reader.settle()
    (tmp_path / BAD).rename(path)
    assert reader.settle()[10:] == [b"late", b"later"]


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    """No file can be opened: no descriptor is left but the one that lists directories."""
    free = os.open("/", os.O_RDONLY)
    os.close(free)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, hard))
    hog = os.open("/", os.O_RDONLY)
    try:
        yield
    finally:
        os.close(hog)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def unopenable(reader: Reader) -> None:
    """Scan while no file can be opened."""
    with no_descriptor_left():
        reader.source._scanner.scan()


def test_t20_a_file_that_cannot_be_opened_for_a_while(path: Path, reader: Reader) -> None:
    """It is reported, and nothing is lost once it can be opened."""
    append(path, b"one")
    with no_descriptor_left(), pytest.raises(SourceError):
        reader.drain()
    assert reader.reads(path, b"two") == [b"one", b"two"]


def test_deleted_before_it_could_be_opened(tmp_path: Path) -> None:
    """A file that was seen and never opened is counted when it is deleted, and read when it was only renamed."""
    reader = Reader([str(tmp_path / f"{name}.jsonl") for name in "abc"])
    reader.drain()
    append(tmp_path / "a.jsonl", b"one")
    append(tmp_path / "b.jsonl", b"two")
    append(tmp_path / "c.jsonl")
    unopenable(reader)
    assert len(reader.source.unreadable) == 3
    (tmp_path / "a.jsonl").unlink()
    (tmp_path / "b.jsonl").rename(tmp_path / "b.jsonl.1")
    (tmp_path / "c.jsonl").unlink()
    assert reader.settle() == [b"two"]
    assert reader.resets == {"deleted_unread": 1}


def test_what_could_not_be_opened_waits_for_its_folder(tmp_path: Path) -> None:
    """While the directory cannot be listed nothing is counted; once it can be, the file is read."""
    folder, away = tmp_path / "logs", tmp_path / "away"
    folder.mkdir()
    append(folder / "a.jsonl", b"one")
    reader = Reader(folder / "a.jsonl")
    unopenable(reader)
    assert len(reader.source.unreadable) == 1
    folder.rename(away)
    folder.symlink_to(folder)
    with pytest.raises(SourceError, match="symbolic links"):
        reader.settle()
    folder.unlink()
    away.rename(folder)
    assert reader.settle() == [b"one"]
    assert reader.resets == {}


@pytest.mark.parametrize("new", [[], [b"two"]])
def test_renamed_by_hand_before_it_could_be_opened(
    tmp_path: Path, path: Path, reader: Reader, new: list[bytes]
) -> None:
    """Whatever its name is now, it is tried at every scan, and read in the end; nothing is counted as lost."""
    reader.drain()
    append(path, b"one")
    unopenable(reader)
    path.rename(tmp_path / "kept-by-hand")
    if new:
        append(path, *new)
    for _ in range(3):
        reader.now += 1
        unopenable(reader)
    assert reader.lines == []
    assert sorted(reader.settle()) == [b"one", *new]
    assert reader.resets == {}
