"""T21: the disk of the state fills, is limited, or is read-only under the real daemon. Nothing is lost or doubled."""

import base64
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from functional.daemon import DRAWN, JUDGED, SEEN, RagwatchProcess, asked, record, write_config
from functional.forked import run_forked
from support.patience import pauses

MIB = 1 << 20
NO_FLOOR = "{kind: sqlite, min_free: 0}"
EXT4 = "ext4"
CANNOT_WRITE = "source app: state: cannot write: "
READ_ONLY = "Read-only file system; give a directory that this user may write"

Disk = Callable[[str], Path]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """Mounts a small disk as the state directory: `ext4` in a file, or a tmpfs with these options; none for ""."""
    place, image = tmp_path / "state", tmp_path / "disk"

    def mount(options: str) -> Path:
        place.mkdir(mode=0o700)
        commands: list[list[str | Path]] = [["mount", "-t", "tmpfs", "-o", options, "tmpfs", place]]
        if options == EXT4:
            with image.open("wb") as file:
                file.truncate(48 * MIB)
            loop = ["mount", "-o", "loop,errors=remount-ro", image, place]
            commands = [["mkfs.ext4", "-q", image], loop]
        for command in commands if options else ():
            if not shutil.which(command[0]):
                pytest.skip(f"{command[0]} is missing: Debian package `e2fsprogs`")
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
        return place

    yield mount
    if place.is_mount():
        subprocess.run(["umount", "-l", place], check=True)


def fill(place: Path, *, leave: int = 0) -> Path:
    """Write a ballast until only so many bytes are left on a disk."""
    ballast = place / "ballast"
    with ballast.open("ab", buffering=0) as file, suppress(OSError):
        while (left := free(place) - leave) > 0:
            file.write(bytes(min(left, MIB)))
    return ballast


def free(place: Path) -> int:
    """Bytes that are free on a disk."""
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize


def log(folder: Path, numbers: range, *, bytes_each: int = 0) -> None:
    """Append records, each with so many bytes that no compression makes smaller."""
    with (folder / "log" / "rag.jsonl").open("a") as file:
        for number in numbers:
            blob = {"blob": base64.b85encode(random.Random(number).randbytes(bytes_each * 4 // 5)).decode()}
            file.write(record(number, **({"metadata": blob} if bytes_each else {})) + "\n")


def reason(ragwatch: RagwatchProcess, wanted: str) -> None:
    """Wait until it is not ready for a reason that names this; figures and pages answer all the while.

    Whatever writes first says so first: the loop that is asked about may come to it later than another.
    """
    ragwatch.wait_until_ready(503, naming=wanted)
    for path in ("/metrics", "/", "/api/v1/samples", "/-/healthy"):
        assert (path, ragwatch.get(path)[0]) == (path, 200)


def cursors(state: Path) -> list[tuple[str, ...]]:
    """What is stored of how far logs are read."""
    with closing(sqlite3.connect(f"{state.as_uri()}/ragwatch.db?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT * FROM cursors").fetchall()


def all_counted(ragwatch: RagwatchProcess, lines: int) -> None:
    """Wait until so many lines are judged: no more are seen, none is rejected, and the daemon is ready."""
    series = ragwatch.wait_for(JUDGED, lines)
    assert (series[SEEN], series[DRAWN], series["ragwatch_samples_pending"]) == (lines, lines, 0)
    assert sum(value for name, value in series.items() if name.startswith("ragwatch_requests_rejected")) == 0
    ragwatch.wait_until_ready()


def lives(config: Path, lines: int) -> None:
    """A daemon starts, and has judged so many lines in all; then it ends."""
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        all_counted(ragwatch, lines)


def refused(config: Path) -> str:
    """What a start says that is refused: one line, exit code 1."""
    done = run_forked("run", "--config", config)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    return done.stderr


@contextmanager
def full(_: RagwatchProcess, state: Path) -> Iterator[None]:
    """Nothing is left on the disk."""
    ballast = fill(state)
    yield
    ballast.unlink()


@contextmanager
def limited(ragwatch: RagwatchProcess, _: Path) -> Iterator[None]:
    """The kernel refuses writes of the process (RLIMIT_FSIZE)."""
    pid = ragwatch.process.pid
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, hard))
    yield
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))


@contextmanager
def frozen(_: RagwatchProcess, state: Path) -> Iterator[None]:
    """The files are immutable: ext4 refuses every write to them, through open files as well.

    `mount -o remount,ro` is refused as long as the daemon lives. (Not the index in shared memory: the kernel kills
    whoever touches that, which no read-only disk does.)
    """
    files = [state, state / "ragwatch.db", state / "ragwatch.db-wal"]
    subprocess.run(["chattr", "+i", *files], check=True)
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", *files], check=True)


class Stop(NamedTuple):
    """What keeps the daemon from writing for a while: the disk, the fault, and words of the reason."""

    disk: str
    fault: Callable[[RagwatchProcess, Path], AbstractContextManager[None]]
    words: str


STOPS = {
    "full": Stop("size=48m", full, f"{CANNOT_WRITE}database or disk is full; free some space"),
    "limited": Stop("", limited, f"{CANNOT_WRITE}disk I/O error; free some space"),
    "read-only": Stop(EXT4, frozen, f"{CANNOT_WRITE}disk I/O error"),
}


