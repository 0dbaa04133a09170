"""Which files are followed and from which position; turns, lag and cursors; what the first scan skips."""

import os
import shutil
from pathlib import Path

import orjson
import pytest
from support.tail_reader import Reader, append, copytruncate, lines_of

from ragwatch.errors import SourceError
from ragwatch.sources.tail import content
from ragwatch.sources.tail.disk import GONE, UNMOUNTED, missing_directories
from ragwatch.sources.tail.identity import FileIdentity, FilePosition
from ragwatch.sources.tail.options import Options
from ragwatch.sources.tail.scanner import FirstScan, load
from ragwatch.sources.tail.source import build
from ragwatch.statistics.snapshot import Lag


def test_t09_two_files_with_identical_beginnings(tmp_path: Path) -> None:
    """Both files are read fully, although their first 4 KiB are the same."""
    same = b'{"resource":"' + b"r" * 5000 + b'"}'
    reader = Reader(tmp_path / "*.jsonl")
    reader.reads(tmp_path / "a.jsonl", same, b"a")
    assert reader.reads(tmp_path / "b.jsonl", same, b"b") == [same, b"a", same, b"b"]
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
    with reader.away(stopped=True):
        append(tmp_path / "b.log", b"b late")
        link.unlink()
        link.symlink_to(tmp_path / "c.log")
    assert sorted([b"a", b"a late", b"b", b"b late", b"c"]) == sorted(reader.settle())


def test_t20_a_descriptor_that_fails_is_opened_again(tmp_path: Path) -> None:
    """After a stale handle (a remounted share), reading continues at the same position."""
    reader = Reader(tmp_path / "a.jsonl")
    reader.reads(tmp_path / "a.jsonl", b"one")
    fd = reader.source._files.active[0].content.handle.fd
    assert fd is not None
    os.close(fd)
    append(tmp_path / "a.jsonl", b"two")
    assert Lag(0, 0.0) == reader.source.lag()
    with pytest.raises(SourceError, match="Bad file descriptor"):
        reader.step()
    assert reader.drain() == [b"one", b"two"]


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
    reader = Reader(tmp_path / "*.jsonl")
    reader.reads(old, *lines_of("old", 3))
    with reader.away(stopped=True):
        old.rename(new)
        new.write_bytes(b"")
        append(new, *lines_of("new", 9))
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
    with reader.away(stopped=True):
        append(tmp_path / "app.jsonl", b"one")
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


def test_skipped_records_are_reported_also_after_a_restart(tmp_path: Path) -> None:
    """With `start: end` existing records are counted once; a later file is read whole. Of an empty one nothing is."""
    append(tmp_path / "empty.jsonl")
    reader = Reader(tmp_path / "empty.jsonl", start="end")
    reader.drain()
    assert reader.source.lag().skipped == ""
    append(tmp_path / "a.jsonl", *lines_of("a", 1200))
    append(tmp_path / "b.jsonl", *lines_of("b", 34))
    reader = Reader(tmp_path / "*.jsonl", start="end")
    assert reader.drain() == []
    assert reader.source.lag().skipped.startswith(
        "0 of 1,234 existing records read: `start: end`; only what is written"
    )
    append(tmp_path / "c.jsonl", b"new")
    reader.restart()
    assert reader.drain() == [b"new"]
    assert "1,234" in reader.source.lag().skipped


