"""What the daemon knows of its process and of its disk."""

from __future__ import annotations

import asyncio
import errno
import shutil
from pathlib import Path
from typing import Any

from ragwatch.core.snapshot import Gauge
from ragwatch.daemon.process import free_disk_bytes, log_library_warnings
from ragwatch.telemetry import EventCount, Telemetry


def test_free_bytes_of_the_disk_are_what_others_say(tmp_path: Path) -> None:
    """Within what the rest of this machine writes in between; 64 MiB and a hundredth of the disk at most."""
    disk = shutil.disk_usage(tmp_path)
    (free,) = free_disk_bytes(tmp_path).values()
    assert abs(free - disk.free) <= (64 << 20) + disk.total / 100


def test_a_disk_that_says_nothing_has_no_figure(tmp_path: Path) -> None:
    """Absent, never 0: a full disk and an unknown one are two things."""
    assert list(free_disk_bytes(tmp_path)) == [(Gauge.STATE_FREE, ())]
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
