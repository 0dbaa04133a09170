"""T21: the disk of the state fills, is limited, or is read-only under the real daemon. Nothing is lost or doubled."""

from __future__ import annotations

import base64
import os
import random
import resource
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from functional.daemon import RagwatchProcess, record, write_config
from functional.forked import run_forked
from support.patience import DEADLINE

SEEN = 'ragwatch_requests_seen_total{source="app"}'
DRAWN = 'ragwatch_samples_drawn_total{route="search"}'
JUDGED = 'ragwatch_samples_judged_total{judge="embedded",route="search"}'
MIB = 1 << 20
NO_FLOOR = "{kind: sqlite, min_free: 0}"

Disk = Callable[[str], Path]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """Mounts a small disk of its own as the state directory; the argument is its size and other options."""
    mounted: list[Path] = []

    def mount(options: str) -> Path:
        place = tmp_path / "state"
        place.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", "-l", place], check=True)


def _fill(place: Path, *, leave: int = 0) -> Path:
    """Write a ballast until only so many bytes are left on a disk."""
    ballast = place / "ballast"
    with ballast.open("ab", buffering=0) as file, suppress(OSError):
        while (left := _free(place) - leave) > 0:
            file.write(bytes(min(left, MIB)))
    return ballast


def _free(place: Path) -> int:
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize


