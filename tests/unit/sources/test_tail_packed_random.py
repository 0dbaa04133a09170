"""Rotations that are compressed at random: every line once, whichever inode the kernel gives to a file."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.seeds import seeds
from support.tail_reader import Reader, append, pack, rotate

LIVE = "app.jsonl"


@pytest.mark.uncounted
@pytest.mark.parametrize("seed", seeds(8, 50))
@pytest.mark.parametrize("pattern", [LIVE, f"{LIVE}*"])
def test_t01_rotations_packed_at_random(tmp_path: Path, path: Path, pattern: str, seed: int) -> None:
    """Writing, renaming, compressing at once or later, kills and reading in any order: every line once."""
    rng = random.Random(seed)
    written = [b"first" * 30]
    append(path, *written)
    reader = Reader(tmp_path / pattern, read_bytes=rng.choice((300, 5000)))
    reader.drain()
    for number in range(120):
        action = rng.choices(("write", "step", "kill", "rotate", "pack", "pause", "drain"), (40, 20, 10, 8, 12, 5, 5))[
            0
        ]
        if action == "write":
            lines = [b'{"id":"%d-%d","text":"%s"}' % (number, line, b"x" * 80) for line in range(rng.randint(1, 5))]
            written += lines
            append(path, *lines)
        elif action == "step":
            reader.step()
        elif action == "kill":
            reader.source.read()
            reader.restart()
        elif action == "rotate" and not (tmp_path / f"{LIVE}.9.gz").exists() and not (tmp_path / f"{LIVE}.9").exists():
            rotate(path)
            append(path)
        elif action == "pack" and (plain := [log for log in tmp_path.glob(f"{LIVE}.?") if log.suffix != ".gz"]):
            pack(rng.choice(plain))
        elif action == "pause":
            reader.now += rng.choice((0.1, 6.0))
        else:
            reader.drain()
    read = reader.settle()
    assert sorted(written) == sorted(read)
    assert reader.reasons == []
