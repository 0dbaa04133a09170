"""What the daemon knows of its process, its disk, and the secret of its state."""

from __future__ import annotations

import asyncio
import errno
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from ragwatch.daemon.process import free_disk_bytes, log_library_warnings
from ragwatch.daemon.state_secret import NAME, readable_secret, state_secret, stored_secret
from ragwatch.errors import StoreError
from ragwatch.statistics.snapshot import Gauge
from ragwatch.telemetry import EventCount, Telemetry


def test_free_bytes_of_the_disk_are_what_others_say(tmp_path: Path) -> None:
    """Within what the rest of this machine writes in between; a disk that says nothing has no figure, and never 0."""
    disk = shutil.disk_usage(tmp_path)
    ((place, free),) = free_disk_bytes(tmp_path).items()
    assert place == (Gauge.STATE_FREE, ())
    assert abs(free - disk.free) <= (64 << 20) + disk.total / 100
    assert free_disk_bytes(tmp_path / "gone") == {}


class _Loop(asyncio.SelectorEventLoop):
    """An event loop that remembers what it would have logged."""

    def __init__(self) -> None:
        super().__init__()
        self.left: list[dict[str, Any]] = []

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Remember it."""
        self.left.append(context)


def test_connections_that_cannot_be_accepted_are_counted(telemetry: Telemetry) -> None:
    """Only what asyncio says of a lack of descriptors or memory is taken from it; the rest it logs itself."""
    loop, handle = _Loop(), log_library_warnings(telemetry)
    others: list[dict[str, Any]] = [
        {"message": "m"},
        {"exception": OSError(errno.EIO, "x")},
        {"exception": ValueError()},
    ]
    try:
        for context in ({"exception": OSError(errno.EMFILE, "Too many open files")}, *others):
            handle(loop, context)
    finally:
        loop.close()
    assert loop.left == others
    assert telemetry.counts() == {(EventCount.ACCEPT_FAILURES, ()): 1}


def test_it_is_made_once_and_kept(tmp_path: Path) -> None:
    """Every later start has the same secret, which nobody else may read; what a killed process left is replaced."""
    assert stored_secret(tmp_path) is None
    (tmp_path / f"{NAME}.new").write_text("12")
    secret = state_secret(tmp_path)
    assert len(secret) == 32
    assert state_secret(tmp_path) == stored_secret(tmp_path) == readable_secret(tmp_path) == secret
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    (tmp_path / "other").mkdir()
    assert state_secret(tmp_path / "other") != secret


@pytest.mark.parametrize("text", ["", "12", "no hex", "ä" * 64])
def test_a_damaged_one_is_not_replaced(tmp_path: Path, text: str) -> None:
    """It is an error that says what to do; commands beside the daemon do without."""
    (tmp_path / NAME).write_text(text, encoding="utf-8")
    with pytest.raises(StoreError, match=r"ragwatch\.secret is damaged.*restore it, or delete it"):
        state_secret(tmp_path)
    assert readable_secret(tmp_path) is None


def test_places_that_cannot_be_used(tmp_path: Path) -> None:
    """The error names the file."""
    (tmp_path / NAME).mkdir()
    with pytest.raises(StoreError, match=r"cannot read .*ragwatch\.secret"):
        state_secret(tmp_path)
    with pytest.raises(StoreError, match=r"cannot write .*ragwatch\.secret"):
        state_secret(tmp_path / "missing")