def test_large_files_are_not_counted_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit the text says `more than`, or how many bytes."""
    append(tmp_path / "a.jsonl", *lines_of("a", 2000))
    monkeypatch.setattr(content, "MAX_COUNTED_BYTES", 1000)
    reader = Reader(tmp_path / "*.jsonl", start="end")
    reader.drain()
    assert reader.source.lag().skipped.startswith("0 of 30.2 KiB of existing records read")
    reader = Reader(tmp_path / "*.jsonl", start="end")
    reader.reads(tmp_path / "b.jsonl", *lines_of("b", 9))
    assert reader.source.lag().skipped.startswith("0 of more than 9 existing records read")


def test_the_cursor_of_an_earlier_version_is_read() -> None:
    """It only holds the time since which files are new."""
    assert load(orjson.dumps({"since_ns": 7}).decode()) == FirstScan(7)
    assert load("{}") == FirstScan()
    first_scan = FirstScan(7).skipping(FilePosition(1, 2, "a", offset=9, line=3))
    assert load(first_scan.dump()) == first_scan


def test_a_missing_directory_is_reported_and_an_empty_one_is_not(tmp_path: Path) -> None:
    """Reported as the directory above the first wildcard; reading continues once it exists."""
    folder = tmp_path / "logs"
    reader = Reader([str(folder / "*.jsonl"), str(folder / "sub*" / "a.jsonl"), str(tmp_path / "b.jsonl")])
    reader.drain()
    lag = reader.source.lag()
    assert (lag.problems, lag.seconds) == ((f"{folder}: {GONE}",), None)
    assert dict(lag.unreadable) == {str(folder): GONE}
    folder.mkdir()
    reader.drain()
    assert (reader.source.lag().problems, reader.source.lag().unreadable) == ((), {})
    assert reader.reads(folder / "a.jsonl", b"one") == [b"one"]
    shutil.rmtree(folder)
    reader.settle()
    assert reader.source.lag().problems == (f"{folder}: {GONE}",)


def test_a_file_system_that_is_no_longer_mounted(tmp_path: Path) -> None:
    """Files were read on another device, and none is there now: reported until a file matches."""
    reader = Reader(tmp_path / "*.jsonl")
    reader.reads(tmp_path / "a.jsonl", *lines_of("a", 9))
    reader.stop()
    status = (tmp_path / "a.jsonl").stat()
    elsewhere = {stream: orjson.loads(cursor) for stream, cursor in reader.cursors.items()}
    reader.cursors = {
        stream: orjson.dumps(place | {"dev": status.st_dev + 1, "ino": 1}).decode()
        for stream, place in elsewhere.items()
    }
    (tmp_path / "a.jsonl").rename(tmp_path / "hidden")
    reader.start()
    reader.drain()
    assert reader.source.lag().problems == (f"{tmp_path}: {UNMOUNTED}",)
    reader.reads(tmp_path / "b.jsonl", b"new")
    assert reader.source.lag().problems == ()
    gone = FilePosition(status.st_dev + 1, 1, str(tmp_path / "gone" / "a.jsonl"))
    here = FilePosition(status.st_dev, 2, os.fspath(tmp_path / "a.jsonl"))
    assert missing_directories([], [gone, here], {FileIdentity(1, 1): None}) == {}  # type: ignore[dict-item]


def test_files_take_turns(tmp_path: Path) -> None:
    """A file with many new lines does not block others."""
    for name in ("a", "b", "c"):
        append(tmp_path / f"{name}.jsonl", *lines_of(name, 4))
    reader = Reader(tmp_path / "*.jsonl", read_bytes=13)
    reader.drain()
    assert [f"{name}.jsonl" for name in "abc"] * 4 == reader.files


def test_lag_counts_unread_bytes_and_their_age(path: Path) -> None:
    """Bytes not committed yet, and the age of the oldest; unknown before the first scan."""
    append(path, b"one")
    reader = Reader(path, read_bytes=4)
    assert Lag(0, None) == reader.source.lag()
    reader.drain()
    assert Lag(0, 0.0) == reader.source.lag()
    reader.now = 100
    append(path, b"two")
    assert Lag(4, 0.0) == reader.source.lag()
    reader.now = 103
    append(path, b"six")
    assert Lag(8, 3.0) == reader.source.lag()
    reader.now = 105
    reader.step()
    assert Lag(4, 2.0) == reader.source.lag()
    path.write_bytes(b"1\n")
    assert Lag(2, 0.0) == reader.source.lag()
    for _ in range(200):
        append(path, b"x")
        reader.now += 1
        reader.source.lag()
    assert Lag(402, 200.0) == reader.source.lag()
    reader.drain()
    assert Lag(0, 0.0) == reader.source.lag()


def test_a_folder_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    """Cursors of per-pod directories are deleted with the directories."""
    folder = tmp_path / "pods" / "one"
    folder.mkdir(parents=True)
    reader = Reader(tmp_path / "pods" / "*" / "app.jsonl")
    reader.reads(folder / "app.jsonl", b"one")
    with reader.away(stopped=True):
        (folder / "app.jsonl").unlink()
        folder.rmdir()
    reader.settle()
    assert reader.cursors == {}


def test_recursive_globs(tmp_path: Path) -> None:
    """`**` matches in directories, also in those that are created later."""
    reader = Reader(str(tmp_path / "**" / "*.jsonl"))
    reader.drain()
    (tmp_path / "x" / "y").mkdir(parents=True)
    assert reader.reads(tmp_path / "x" / "y" / "a.jsonl", b"one") == [b"one"]


def test_killed_between_a_new_generation_and_the_end_of_the_old(tmp_path: Path, path: Path, reader: Reader) -> None:
    """Two cursors of one inode: the newest generation counts, the other is deleted."""
    reader.reads(path, *lines_of("old", 9))
    copytruncate(path, tmp_path / "copy")
    append(path, b"new")
    reader.step()
    assert len(reader.cursors) == 2
    reader.restart()
    assert [*lines_of("old", 9), b"new"] == reader.settle()
    assert len(reader.cursors) == 1


def test_t22_a_cursor_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    """A cursor that is not valid is an error: the user has to decide where to start."""
    source = build(Options(name="app", path=str(tmp_path / "a.jsonl")))
    with pytest.raises(SourceError, match="stream 'x'") as caught:
        source.resume({"x": '{"offset": 1}'})
    assert caught.value.permanent


def test_names_are_looked_up_only_so_often(tmp_path: Path) -> None:
    """Between two scans only open files are checked."""
    reader = Reader(tmp_path / "*.jsonl", scan_seconds=5)
    reader.drain()
    assert reader.reads(tmp_path / "a.jsonl", b"one") == []
    reader.now = 5
    assert reader.drain() == [b"one"]
    assert reader.reads(tmp_path / "a.jsonl", b"two") == [b"one", b"two"]
