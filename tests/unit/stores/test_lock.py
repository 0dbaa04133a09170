"""One process owns a state directory, and nobody else can read it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ragwatch.errors import StoreError
from ragwatch.stores.lock import StateLock


def mode(path: Path) -> int:
    """Permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


def test_x17_directory_is_made_for_us_alone(tmp_path: Path) -> None:
    """A missing directory is made with its parents, mode 0700; the lock file has 0600 and names the owner."""
    state = tmp_path / "a" / "b"
    lock = StateLock(state)
    assert (mode(state), mode(state / "ragwatch.lock")) == (0o700, 0o600)
    assert (state / "ragwatch.lock").read_text() == str(os.getpid())
    lock.close()


def test_an_open_directory_is_closed_to_others(tmp_path: Path) -> None:
    """An empty directory that is there already becomes 0700."""
    state = tmp_path / "state"
    state.mkdir(mode=0o755)
    StateLock(state).close()
    assert mode(state) == 0o700


def test_a_directory_of_others_keeps_its_mode(tmp_path: Path) -> None:
    """`state: /tmp` is a mistake that must not close /tmp to everybody else."""
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(0o755)
    (state / "of_somebody_else").touch()
    StateLock(state).close()
    assert mode(state) == 0o755


def test_second_owner_is_refused_with_the_first_ones_number(tmp_path: Path) -> None:
    """The message says who holds it; when the first lets go, the next may have it."""
    first = StateLock(tmp_path)
    with pytest.raises(StoreError, match=rf"is locked by process {os.getpid()}; stop it"):
        StateLock(tmp_path)
    first.close()
    StateLock(tmp_path).close()


@pytest.mark.costly
def test_a_killed_owner_holds_nothing(tmp_path: Path) -> None:
    """The kernel lets go of the lock of a process that died, however it died."""
    script = (
        "import os, sys; from pathlib import Path; from ragwatch.stores.lock import StateLock\n"
        "lock = StateLock(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(StoreError, match=f"locked by process {other.pid}"):
            StateLock(tmp_path)
        other.kill()
        other.wait()
    StateLock(tmp_path).close()


def test_unusable_directory(tmp_path: Path) -> None:
    """A file where the directory should be is told in one line."""
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot use .*give a directory we may write"):
        StateLock(tmp_path / "file")
