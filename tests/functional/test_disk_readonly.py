"""T21: the disk of the state becomes read-only while the real daemon runs. Nothing is lost or doubled."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from functional.daemon import RagwatchProcess, write_config
from functional.test_disk import MIB, NO_FLOOR, SEEN, _all_counted, _log, _offsets, _reason


@pytest.fixture
def ext4(tmp_path: Path) -> Iterator[Callable[[], Path]]:
    """Mounts a small ext4 disk of its own, in a file, as the state directory."""
    place, image = tmp_path / "state", tmp_path / "disk"

    def mount() -> Path:
        place.mkdir()
        with image.open("wb") as file:
            file.truncate(48 * MIB)
        commands: list[list[str | Path]] = [
            ["mkfs.ext4", "-q", image],
            ["mount", "-o", "loop,errors=remount-ro", image, place],
        ]
        for command in commands:
            if not shutil.which(command[0]):
                pytest.skip(f"{command[0]} is missing: Debian package `e2fsprogs`")
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"a disk in a file cannot be mounted here: {done.stderr.strip()}")
        return place

    yield mount
    if place.is_mount():
        subprocess.run(["umount", "-l", place], check=True)


def _device(place: Path) -> str:
    """Name of the block device that is mounted there."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        device, mounted, *_ = line.split()
        if mounted == str(place):
            return Path(device).name
    raise AssertionError(f"nothing is mounted on {place}")


def test_t21_files_that_become_read_only(tmp_path: Path, ext4: Callable[[], Path]) -> None:
    """Nothing of the state can be written, not through open files either; then it can: all goes on without a restart.

    `mount -o remount,ro` is refused as long as the daemon lives ("busy": its database is open for writing), so the
    files are made immutable: ext4 refuses every write to them from then on. (Not the index in shared memory: the kernel
    kills whoever touches that, which no read-only disk does.)
    """
    state = ext4()
    config = write_config(tmp_path, store=NO_FLOOR)
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        _log(tmp_path, range(20))
        _all_counted(ragwatch, 20)
        offsets = _offsets(state)
        frozen = [state, state / "ragwatch.db", state / "ragwatch.db-wal"]
        subprocess.run(["chattr", "+i", *frozen], check=True)
        try:
            _log(tmp_path, range(20, 500))
            _reason(ragwatch, "source app: state: cannot write: disk I/O error")
            assert (_offsets(state), ragwatch.series()[SEEN]) == (offsets, 20)
        finally:
            subprocess.run(["chattr", "-i", *frozen], check=True)
        _all_counted(ragwatch, 500)


def test_t21_a_disk_that_the_kernel_makes_read_only(tmp_path: Path, ext4: Callable[[], Path]) -> None:
    """After an error of the file system (`errors=remount-ro`) it says so, and what it had counted stands.

    The kernel lets nobody write there again before the disk is unmounted, so the daemon has to end for that.
    """
    state = ext4()
    alarm = Path("/sys/fs/ext4") / _device(state) / "trigger_fs_error"
    if not alarm.exists():
        pytest.skip("this kernel cannot be asked for a file system error")
    config = write_config(tmp_path, store=NO_FLOOR)
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        _log(tmp_path, range(20))
        _all_counted(ragwatch, 20)
        offsets = _offsets(state)
        alarm.write_text("1")
        _log(tmp_path, range(20, 500))
        _reason(ragwatch, "source app: state: cannot write: disk I/O error")
        assert (_offsets(state), ragwatch.series()[SEEN]) == (offsets, 20)
    subprocess.run(["umount", state], check=True)
    subprocess.run(["mount", "-o", "loop", tmp_path / "disk", state], check=True)
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        _all_counted(ragwatch, 500)
