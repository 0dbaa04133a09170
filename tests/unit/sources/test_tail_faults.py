"""Fault injection: permissions, clock jumps, a full queue, very many files, and unavoidable losses."""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.tail_reader import Reader, append, copytruncate, lines_of

from ragwatch.statistics.snapshot import Lag

NOBODY = 65534

AS_NOBODY = """
import os, sys
from pathlib import Path
from support.tail_reader import Reader
from ragwatch.errors import SourceError
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
folder = Path(sys.argv[1])
path = folder / "app.jsonl"
writer = path.open("ab", buffering=0)
writer.write(b"one\\n")
reader = Reader(folder / "*.jsonl")
reader.drain()
for hidden in (path, folder):
    with reader.away(stopped=True):
        hidden.chmod(0)
        writer.write(b"written while %s was closed\\n" % hidden.name[:3].encode())
    try:
        reader.drain()
        print("quiet")
    except SourceError as error:
        print("said", str(error).rpartition(": ")[2])
    hidden.chmod(0o700)
    reader.drain()
path.chmod(0)
path.rename(folder / "app.jsonl.1")
path.write_bytes(b"two\\n")
reader.drain()
(folder / "app.jsonl.1").chmod(0o600)
writer.write(b"late\\n")
reader.drain()
print(b"|".join(sorted(reader.lines)).decode())
print(len(set(reader.places)), dict(reader.resets))
"""


@contextmanager
def descriptors(limit: int) -> Iterator[None]:
    """Change how many files may be open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.costly
def test_t20_permission_taken_and_given_back(tmp_path: Path) -> None:
    """Real permissions, as an unprivileged user: errors are reported; nothing is lost or read twice."""
    if os.getuid() != 0:
        pytest.skip("needs root, to become a user without rights")
    folder = Path(tempfile.mkdtemp(dir="/tmp" if os.access("/tmp", os.W_OK) else tmp_path))  # noqa: S108
    try:
        os.chown(folder, NOBODY, NOBODY)
        modules = os.pathsep.join(str(Path(path).resolve()) for path in sys.path if path)
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, folder],
            env=os.environ | {"PYTHONPATH": modules},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    assert done.returncode == 0, done.stderr
    *said, lines, rest = done.stdout.splitlines()
    assert said == ["said Permission denied"] * 2  # of the folder too, that looks empty; nothing is forgotten
    assert lines.split("|") == [
        "late",
        "one",
        "two",
        "written while app was closed",
        f"written while {folder.name[:3]} was closed",
    ]
    assert rest == "5 {}"


def test_t26_the_wall_clock_jumps(tmp_path: Path, path: Path) -> None:
    """One hour back and forth changes neither order nor ages: files rotated while followed are read in that order."""
    reader = Reader(path, read_bytes=10)
    reader.reads(path, b"first")
    start = path.stat().st_mtime
    written = [b"first"]
    for turn, jump in enumerate((0, -3600, 3600, -3600)):
        lines = lines_of(str(turn), 4)
        written += lines
        append(path, *lines)
        os.utime(path, (start + jump, start + jump))
        reader.now += 1
        assert reader.source.lag().seconds == pytest.approx(turn)
        path.rename(tmp_path / f"app.jsonl.{9 - turn}")
        append(path)
        reader.source.lag()
    assert written == reader.settle()
    assert reader.resets == {}


@pytest.mark.parametrize("copy", [True, False])
def test_t27_nothing_is_read_for_ten_minutes(tmp_path: Path, path: Path, copy: bool) -> None:
    """While a full queue stops reads, the lag grows, and rotations in that time lose nothing."""
    written = lines_of("first", 10)
    reader = Reader(path, scan_seconds=1)
    reader.reads(path, *written)
    backlog = [reader.source.lag().size]
    for minute in range(10):
        lines = lines_of(str(minute), 10)
        written += lines
        append(path, *lines)
        reader.now += 60
        backlog.append(reader.source.lag().size)
        if minute in {3, 6, 8} and not copy:
            path.rename(tmp_path / f"app.jsonl.{minute}")
            append(path)
            if minute == 6:
                (tmp_path / "app.jsonl.3").unlink()  # the rotation keeps few files; this one is open
        elif minute == 5 and copy:
            copytruncate(path, tmp_path / "app.jsonl.1")
    assert copy or backlog == sorted(set(backlog))
    assert reader.source.lag().seconds is not None
    assert sorted(written) == sorted(reader.settle())
    assert Lag(0, 0.0) == reader.source.lag()
    assert reader.resets.total() == int(copy)


@pytest.mark.costly
@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_t32_a_thousand_files_that_rotate(tmp_path: Path, count: int) -> None:
    """No line twice; missing lines were in files that were deleted before a scan, and those are counted."""
    rounds = 6
    files = [tmp_path / f"{number:04}.jsonl" for number in range(count)]
    written: set[bytes] = set()
    brief: set[bytes] = set()
    held = len(list(Path("/proc/self/fd").iterdir()))  # of tests that ran before in this process
    with descriptors(min(held + 8 * count, resource.getrlimit(resource.RLIMIT_NOFILE)[1])):
        for path in files:
            append(path)
        reader = Reader(tmp_path / "*.jsonl", scan_seconds=1, rotate_wait_seconds=2)
        reader.drain()
        for turn in range(rounds):
            for number, path in enumerate(files):
                lines = lines_of(f"{number}-{turn}", 1)
                written.update(lines)
                append(path, *lines)
                if number % 50 == turn:
                    path.rename(path.with_suffix(f".jsonl.{turn}"))
                if number % 100 == turn:
                    append(path, unseen := b"never seen %d" % number)
                    brief.add(unseen)
                    path.unlink()
            reader.now += 1
            if turn == rounds // 2:
                reader.restart()
            reader.drain()
        read = reader.settle()
        reader.stop()
    assert len(read) == len(set(read))
    assert written <= set(read) <= written | brief
    assert reader.resets == {}


def test_deleted_while_stopped(path: Path) -> None:
    """A deleted file that was known to have unread bytes is counted once."""
    append(path, *lines_of("a", 20))
    reader = Reader(path, read_bytes=100)
    reader.step()
    with reader.away(stopped=True):
        path.unlink()
    reader.finish()
    assert reader.resets == {"deleted_unread": 1}
    assert reader.cursors == {}


@pytest.mark.parametrize("steps", [0, 1])
def test_truncated_before_it_was_read(path: Path, steps: int) -> None:
    """Bytes that were seen, not read, and are in no file any more are counted once; the new content is read."""
    append(path, *lines_of("a", 20))
    reader = Reader(path, read_bytes=100)
    for _ in range(steps):
        reader.step()
    reader.source._scanner.scan()
    reader.source.lag()
    path.write_bytes(b"")
    reader.source.lag()
    append(path, b"new")
    reader.settle()
    reader.restart()
    assert reader.settle()[-1] == b"new"
    assert reader.resets["truncated_unread"] == 1
    assert len(reader.cursors) == 1
