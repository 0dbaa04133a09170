"""The descriptor budget: which files are closed, that nothing is lost by it, and how losses are counted."""

import os
import resource
from pathlib import Path

import pytest
from support.mortal import open_inodes
from support.tail_reader import Reader, append, lines_of, pack

from ragwatch.sources.tail.descriptors import (
    MAX_OVER_BUDGET,
    DescriptorBudget,
    FileGoneError,
    FileHandle,
    max_open_files,
)


def handle(path: Path, descriptors: DescriptorBudget) -> FileHandle:
    """An open file."""
    fd = os.open(path, os.O_RDONLY)
    return FileHandle(fd, str(path), os.fstat(fd), descriptors)


@pytest.mark.parametrize(
    ("soft", "most"), [(4, 1), (64, 8), (100, 36), (256, 192), (1024, 768), (resource.RLIM_INFINITY, 3 << 28)]
)
def test_a_part_of_the_limit_is_kept_back(monkeypatch: pytest.MonkeyPatch, soft: int, most: int) -> None:
    """At least 64 descriptors and a quarter of all are reserved, but some are always left for logs."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))
    assert max_open_files() == most


def test_the_least_recently_written_are_closed_first(tmp_path: Path) -> None:
    """Files that are read to their end are closed first, then the older ones; a sixteenth is closed at once."""
    descriptors = DescriptorBudget(lambda: 32)
    paths = [tmp_path / f"{number:02}" for number in range(33)]
    for number, path in enumerate(paths):
        append(path, b"x")
        os.utime(path, (1000 + number, 1000 + number))
    handles = [handle(path, descriptors) for path in paths[:32]]
    assert all(opened.fd is not None for opened in handles)
    handles[20].at_end = True
    handles.append(handle(paths[32], descriptors))
    assert [index for index, opened in enumerate(handles) if opened.fd is None] == [0, 1, 20]
    assert handles[0].read(9, 0) == b"x\n"  # opened again
    for opened in handles:
        opened.close()
    assert open_inodes(tmp_path) == set()


def test_unread_files_without_a_name_stay_open_for_a_while(tmp_path: Path) -> None:
    """A deleted file that is not read to its end is closed only when there are too many such files."""
    descriptors = DescriptorBudget(lambda: 1)
    handles = []
    for number in range(MAX_OVER_BUDGET + 3):
        path = tmp_path / str(number)
        append(path, b"x")
        handles.append(handle(path, descriptors))
        path.unlink()
        assert len([opened for opened in handles if opened.fd is not None]) <= MAX_OVER_BUDGET + 1
    closed = next(opened for opened in handles if opened.fd is None)
    with pytest.raises(FileGoneError, match="no longer under this name"):
        closed.read(1, 0)
    with pytest.raises(FileGoneError):
        closed.status()
    for opened in handles:
        opened.close()


def test_a_closed_file_is_known_by_its_inode(tmp_path: Path) -> None:
    """Another file at its path, a directory, or a path without access, is not taken for it."""
    path, other = tmp_path / "a", tmp_path / "b"
    append(path, b"x")
    append(other, b"y")
    closed = handle(path, DescriptorBudget(lambda: 9))
    assert closed.release()
    assert closed.is_reachable()
    assert closed.duplicate().read(2, 0) == b"x\n"
    closed.release()
    other.replace(path)
    assert not closed.is_reachable()
    for call in (closed.status, lambda: closed.read(1, 0), closed.duplicate):
        with pytest.raises(FileGoneError):
            call()
    path.unlink()
    path.symlink_to(path)
    assert closed.is_reachable()  # nothing is known: too many levels of symbolic links
    closed.identity = closed.identity._replace(dev=closed.identity.dev + 1)
    path.unlink()
    append(path, b"z")
    closed.identity = closed.identity._replace(ino=path.stat().st_ino)
    with pytest.raises(FileGoneError, match="file system"):
        closed.read(1, 0)
    path.unlink()
    path.mkdir()
    closed.identity = closed.identity._replace(ino=path.stat().st_ino)
    with pytest.raises(FileGoneError, match="regular"):
        closed.read(1, 0)


def test_one_descriptor_for_many_files(tmp_path: Path) -> None:
    """Every line of nine files is read once, in whatever order they grow, and the lag says how many are closed."""
    paths = [tmp_path / f"{number}.jsonl" for number in range(9)]
    for number, path in enumerate(paths):
        append(path, *lines_of(f"a{number}", 3))
    reader = Reader(tmp_path / "*.jsonl", open_files=1)
    reader.settle()
    assert reader.source.lag().closed == 8
    for number, path in enumerate(reversed(paths)):
        append(path, *lines_of(f"b{number}", 3))
    assert sorted(reader.settle()) == sorted(
        line for kind in "ab" for number in range(9) for line in lines_of(f"{kind}{number}", 3)
    )
    assert len(open_inodes(tmp_path)) == 1
    reader.stop()
    assert open_inodes(tmp_path) == set()


@pytest.fixture
def cramped(tmp_path: Path) -> Reader:
    """A reader of `a.jsonl` and `b.jsonl`, read to their ends; `a.jsonl` is closed."""
    append(tmp_path / "a.jsonl", *lines_of("a", 9))
    reader = Reader(tmp_path / "*.jsonl", open_files=1)
    reader.settle()
    append(tmp_path / "b.jsonl", *lines_of("b", 9))
    reader.settle()
    assert open_inodes(tmp_path) == {(tmp_path / "b.jsonl").stat().st_ino}
    return reader


@pytest.mark.parametrize("late", [[], [b"late"]])
def test_deleted_while_it_was_closed(tmp_path: Path, cramped: Reader, late: list[bytes]) -> None:
    """Nothing is lost of a file that was read to its end; bytes that were seen and not read are counted, once."""
    append(tmp_path / "a.jsonl", *late)
    cramped.source.lag()
    (tmp_path / "a.jsonl").unlink()
    cramped.settle()
    assert cramped.resets == ({"deleted_unread": 1} if late else {})
    assert (len(cramped.lines), len(cramped.cursors)) == (18, 1)


@pytest.mark.parametrize("deleted", [True, False])
def test_never_read_and_gone_while_it_was_closed(tmp_path: Path, deleted: bool) -> None:
    """Deleted, it is counted, once; renamed to a name that is none of a log or of a rotation, it is read, once."""
    for name in ("a", "b"):
        append(tmp_path / f"{name}.jsonl", *lines_of(name, 9))
    reader = Reader(tmp_path / "*.jsonl", open_files=1)
    reader.source._scanner.scan()
    reader.source.lag()
    assert open_inodes(tmp_path) == {(tmp_path / "b.jsonl").stat().st_ino}
    if deleted:
        (tmp_path / "a.jsonl").unlink()
    else:
        (tmp_path / "a.jsonl").rename(tmp_path / "kept-by-hand")
    assert sorted(reader.settle()) == [*([] if deleted else lines_of("a", 9)), *lines_of("b", 9)]
    assert reader.resets == ({"deleted_unread": 1} if deleted else {})


def test_packed_files_are_closed_too(tmp_path: Path) -> None:
    """Six compressed rotations and one descriptor: every file is read whole, however often it was closed."""
    for number in range(1, 7):
        append(tmp_path / f"a.jsonl.{number}", *lines_of(f"{number}", 400))
        pack(tmp_path / f"a.jsonl.{number}")
    reader = Reader(tmp_path / "a.jsonl.*", open_files=1, read_bytes=1024)
    assert sorted(reader.settle(20)) == sorted(line for n in range(1, 7) for line in lines_of(f"{n}", 400))


def test_an_inode_that_was_used_again_while_its_file_was_closed(tmp_path: Path, cramped: Reader) -> None:
    """The closed file is deleted and its inode reused by a file with another name and content: that is read whole."""
    (tmp_path / "a.jsonl").rename(tmp_path / "c.jsonl")
    (tmp_path / "c.jsonl").write_bytes(b"".join(line + b"\n" for line in lines_of("c", 20)))
    assert cramped.settle()[18:] == lines_of("c", 20)
    assert len(cramped.places) == len(set(cramped.places))


def test_an_inode_of_an_unread_file_that_a_copy_got(tmp_path: Path) -> None:
    """An editor saves a closed log that was read, and the copy gets the inode of another closed and empty one."""
    (tmp_path / "a.jsonl").touch()
    append(tmp_path / "b.jsonl", *lines_of("b", 9))
    append(tmp_path / "c.jsonl", *lines_of("c", 9))
    reader = Reader(tmp_path / "*.jsonl", open_files=1)
    reader.settle()
    assert open_inodes(tmp_path) == {(tmp_path / "c.jsonl").stat().st_ino}
    (tmp_path / "a.jsonl").write_bytes((tmp_path / "b.jsonl").read_bytes())
    (tmp_path / "a.jsonl").rename(tmp_path / "b.jsonl")
    append(tmp_path / "b.jsonl", b"late")
    assert reader.settle() == [*lines_of("b", 9), *lines_of("c", 9), b"late"]
    assert reader.resets == {}


def test_an_inode_that_a_packed_file_got(tmp_path: Path, cramped: Reader) -> None:
    """A compressed file with the inode of a closed plain one is never read as plain text."""
    packed = pack(tmp_path / "b.jsonl", keep=True).read_bytes()
    (tmp_path / "b.jsonl.gz").unlink()
    (tmp_path / "a.jsonl").rename(tmp_path / "b.jsonl.1.gz")
    (tmp_path / "b.jsonl.1.gz").write_bytes(packed)
    assert len(cramped.settle()) == 18
    assert cramped.rejections == []


def test_its_folder_is_gone_for_a_while(tmp_path: Path) -> None:
    """While the directory of a closed file cannot be listed, nothing is counted as lost."""
    folder, away = tmp_path / "logs", tmp_path / "away"
    folder.mkdir()
    append(folder / "a.jsonl", *lines_of("a", 9))
    append(tmp_path / "b.jsonl", *lines_of("b", 9))
    reader = Reader([str(folder / "a.jsonl"), str(tmp_path / "b.jsonl")], open_files=1)
    reader.settle()
    append(tmp_path / "b.jsonl", b"more")
    reader.settle()
    folder.rename(away)
    folder.symlink_to(folder)
    reader.settle()
    folder.unlink()
    away.rename(folder)
    append(folder / "a.jsonl", b"late")
    assert reader.settle()[-1] == b"late"
    assert (len(reader.lines), reader.resets) == (20, {})


def test_its_folder_cannot_be_listed_for_a_while(
    tmp_path: Path, cramped: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A closed file was renamed: it is read once its directory can be listed again."""
    append(tmp_path / "a.jsonl", b"late")
    (tmp_path / "a.jsonl").rename(tmp_path / "kept-by-hand")
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", _refuse)
        cramped.settle()
    assert (len(cramped.lines), cramped.resets) == (18, {})
    assert cramped.settle()[18:] == [b"late"]
    assert cramped.resets == {}


def _refuse(*_: object) -> None:
    raise PermissionError(13, "Permission denied")
