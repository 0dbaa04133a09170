"""Files that were matched and could not be opened, and then were deleted, renamed or hidden."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest
from support.tail_reader import Reader, append

from ragwatch.errors import SourceError


def unopenable(reader: Reader) -> None:
    """Scan while no file can be opened: no descriptor is left but the one that lists directories."""
    free = os.open("/", os.O_RDONLY)
    os.close(free)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, hard))
    hog = os.open("/", os.O_RDONLY)
    try:
        reader.source._scanner.scan()
    finally:
        os.close(hog)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_deleted_before_it_could_be_opened(tmp_path: Path) -> None:
    """A file that was seen and never opened is counted when it is deleted, and read when it was only renamed."""
    reader = Reader([str(tmp_path / f"{name}.jsonl") for name in "abc"])
    reader.drain()
    append(tmp_path / "a.jsonl", b"one")
    append(tmp_path / "b.jsonl", b"two")
    append(tmp_path / "c.jsonl")
    unopenable(reader)
    assert len(reader.source.unreadable) == 3
    (tmp_path / "a.jsonl").unlink()
    (tmp_path / "b.jsonl").rename(tmp_path / "b.jsonl.1")
    (tmp_path / "c.jsonl").unlink()
    assert reader.settle() == [b"two"]
    assert reader.resets == {"deleted_unread": 1}


def test_what_could_not_be_opened_waits_for_its_folder(tmp_path: Path) -> None:
    """While the directory cannot be listed nothing is counted; once it can be, the file is read."""
    folder, away = tmp_path / "logs", tmp_path / "away"
    folder.mkdir()
    append(folder / "a.jsonl", b"one")
    reader = Reader(folder / "a.jsonl")
    unopenable(reader)
    assert len(reader.source.unreadable) == 1
    folder.rename(away)
    folder.symlink_to(folder)
    with pytest.raises(SourceError, match="symbolic links"):
        reader.settle()
    folder.unlink()
    away.rename(folder)
    assert reader.settle() == [b"one"]
    assert reader.resets == {}


def test_renamed_by_hand_before_it_could_be_opened(tmp_path: Path) -> None:
    """Whatever its name is now, it is read once it can be opened, and nothing is counted as lost."""
    reader = Reader(tmp_path / "a.jsonl")
    reader.drain()
    append(tmp_path / "a.jsonl", b"one")
    unopenable(reader)
    (tmp_path / "a.jsonl").rename(tmp_path / "kept-by-hand")
    assert reader.settle() == [b"one"]
    assert reader.resets == {}


def test_something_else_got_the_name_before_it_could_be_opened(tmp_path: Path) -> None:
    """A file that cannot be opened is tried at every scan, and read in the end, after the new file at its path."""
    reader = Reader(tmp_path / "a.jsonl")
    reader.drain()
    append(tmp_path / "a.jsonl", b"one")
    unopenable(reader)
    (tmp_path / "a.jsonl").rename(tmp_path / "kept-by-hand")
    append(tmp_path / "a.jsonl", b"two")
    for _ in range(3):
        reader.now += 1
        unopenable(reader)
    assert reader.lines == []
    assert sorted(reader.settle()) == [b"one", b"two"]
    assert reader.resets == {}