def _log(folder: Path, numbers: range, *, bytes_each: int = 0) -> None:
    """Append records, each with so many bytes that no compression makes smaller."""
    with (folder / "log" / "rag.jsonl").open("a") as log:
        for number in numbers:
            blob = {"blob": base64.b85encode(random.Random(number).randbytes(bytes_each * 4 // 5)).decode()}
            log.write(record(number, **({"metadata": blob} if bytes_each else {})) + "\n")


def _reason(ragwatch: RagwatchProcess, wanted: str) -> str:
    """Wait until it is not ready for a reason that names this; figures and pages answer all the while.

    Whatever writes first says so first: the loop that is asked about may come to it later than another.
    """
    end = time.monotonic() + DEADLINE
    while (found := ragwatch.get("/-/ready"))[0] == 200 or wanted not in found[1]:
        assert time.monotonic() < end, f"no word of {wanted!r} in {found}"
        time.sleep(0.02)
    assert found[0] == 503
    for path in ("/metrics", "/", "/api/v1/samples", "/-/healthy"):
        assert (path, ragwatch.get(path)[0]) == (path, 200)
    return found[1]


def _offsets(state: Path) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(f"{state.as_uri()}/ragwatch.db?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT * FROM cursors").fetchall()


def _all_counted(ragwatch: RagwatchProcess, lines: int) -> None:
    series = ragwatch.wait_for(JUDGED, lines)
    assert (series[SEEN], series[DRAWN], series["ragwatch_samples_pending"]) == (lines, lines, 0)
    assert sum(value for name, value in series.items() if name.startswith("ragwatch_requests_rejected")) == 0
    end = time.monotonic() + DEADLINE
    while (found := ragwatch.get("/-/ready")) != (200, "ragwatch is ready\n"):
        assert time.monotonic() < end, found
        time.sleep(0.05)


def _refused(config: Path) -> str:
    """What a start says that is refused: one line, exit code 1."""
    done = run_forked("run", "--config", config)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    return done.stderr


def test_t21_a_full_disk(tmp_path: Path, disk: Disk) -> None:
    """T21: not ready with the reason, offsets and counts stand; with room again all goes on without a restart."""
    state = disk("size=48m")
    config = write_config(tmp_path, store=NO_FLOOR)
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        _log(tmp_path, range(20))
        _all_counted(ragwatch, 20)
        offsets = _offsets(state)
        ballast = _fill(state)
        _log(tmp_path, range(20, 1000))
        _reason(ragwatch, "source app: state: cannot write: database or disk is full; free some space")
        assert (_offsets(state), ragwatch.series()[SEEN]) == (offsets, 20)
        ballast.unlink()
        _all_counted(ragwatch, 1000)


@pytest.mark.slow
def test_t21_a_disk_that_fills_again_and_again(tmp_path: Path, disk: Disk) -> None:
    """Full at any moment - reading, admitting, judging, settling - and freed again: every line counts once."""
    state = disk("size=48m")
    rng = random.Random(21)
    config = write_config(tmp_path, store=NO_FLOOR, judging="{batch: 16}")
    lines = 0
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        for _ in range(8):
            _log(tmp_path, range(lines, lines + 300))
            lines += 300
            time.sleep(rng.uniform(0, 0.4))
            ballast = _fill(state, leave=rng.choice((0, 0, 40_000, 200_000)))
            _log(tmp_path, range(lines, lines + 100))
            lines += 100
            time.sleep(rng.uniform(0.1, 0.6))
            assert ragwatch.get("/metrics")[0] == 200
            ballast.unlink()
        _all_counted(ragwatch, lines)


def test_t21_a_limit_on_file_size(tmp_path: Path) -> None:
    """Where the kernel refuses writes (RLIMIT_FSIZE) the daemon says so, and goes on when it may again."""
    config = write_config(tmp_path, store=NO_FLOOR)
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        _log(tmp_path, range(20))
        _all_counted(ragwatch, 20)
        offsets = _offsets(tmp_path / "state")
        pid = ragwatch.process.pid
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, hard))
        _log(tmp_path, range(20, 500))
        _reason(ragwatch, "source app: state: cannot write: disk I/O error; free some space")
        assert (_offsets(tmp_path / "state"), ragwatch.series()[SEEN]) == (offsets, 20)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
        _all_counted(ragwatch, 500)


def test_the_floor_stops_intake_before_the_kernel_does(tmp_path: Path, disk: Disk) -> None:
    """Below `store.min_free` nothing more is read, and why is told; above it all goes on without a restart."""
    state = disk("size=48m")
    config = write_config(tmp_path, store="{kind: sqlite, min_free: 24MiB}")
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        _log(tmp_path, range(200))
        _all_counted(ragwatch, 200)
        offsets = _offsets(state)
        ballast = _fill(state, leave=20 * MIB)
        _log(tmp_path, range(200, 400))
        told = _reason(ragwatch, "(store.min_free)")
        assert "MiB are free on the disk of" in told
        assert (_offsets(state), ragwatch.series()[SEEN], _free(state) > 16 * MIB) == (offsets, 200, True)
        ballast.unlink()
        _all_counted(ragwatch, 400)


def test_our_own_log_never_fills_the_disk(tmp_path: Path, disk: Disk) -> None:
    """Where the write-ahead log would not fit, it is folded into the database at the floor, and nothing stops."""
    disk("size=14m")
    config = write_config(tmp_path, store="{kind: sqlite, min_free: 4MiB}")
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        for start in range(0, 600, 100):
            _log(tmp_path, range(start, start + 100), bytes_each=8000)
            ragwatch.wait_for(SEEN, start + 100)
        _all_counted(ragwatch, 600)


@pytest.mark.parametrize("leave", [0, 4096, 24_576, 65_536, 131_072])
def test_a_first_start_on_a_full_disk(tmp_path: Path, disk: Disk, leave: int) -> None:
    """Wherever the room ends while the database is made, the start is refused with advice; the next one works."""
    state = disk("size=4m")
    config = write_config(tmp_path, store=NO_FLOOR)
    _log(tmp_path, range(50))
    ballast = _fill(state, leave=leave)
    assert any(word in _refused(config) for word in ("free some space", "with room", "No space left"))
    ballast.unlink()
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        _all_counted(ragwatch, 50)


def test_a_restart_on_a_full_disk(tmp_path: Path, disk: Disk) -> None:
    """With a state of before, the start on a full disk is refused with advice and harms nothing."""
    state = disk("size=4m")
    config = write_config(tmp_path, store=NO_FLOOR)
    _log(tmp_path, range(50))
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        _all_counted(ragwatch, 50)
    ballast = _fill(state)
    assert "free some space" in _refused(config)
    ballast.unlink()
    _log(tmp_path, range(50, 60))
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        _all_counted(ragwatch, 60)


def test_a_read_only_disk(tmp_path: Path, disk: Disk) -> None:
    """A state that cannot be written is refused with advice, new or used; writable again it goes on where it was."""
    state = disk("size=4m,ro")
    config = write_config(tmp_path, store=NO_FLOOR)
    assert "Read-only file system; give a directory we may write" in _refused(config)
    subprocess.run(["mount", "-o", "remount,rw", state], check=True)
    _log(tmp_path, range(50))
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        _all_counted(ragwatch, 50)
    subprocess.run(["mount", "-o", "remount,ro", state], check=True)
    assert "Read-only file system; give a directory we may write" in _refused(config)
    subprocess.run(["mount", "-o", "remount,rw", state], check=True)
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        _all_counted(ragwatch, 50)


def test_t22_a_damaged_or_missing_database(tmp_path: Path) -> None:
    """T22: the daemon refuses to count on top of a damaged database, or from zero where one is gone."""
    config = write_config(tmp_path)
    _log(tmp_path, range(50))
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        _all_counted(ragwatch, 50)
    database = tmp_path / "state" / "ragwatch.db"
    whole = database.read_bytes()
    database.write_bytes(whole[: len(whole) // 2])
    assert "start from scratch" in _refused(config)
    database.unlink()
    assert "was created here and is missing" in _refused(config)
    database.write_bytes(whole)
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        _all_counted(ragwatch, 50)
