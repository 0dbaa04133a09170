"""Plain copies whose names match the glob: their records are read once, either there or in the log."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from support.shifting import interleaved, shift_copies
from support.tail_reader import HEADER, LIVE, Reader, append, copytruncate, pack, rotate, rows

PATTERN = f"{LIVE}*"


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("read", [0, 1, 99], ids=["unread", "begun", "done"])
def test_a_copy_that_matches_is_read_once(tmp_path: Path, path: Path, read: int, restart: bool) -> None:
    """Nothing, the first records, or everything was read before copytruncate, while running or not."""
    reader = Reader(str(tmp_path / PATTERN), read_bytes=200)
    written = rows("a", 5)
    append(path, *written)
    for _ in range(read):
        reader.step()
    with reader.away(restart):
        copytruncate(path, tmp_path / f"{LIVE}.1")
        append(path, *(more := rows("b", 3)))
    assert sorted(reader.finish()) == sorted(written + more)
    assert len(reader.cursors) == 2


@pytest.mark.parametrize("pattern", [LIVE, PATTERN])
def test_a_copy_in_the_making_is_no_news(tmp_path: Path, path: Path, pattern: str) -> None:
    """It is empty, then half written, then complete, with a scan at each stage."""
    reader = Reader(str(tmp_path / pattern), read_bytes=200)
    reader.drain()
    written = []
    for turn in range(6):
        append(path, *(lines := rows(f"turn{turn}", 4)))
        written += lines
        if turn % 2:
            reader.drain()
        for step in shift_copies(path):
            step()
            for _ in range(turn):
                reader.step()
    assert sorted(reader.settle()) == sorted(written)


def test_a_log_is_begun_anew_and_copied_within_one_look(tmp_path: Path) -> None:
    """Lines that were read and not yet committed before copytruncate are not read again in the copy."""
    for after in range(40):
        folder = tmp_path / f"{after}"
        folder.mkdir()
        live = folder / LIVE
        reader = Reader(live)
        reader.reads(live, *rows("a", 3))
        live.write_bytes(b"")
        append(live, *rows("b", 4))
        with interleaved(folder, shift_copies(live), after=after, pace=99):
            reader.step()
            reader.step()
        append(live, *rows("c", 2))
        assert sorted(reader.settle()) == sorted(rows("a", 3) + rows("b", 4) + rows("c", 2)), after
        reader.stop()


@pytest.mark.parametrize("restart", [False, True])
def test_files_with_numbers_that_are_no_rotations_are_read_each(tmp_path: Path, restart: bool) -> None:
    """`shard-1` and `shard-2` of one service begin with the same bytes, one is a prefix of the other: both are logs."""
    reader = Reader(str(tmp_path / "shard-*"))
    reader.drain()
    reader.reads(tmp_path / "shard-1", HEADER, *rows("a", 3))
    append(tmp_path / "shard-2", HEADER)
    append(tmp_path / "shard-3", HEADER, *rows("a", 2))
    if restart:
        reader.restart()
    assert len(reader.settle()) == 4 + 1 + 3
    append(tmp_path / "shard-2", *rows("b", 2))
    assert len(reader.settle()) == 10


def test_a_rotation_that_begins_like_the_log_is_read(tmp_path: Path, path: Path) -> None:
    """Both begin with a header; the rotation, never seen as the log, has more or other records than the log."""
    reader = Reader(str(tmp_path / PATTERN))
    reader.drain()
    append(tmp_path / f"{LIVE}.2", HEADER, *rows("a", 2))
    append(tmp_path / f"{LIVE}.1", HEADER, *rows("b", 2))
    append(path, HEADER)
    assert len(reader.settle()) == 7
    append(path, *rows("c", 1))
    assert len(reader.settle()) == 8


def test_a_packed_copy_goes_on_where_the_furthest_reader_stopped(tmp_path: Path, path: Path, reader: Reader) -> None:
    """Earlier versions left a cursor of the truncated log; its compressed copy, which was read further, has one too."""
    reader.reads(path, *rows("a", 2))
    left = {"left": next(iter(reader.cursors.values()))}
    append(path, *(rest := rows("b", 4)))
    copytruncate(path, tmp_path / f"{LIVE}.1")
    assert reader.drain()[2:] == rest
    assert len(reader.cursors) == 1  # it went with the content
    reader.cursors |= left
    with reader.away(stopped=True):
        pack(rotate(path).with_name(f"{LIVE}.2"))
        append(tmp_path / f"{LIVE}.1", *rows("c", 3))
        append(path, *rows("d", 1))
    assert len(reader.settle()) == 2 + 4 + 3 + 1
    assert len(reader.cursors) == 3


@pytest.mark.parametrize("scan_seconds", [0, 1])
@pytest.mark.parametrize("unread", [0, 2])
def test_copies_get_the_inode_of_the_oldest_rotation(tmp_path: Path, scan_seconds: int, unread: int) -> None:
    """Logrotate deletes the oldest rotation and then makes the copy, which ext4 gives the inode that became free."""
    live, oldest, copy = tmp_path / LIVE, tmp_path / f"{LIVE}.1", tmp_path / "copy"
    reader = Reader(live, scan_seconds=scan_seconds)
    written: list[bytes] = []
    for name in "abcdef":
        append(live, *(lines := rows(name, 5)))
        reader.settle()
        append(live, *(late := rows(f"{name}-late", unread)))
        written += lines + late
        if oldest.exists():
            oldest.rename(copy)
            copy.write_bytes(b"")
        else:
            copy.touch()
        copytruncate(live, copy)
        copy.rename(oldest)
        reader.drain()
        assert sorted(reader.settle()) == sorted(written)
        assert "truncated_unread" not in reader.resets
    reader.restart()
    assert sorted(reader.settle()) == sorted(written)


@pytest.mark.parametrize("pattern", [LIVE, "*.jsonl", PATTERN])
@pytest.mark.parametrize("rewritten", [False, True])
@pytest.mark.parametrize("more", [0, 2])
def test_a_log_was_replaced_and_then_rotated(tmp_path: Path, pattern: str, rewritten: bool, more: int) -> None:
    """By rsync and by copytruncate between two scans: the rotation repeats the old file, which is open, and goes on."""
    live, copy = tmp_path / LIVE, tmp_path / "temporary"
    append(live, *(written := rows("a", 5)))
    reader = Reader(str(tmp_path / pattern), scan_seconds=1)
    reader.settle()
    if rewritten:
        live.write_bytes(b"")
    append(live, *rows("b", 3))
    copy.write_bytes(live.read_bytes())
    append(copy, *rows("c", more))
    copy.replace(live)
    copytruncate(live, tmp_path / f"{LIVE}.1")
    append(live, *rows("d", 2))
    written += [*rows("b", 3), *rows("c", more), *rows("d", 2)]
    reader.now += 2
    assert sorted(reader.finish()) == sorted(written)


def test_a_log_was_rewritten_replaced_and_rotated(tmp_path: Path) -> None:
    """Its old file is seen to be rewritten by a read, before a scan has seen that another one took its place."""
    live, copy = tmp_path / LIVE, tmp_path / "temporary"
    reader = Reader(str(tmp_path / "*.jsonl"), scan_seconds=1, read_bytes=200)
    reader.settle()
    append(live, *(written := rows("a", 1)))
    reader.now += 2
    reader.step()
    live.write_bytes(b"")
    append(live, *rows("b", 1))
    copy.write_bytes(live.read_bytes())
    append(copy, *rows("c", 1))
    copy.replace(live)
    copytruncate(live, tmp_path / f"{LIVE}.1")
    assert sorted(reader.settle()) == sorted([*written, *rows("b", 1), *rows("c", 1)])


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("seen", [False, True])
def test_a_log_was_replaced_twice(tmp_path: Path, seen: bool, restart: bool) -> None:
    """One file may be open. The last copy goes on where the file before it stopped, not where the first one did."""
    live, copy = tmp_path / LIVE, tmp_path / "temporary"
    reader = Reader(str(tmp_path / "*.jsonl"), open_files=1, scan_seconds=1, read_bytes=200)
    held = ExitStack()  # so that no inode is used again
    append(live, *rows("a", 1))
    reader.settle()
    for turn, written in enumerate(("b", "c")):
        held.enter_context(live.open("rb"))
        copy.write_bytes(live.read_bytes())
        copy.replace(live)
        if turn == 0:
            reader.now += 2
            reader.step()
        if turn == 0 or not restart:
            append(live, *rows(written, 1))
        if turn == 0 and (seen or restart):
            reader.drain()
    if restart:
        reader.restart()
        append(live, *rows("c", 1))
    lines = [*rows("a", 1), *rows("b", 1), *rows("c", 1)]
    with held:
        assert (sorted(reader.settle()), len(set(reader.places))) == (lines, 3)


def test_the_file_that_took_a_place_is_compressed(tmp_path: Path) -> None:
    """Before it could be compared with the old one, which was not read to its end: the rotation is not the old file."""
    live, rotated = tmp_path / LIVE, tmp_path / f"{LIVE}.1"
    reader = Reader(str(tmp_path / "*.jsonl"), open_files=1, scan_seconds=1, read_bytes=200)
    reader.settle()
    append(live, *(written := rows("a", 3)))
    reader.now += 2
    reader.step()
    with ExitStack() as held:  # so that no inode is used again
        held.enter_context(live.open("rb"))
        rotated.write_bytes(live.read_bytes())
        rotated.replace(live)
        reader.now += 2
        reader.read()
        live.rename(rotated)
        live.touch()
        pack(rotated)
        assert (sorted(reader.settle()), len(set(reader.places))) == (written, 3)