@pytest.mark.parametrize("name", STOPS)
def test_t21_what_stops_writing_loses_nothing(tmp_path: Path, disk: Disk, name: str) -> None:
    """T21: not ready with the reason, offsets and counts stand; then all goes on without a restart."""
    stop = STOPS[name]
    state = disk(stop.disk)
    config = write_config(tmp_path, store=NO_FLOOR)
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        log(tmp_path, range(20))
        all_counted(ragwatch, 20)
        read = cursors(state)
        with stop.fault(ragwatch, state):
            log(tmp_path, range(20, 200))
            reason(ragwatch, stop.words)
            assert (cursors(state), ragwatch.series()[SEEN]) == (read, 20)
        all_counted(ragwatch, 200)


def test_t21_what_cannot_be_stored_is_not_acknowledged(tmp_path: Path) -> None:
    """Pushed records are refused while nothing can be written; what was acknowledged counts once."""
    config = write_config(tmp_path, store=NO_FLOOR, sources="[{kind: push, name: app}]")
    with RagwatchProcess(config).wait_until_serving() as ragwatch:

        def sent(numbers: range) -> set[int]:
            address, headers = f"{ragwatch.address}/v1/samples", {"Content-Type": "application/json"}
            return {asked(address, record(number).encode(), headers)[0] for number in numbers}

        assert sent(range(20)) == {202}
        with limited(ragwatch, tmp_path):
            for _ in pauses():  # once nothing waits to be written, it is ready again
                assert sent(range(20, 24)) == {503}
                if "state: cannot write: " in ragwatch.get("/-/ready")[1]:
                    break
            else:
                pytest.fail("it refuses requests, and was ready all the while")
        ragwatch.wait_until_ready()
        assert sent(range(20, 40)) == {202}
        all_counted(ragwatch, 40)


@pytest.mark.slow
def test_t21_a_disk_that_fills_again_and_again(tmp_path: Path, disk: Disk) -> None:
    """Full at any moment - reading, admitting, judging, settling - and freed again: every line counts once."""
    state = disk("size=48m")
    rng = random.Random(21)
    config = write_config(tmp_path, store=NO_FLOOR, judging="{batch: 16}")
    lines = 0
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        for _ in range(8):
            log(tmp_path, range(lines, lines + 300))
            time.sleep(rng.uniform(0, 0.4))
            ballast = fill(state, leave=rng.choice((0, 0, 40_000, 200_000)))
            log(tmp_path, range(lines + 300, lines + 400))
            lines += 400
            time.sleep(rng.uniform(0.1, 0.6))
            assert ragwatch.get("/metrics")[0] == 200
            ballast.unlink()
        all_counted(ragwatch, lines)


def test_our_own_log_never_fills_the_disk(tmp_path: Path, disk: Disk) -> None:
    """Where the write-ahead log would not fit, it is folded into the database at the floor, and nothing stops."""
    disk("size=14m")
    config = write_config(tmp_path, store="{kind: sqlite, min_free: 4MiB}")
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        for start in range(0, 600, 100):
            log(tmp_path, range(start, start + 100), bytes_each=8000)
            ragwatch.wait_for(SEEN, start + 100)
        all_counted(ragwatch, 600)


@pytest.mark.parametrize("leave", [0, 24_576, 131_072])
def test_a_first_start_on_a_full_disk(tmp_path: Path, disk: Disk, leave: int) -> None:
    """Wherever the room ends while the database is made, the start is refused with advice; the next one works."""
    state = disk("size=4m")
    config = write_config(tmp_path, store=NO_FLOOR)
    log(tmp_path, range(50))
    ballast = fill(state, leave=leave)
    assert any(word in refused(config) for word in ("free some space", "with room", "No space left"))
    ballast.unlink()
    lives(config, 50)


def test_a_used_state_on_a_full_or_read_only_disk(tmp_path: Path, disk: Disk) -> None:
    """The start is refused with advice and harms nothing; on a disk that can be written it goes on where it was."""
    state = disk("size=4m,ro")
    config = write_config(tmp_path, store=NO_FLOOR)
    assert READ_ONLY in refused(config)
    subprocess.run(["mount", "-o", "remount,rw", state], check=True)
    log(tmp_path, range(50))
    lives(config, 50)
    subprocess.run(["mount", "-o", "remount,ro", state], check=True)
    assert READ_ONLY in refused(config)
    subprocess.run(["mount", "-o", "remount,rw", state], check=True)
    ballast = fill(state)
    assert "free some space" in refused(config)
    ballast.unlink()
    log(tmp_path, range(50, 60))
    lives(config, 60)


def test_t21_a_disk_that_the_kernel_makes_read_only(tmp_path: Path, disk: Disk) -> None:
    """After an error of the file system (`errors=remount-ro`) it says so, and what it had counted stands.

    The kernel lets nobody write there again before the disk is unmounted, so the daemon has to end for that.
    """
    state = disk(EXT4)
    (device,) = (line.split()[0] for line in Path("/proc/self/mounts").read_text().splitlines() if str(state) in line)
    alarm = Path("/sys/fs/ext4") / Path(device).name / "trigger_fs_error"
    if not alarm.exists():
        pytest.skip("this kernel cannot be asked for a file system error")
    config = write_config(tmp_path, store=NO_FLOOR)
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        log(tmp_path, range(20))
        all_counted(ragwatch, 20)
        read = cursors(state)
        alarm.write_text("1")
        log(tmp_path, range(20, 500))
        reason(ragwatch, f"{CANNOT_WRITE}disk I/O error")
        assert (cursors(state), ragwatch.series()[SEEN]) == (read, 20)
    for _ in pauses():  # until nobody holds what cannot be written, such as a process with mounts of its own
        subprocess.run(["umount", state], check=True)
        subprocess.run(["mount", "-o", "loop", tmp_path / "disk", state], check=True)
        if not os.statvfs(state).f_flag & os.ST_RDONLY:
            break
    lives(config, 500)
