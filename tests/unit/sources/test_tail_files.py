"""Which files are followed, and from which position."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest
from support.tail_reader import Reader, append, lines_of

from ragwatch.core.snapshot import Lag
from ragwatch.errors import SourceError


def test_t09_two_files_with_identical_beginnings(tmp_path: Path) -> None:
    """Both files are read fully, although their first 4 KiB are the same."""
    same = b'{"resource":"' + b"r" * 5000 + b'"}'
    append(tmp_path / "a.jsonl", same, b"a")
    reader = Reader(tmp_path / "*.jsonl")
    reader.drain()
    append(tmp_path / "b.jsonl", same, b"b")
    assert [same, b"a", same, b"b"] == reader.drain()
    assert len(set(reader.places)) == 4


def test_t28_what_is_no_file_is_skipped(tmp_path: Path) -> None:
    """FIFOs, directories, devices, dangling links and compressed files are skipped without blocking, and reported."""
    os.mkfifo(tmp_path / "fifo.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "nowhere.jsonl").symlink_to(tmp_path / "missing")
    (tmp_path / "null.jsonl").symlink_to("/dev/null")
    append(tmp_path / "good.jsonl", b"one")
    append(tmp_path / "packed.zst", b"\x28\xb5\x2f\xfd")
    reader = Reader([str(tmp_path / "*.jsonl"), str(tmp_path / "*.zst")])
    assert reader.drain() == [b"one"]
    names = {"fifo.jsonl", "folder.jsonl", "null.jsonl", "packed.zst"}
    assert names == {Path(path).name for path in reader.source.skipped}


def test_t19_a_symlink_that_is_pointed_elsewhere(tmp_path: Path) -> None:
    """Both targets are read to their ends, running and after a stop."""
    link = tmp_path / "current.jsonl"
    for name in ("a", "b", "c"):
        append(tmp_path / f"{name}.log", name.encode())
    link.symlink_to(tmp_path / "a.log")
    reader = Reader(link)
    reader.drain()
    append(tmp_path / "a.log", b"a late")
    link.unlink()
    link.symlink_to(tmp_path / "b.log")
    assert {b"a", b"a late", b"b"} == set(reader.settle())
    reader.stop()
    append(tmp_path / "b.log", b"b late")
    link.unlink()
    link.symlink_to(tmp_path / "c.log")
    reader.start()
    assert sorted([b"a", b"a late", b"b", b"b late", b"c"]) == sorted(reader.settle())


def test_t20_a_file_that_cannot_be_opened_for_a_while(tmp_path: Path) -> None:
    """It is reported, other files are read, and nothing is lost once it can be opened."""
    append(tmp_path / "a.jsonl", b"one")
    reader = Reader(tmp_path / "*.jsonl")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open(tmp_path, os.O_RDONLY)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, hard))  # one descriptor left: names can still be listed
    try:
        hog = os.open(tmp_path / "a.jsonl", os.O_RDONLY)
        with pytest.raises(SourceError):
            Reader(str(tmp_path / "a.jsonl")).drain()
        os.close(hog)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    append(tmp_path / "a.jsonl", b"two")
    assert reader.drain() == [b"one", b"two"]


def test_t20_a_descriptor_that_fails_is_opened_again(tmp_path: Path) -> None:
    """After a stale handle (a remounted share), reading continues at the same position."""
    append(tmp_path / "a.jsonl", b"one")
    reader = Reader(tmp_path / "a.jsonl")
    reader.drain()
    fd = reader.source._files.active[0].content.handle.fd
    assert fd is not None
    os.close(fd)
    append(tmp_path / "a.jsonl", b"two")
    assert Lag(0, 0.0) == reader.source.lag()
    with pytest.raises(SourceError, match="Bad file descriptor"):
        reader.step()
    assert reader.drain() == [b"one", b"two"]


def test_t23_t24_restored_from_a_backup(tmp_path: Path, path: Path, reader: Reader) -> None:
    """The same content at the same path with another inode is continued, not read again."""
    append(path, *lines_of("a", 9))
    reader.drain()
    reader.stop()
    (tmp_path / "restored").write_bytes(path.read_bytes())
    (tmp_path / "restored").replace(path)
    append(path, b"new")
    reader.start()
    assert [*lines_of("a", 9), b"new"] == reader.drain()
    assert len({stream for stream, _ in reader.places}) == 1


def test_t29_hard_link_and_original(tmp_path: Path) -> None:
    """A file with two names is read once; it is still the same when one name is removed."""
    path = tmp_path / "a.jsonl"
    append(path, b"one")
    os.link(path, tmp_path / "b.jsonl")
    reader = Reader(tmp_path / "*.jsonl")
    assert reader.drain() == [b"one"]
    path.unlink()
    append(tmp_path / "b.jsonl", b"two")
    assert reader.settle() == [b"one", b"two"]
    append(tmp_path / "b.jsonl", b"three")
    assert reader.settle() == [b"one", b"two", b"three"]


def test_an_inode_used_again_by_another_name(tmp_path: Path) -> None:
    """A new file that reuses the inode of a deleted one gets a stream of its own."""
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    append(old, *lines_of("old", 3))
    reader = Reader(tmp_path / "*.jsonl")
    reader.drain()
    reader.stop()
    old.rename(new)
    new.write_bytes(b"")
    append(new, *lines_of("new", 9))
    reader.start()
    assert lines_of("old", 3) + lines_of("new", 9) == reader.settle()
    assert len({stream for stream, _ in reader.places}) == 2
    assert len(reader.cursors) == 1


@pytest.mark.parametrize("rounds", [1, 3])
def test_start_at_the_end_skips_once(tmp_path: Path, path: Path, rounds: int) -> None:
    """Only content that exists at the very first start is skipped, and a restart does not skip again."""
    append(path, b"history")
    append(path, b"torn at the start", end=b"")
    append(tmp_path / "empty.jsonl")
    reader = Reader(tmp_path / "*.jsonl", start="end")
    assert reader.drain() == []
    for _ in range(rounds):
        reader.stop()
        reader.start()
    append(path, b", whole now", b"two")
    append(tmp_path / "empty.jsonl", b"first")
    append(tmp_path / "later.jsonl", b"new file")
    assert {b"torn at the start, whole now", b"two", b"first", b"new file"} == set(reader.settle())
    assert len(reader.lines) == 4
    assert {2, 3, 1} == set(reader.numbers)


def test_start_at_the_end_with_no_file_yet(tmp_path: Path) -> None:
    """A file that appears while ragwatch is stopped after its first start is new, so it is read whole."""
    reader = Reader(tmp_path / "*.jsonl", start="end")
    assert reader.drain() == []
    reader.stop()
    append(tmp_path / "app.jsonl", b"one")
    reader.start()
    assert reader.drain() == [b"one"]


def test_start_at_the_end_of_much_text(path: Path) -> None:
    """After more text than is counted, line numbers are unknown, not wrong."""
    with path.open("wb") as file:
        file.write(b"x" * 100 + b"\n")
        os.truncate(file.fileno(), 70 << 20)
        file.seek(70 << 20)
        file.write(b"\n")
    reader = Reader(path, start="end")
    reader.drain()
    append(path, b"one", b"x" * 99)
    reader.options = reader.options.model_copy(update={"max_line_bytes": 50})
    reader.restart()
    assert reader.drain() == [b"one"]
    assert reader.numbers == [0]
    assert [rejection.line for rejection in reader.rejections] == [0]
