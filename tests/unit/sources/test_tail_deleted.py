"""A writer that goes on writing to a deleted file: it is read, and it is said that a restart loses it."""

from __future__ import annotations

from pathlib import Path

from support.tail_reader import Reader, append

from ragwatch.sources.tail.reader import DELETED_WAIT_SECONDS

LIVE = "app.jsonl"


def told(reader: Reader) -> dict[str, str]:
    """What the source says about files at present."""
    return {Path(name).name: why for name, why in reader.source.lag().unreadable.items()}


def test_what_is_written_to_a_deleted_file_is_read_and_told(path: Path) -> None:
    """At the second look that finds it larger, for as long as it goes on; however slowly, no line is lost."""
    append(path, b"before")
    reader = Reader(path, rotate_wait_seconds=5)
    reader.drain()
    with path.open("ab") as writer:
        path.unlink()
        reader.settle(1)
        assert told(reader) == {}
        writer.write(b"after\n")
        writer.flush()
        assert reader.settle(1)[-1] == b"after"
        assert list(told(reader)) == [f"{LIVE} (deleted)"]
        assert "lsof +L1" in told(reader)[f"{LIVE} (deleted)"]
        reader.settle(600)
        writer.write(b"later\n")
        writer.flush()
        assert reader.settle(1)[-1] == b"later"
    append(path, b"new file")
    assert reader.settle(1)[-1] == b"new file"
    assert list(told(reader)) == [f"{LIVE} (deleted)"]
    reader.settle(DELETED_WAIT_SECONDS + 1)
    assert told(reader) == {}
    assert reader.reasons == []


def test_a_file_that_is_deleted_when_its_writer_is_done_is_nothing_to_tell(tmp_path: Path, path: Path) -> None:
    """Nor what was written before the deletion and read after it, nor a file that was renamed."""
    append(path, b"first")
    reader = Reader(path, rotate_wait_seconds=5)
    reader.drain()
    append(path, b"last")
    path.unlink()
    assert reader.settle(2)[-1] == b"last"
    assert told(reader) == {}
    append(path, b"of the next")
    reader.drain()
    path.rename(tmp_path / "app.jsonl.1")
    reader.settle(1)
    append(tmp_path / "app.jsonl.1", b"still of the next")
    assert reader.settle(1)[-1] == b"still of the next"
    assert told(reader) == {}
