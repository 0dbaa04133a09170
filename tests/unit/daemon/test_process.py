"""What the daemon knows of its process and of its disk."""

from __future__ import annotations

import shutil
from pathlib import Path

from ragwatch.core.snapshot import Gauge
from ragwatch.daemon.process import room


def test_free_bytes_of_the_disk_are_what_others_say(tmp_path: Path) -> None:
    """Within what the rest of this machine writes in between; 64 MiB and a hundredth of the disk at most."""
    disk = shutil.disk_usage(tmp_path)
    (found,) = room(tmp_path).values()
    assert abs(found - disk.free) <= (64 << 20) + disk.total / 100


def test_a_disk_that_says_nothing_has_no_figure(tmp_path: Path) -> None:
    """Absent, never 0: a full disk and an unknown one are two things."""
    assert list(room(tmp_path)) == [(Gauge.STATE_FREE, ())]
    assert room(tmp_path / "gone") == {}
