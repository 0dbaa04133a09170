"""The `Source` contract of the tail: batches, commits, lag, cursors and options."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError
from support.tail_reader import Reader, append, copytruncate, lines_of

from ragwatch.core.snapshot import Lag
from ragwatch.errors import SourceError
from ragwatch.sources.tail.options import Options
from ragwatch.sources.tail.source import TailSource, build


def test_files_take_turns(tmp_path: Path) -> None:
    """A file with many new lines does not block others."""
    for name in ("a", "b", "c"):
        append(tmp_path / f"{name}.jsonl", *lines_of(name, 4))
    reader = Reader(tmp_path / "*.jsonl", read_bytes=13)
    reader.drain()
    assert [f"{name}.jsonl" for name in "abc"] * 4 == reader.files


def test_the_same_batch_until_it_is_committed(tmp_path: Path) -> None:
    """Reading returns the same batch until it is committed; only the batch that was read last can be committed."""
    append(tmp_path / "a.jsonl", b"one")
    reader = Reader(tmp_path / "a.jsonl")
    batch = reader.read()
    assert batch is not None
    append(tmp_path / "a.jsonl", b"two")
    assert batch is reader.source.read()
    reader.source.commit(batch)
    with pytest.raises(ValueError, match="read last"):
        reader.source.commit(batch)
    following = reader.source.read()
    assert following is not None
    assert list(following.lines) == [b"two"]


def test_lag_counts_unread_bytes_and_their_age(path: Path) -> None:
    """Bytes not committed yet, and the age of the oldest; unknown before the first scan."""
    append(path, b"one")
    reader = Reader(path, read_bytes=4)
    assert Lag(0, None) == reader.source.lag()
    reader.drain()
    assert Lag(0, 0.0) == reader.source.lag()
    reader.now = 100
    append(path, b"two")
    assert Lag(4, 0.0) == reader.source.lag()
    reader.now = 103
    append(path, b"six")
    assert Lag(8, 3.0) == reader.source.lag()
    reader.now = 105
    reader.step()
    assert Lag(4, 2.0) == reader.source.lag()
    path.write_bytes(b"1\n")
    assert Lag(2, 0.0) == reader.source.lag()
    for _ in range(200):
        append(path, b"x")
        reader.now += 1
        reader.source.lag()
    assert Lag(402, 200.0) == reader.source.lag()
    reader.drain()
    assert Lag(0, 0.0) == reader.source.lag()


def test_a_folder_that_cannot_be_listed_forgets_nothing(tmp_path: Path) -> None:
    """A directory that is missing for a while (a mount) is an error, and its files are not new when it is back."""
    folder, away = tmp_path / "logs", tmp_path / "away"
    folder.mkdir()
    append(folder / "app.jsonl", b"one")
    reader = Reader(folder / "app.jsonl")
    reader.drain()
    folder.rename(away)
    folder.symlink_to(folder)  # a loop: an error, not an absence
    reader.settle()
    reader.restart()
    with pytest.raises(SourceError, match="symbolic links"):
        reader.drain()
    folder.unlink()
    away.rename(folder)
    append(folder / "app.jsonl", b"two")
    assert reader.settle() == [b"one", b"two"]


def test_a_folder_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    """Cursors of per-pod directories are deleted with the directories."""
    folder = tmp_path / "pods" / "one"
    folder.mkdir(parents=True)
    append(folder / "app.jsonl", b"one")
    reader = Reader(tmp_path / "pods" / "*" / "app.jsonl")
    reader.drain()
    reader.stop()
    (folder / "app.jsonl").unlink()
    folder.rmdir()
    reader.start()
    reader.settle()
    assert reader.cursors == {}


def test_recursive_globs(tmp_path: Path) -> None:
    """`**` matches in directories, also in those that are created later."""
    reader = Reader(str(tmp_path / "**" / "*.jsonl"))
    reader.drain()
    (tmp_path / "x" / "y").mkdir(parents=True)
    append(tmp_path / "x" / "y" / "a.jsonl", b"one")
    assert reader.drain() == [b"one"]


def test_a_rotation_that_matches_the_pattern_is_read_once(tmp_path: Path, path: Path) -> None:
    """`app.jsonl*` matches the rotated names too: still once each, over many rotations and restarts."""
    reader = Reader(tmp_path / "app.jsonl*")
    written = []
    for turn in range(5):
        lines = lines_of(str(turn), 3)
        written += lines
        append(path, *lines)
        reader.settle()
        for number in range(turn, 0, -1):
            (tmp_path / f"app.jsonl.{number}").rename(tmp_path / f"app.jsonl.{number + 1}")
        path.rename(tmp_path / "app.jsonl.1")
        reader.settle()
        reader.restart()
    assert written == reader.settle()


def test_killed_between_a_new_generation_and_the_end_of_the_old(tmp_path: Path, path: Path, reader: Reader) -> None:
    """Two cursors of one inode: the newest generation counts, the other is deleted."""
    append(path, *lines_of("old", 9))
    reader.drain()
    copytruncate(path, tmp_path / "copy")
    append(path, b"new")
    reader.step()
    assert len(reader.cursors) == 2
    reader.restart()
    assert [*lines_of("old", 9), b"new"] == reader.settle()
    assert len(reader.cursors) == 1


def test_t22_a_cursor_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    """A cursor that is not valid is an error: the user has to decide where to start."""
    source = build(Options(name="app", path=str(tmp_path / "a.jsonl")))
    with pytest.raises(SourceError, match="stream 'x'") as caught:
        source.resume({"x": '{"offset": 1}'})
    assert caught.value.permanent


def test_names_are_looked_up_only_so_often(tmp_path: Path) -> None:
    """Between two scans only open files are checked."""
    reader = Reader(tmp_path / "*.jsonl", scan_seconds=5)
    reader.drain()
    append(tmp_path / "a.jsonl", b"one")
    assert reader.drain() == []
    reader.now = 5
    assert reader.drain() == [b"one"]
    append(tmp_path / "a.jsonl", b"two")
    assert reader.drain() == [b"one", b"two"]


def test_options_know_their_keys() -> None:
    """Unknown keys are refused, sizes may be written with units, every key is described."""
    with pytest.raises(ValidationError):
        Options.model_validate({"kind": "tail", "name": "app", "path": "x", "strat": "end"})
    assert Options.model_validate({"name": "a", "path": ["x", "y"], "max_line_bytes": "2MiB"}).max_line_bytes == 2 << 20
    assert Options(name="a", path="x").patterns == ("x",)
    assert all(field.description for name, field in Options.model_fields.items() if name != "kind")


def test_a_closed_source_reads_nothing(tmp_path: Path) -> None:
    """After close, descriptors are gone, however often it is called."""
    append(tmp_path / "a.jsonl", b"one")
    before = set(Path("/proc/self/fd").iterdir())
    source = TailSource(Options(name="a", path=str(tmp_path / "a.jsonl"), start="beginning"))
    source.resume({})
    assert source.read() is not None
    source.close()
    source.close()
    assert before == set(Path("/proc/self/fd").iterdir())
