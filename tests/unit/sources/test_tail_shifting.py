"""Rotations that rename files one by one during a scan: every line is still read once."""

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from support.shifting import Step, interleaved, shift, shift_copies
from support.tail_reader import LIVE, Reader, append, lines_of, rotate, rows

from ragwatch.errors import SourceError

pytestmark = pytest.mark.uncounted


def _poll(reader: Reader, times: int = 4) -> None:
    """Read as the intake loop does: an error is retried."""
    for _ in range(times):
        with suppress(SourceError):
            reader.step()


def _unseen(folder: Path, pattern: str) -> tuple[Reader, list[bytes]]:
    """A tail that has read one file and was stopped while three more were created, two of them rotated; one is tiny."""
    live = folder / LIVE
    reader = Reader(str(folder / pattern))
    reader.drain()
    written = []
    for name, count in (("read", 5), ("tiny", 1), ("unseen", 6), ("live", 4)):
        lines = rows(name, count)
        append(live, *lines)
        written += lines
        if name == "read":
            reader.drain()
            reader.stop()
        if name != "live":
            rotate(live)
    return reader, written


@pytest.mark.uncounted
@pytest.mark.parametrize("killed", [False, True], ids=["lives", "killed"])
@pytest.mark.parametrize("pace", [1, pytest.param(2, marks=pytest.mark.slow), 99])
@pytest.mark.parametrize("pattern", [LIVE, f"{LIVE}*"])
@pytest.mark.parametrize("turn", [shift, partial(shift, create=False), shift_copies], ids=["create", "none", "copies"])
def test_a_turn_falls_into_the_first_look_of_a_start(
    tmp_path: Path,
    turn: Callable[[Path], list[Step]],
    pattern: str,
    pace: int,
    killed: bool,
) -> None:
    """Whichever system call a rename precedes, and wherever a kill follows: every line is read once."""
    for after in range(0, 48, 3):
        folder = tmp_path / f"{after}"
        folder.mkdir()
        reader, written = _unseen(folder, pattern)
        reader.start()
        with interleaved(folder, turn(folder / LIVE), after=after, pace=pace):
            _poll(reader, 1 + after % 4)
        if killed:
            reader.restart()
        append(folder / LIVE, *(last := rows("last", 2)))
        assert sorted(reader.settle()) == sorted(written + last), after
        assert len(reader.cursors) <= len(list(folder.iterdir()))
        reader.stop()


def test_a_file_whose_name_changes_at_every_look_is_met_at_a_later_one(tmp_path: Path) -> None:
    """While two names are exchanged before every system call, nothing is forgotten or counted."""
    live = tmp_path / LIVE
    reader = Reader(live)
    reader.reads(live, *lines_of("a", 3))
    reader.stop()
    append(live, *lines_of("a", 2, first=3))
    rotate(live)
    append(live, *lines_of("b", 9))
    rotate(live)

    def exchange() -> None:
        for old, new in ((1, 9), (2, 1), (9, 2)):
            Path(f"{live}.{old}").rename(f"{live}.{new}")

    reader.start()
    with interleaved(tmp_path, [exchange] * 500, after=0), pytest.raises(SourceError, match="keeps changing"):
        reader.step()
    assert len(reader.settle()) == 14
    assert (reader.resets, len(reader.cursors)) == ({}, 2)


def test_an_unseen_rotation_that_cannot_be_opened_stays_news_until_it_can(tmp_path: Path) -> None:
    """A rotation that could not be read for long is read later, although newer files were read in between."""
    live = tmp_path / LIVE
    reader = Reader(live)
    reader.reads(live, *lines_of("a", 3))
    reader.stop()
    rotate(live)
    append(live, *lines_of("b", 9))
    blocked = rotate(live)
    append(live, *lines_of("c", 2))
    os.utime(live, ns=(blocked.stat().st_mtime_ns + 60_000_000_000,) * 2)
    real = os.open

    def refuse(path: str, flags: int) -> int:
        if path == str(blocked):
            raise PermissionError(13, "Permission denied", path)
        return real(path, flags)

    with pytest.MonkeyPatch.context() as system:
        system.setattr(os, "open", refuse)
        reader.start()
        assert len(reader.drain()) == 5
        assert reader.source.unreadable == {str(blocked): "Permission denied"}
        assert len(reader.drain()) == 5
    assert len(reader.settle()) == 14


def test_what_was_read_since_the_last_look_does_not_make_history(path: Path) -> None:
    """The clock is set forward, or the host sleeps, between a scan and a read: rotations in between are much older."""
    reader = Reader(path, scan_seconds=1)
    reader.reads(path, *lines_of("a", 3))
    first = rotate(path)
    append(path, *lines_of("b", 2))
    rotate(path)
    late = first.with_name(f"{LIVE}.2")
    append(late, *lines_of("a", 1, first=3))
    os.utime(late, ns=(late.stat().st_mtime_ns + 3600 * 10**9,) * 2)
    append(path, *lines_of("c", 1))
    assert len(reader.drain()) == 4  # no time has passed by our clock, so no look
    reader.now += 1
    assert len(reader.settle()) == 7


def test_a_log_that_was_begun_before_logrotate_could_create_it(tmp_path: Path, path: Path, reader: Reader) -> None:
    """Logrotate finds a file where it wants to `create` one, and renames that to a name with `.backup`."""
    reader.reads(path, *lines_of("a", 3))
    rotate(path)
    append(path, *lines_of("b", 2))
    path.rename(tmp_path / f"{LIVE}-2026112120.backup")
    append(path, *lines_of("c", 1))
    assert len(reader.settle()) == 6


def test_a_link_that_is_named_like_a_rotation_is_none(path: Path, reader: Reader) -> None:
    """`app.jsonl.old` leads to the log itself: that is read once."""
    reader.reads(path, *lines_of("a", 3))
    Path(f"{path}.old").symlink_to(path)
    rotate(path)
    append(path, *lines_of("b", 3))
    assert len(reader.settle()) == 6
    reader.restart()
    assert len(reader.settle()) == 6


@pytest.mark.parametrize("after", range(0, 12, 2))
def test_a_log_is_renamed_before_a_start_has_opened_it(tmp_path: Path, path: Path, after: int) -> None:
    """It was found under its name, has a stored position, and no new log follows: the rest of it is read."""
    append(path, *lines_of("a", 9))
    append(tmp_path / "other.jsonl", b"other")
    reader = Reader(tmp_path / "*.jsonl", read_bytes=40)
    for _ in range(3):
        reader.step()
    reader.stop()
    reader.start()
    with interleaved(tmp_path, shift(path, create=False), after=after, pace=9):
        reader.step()
    assert sorted(reader.settle()) == sorted([b"other", *lines_of("a", 9)])
