"""A tail with a store in memory: records and cursors move together, as in the real transaction."""

import gzip
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ragwatch.formats.record import Line
from ragwatch.ports import Batch, Rejection
from ragwatch.sources.tail.descriptors import DescriptorBudget
from ragwatch.sources.tail.options import Options
from ragwatch.sources.tail.scanner import STARTED
from ragwatch.sources.tail.source import TailSource

LIVE = "app.jsonl"
"""Name of the log that most tests write."""
HEADER = b'{"log":"opened by the service","format":1,"note":"the same at the top of every file, and long enough"}'
"""What a service writes at the top of every log."""


class Reader:
    """Runs a tail, keeps what it yields, and can stop, kill and start it.

    Args:
        path: File or glob to follow.
        open_files: How many files may be open at once.
        options: Further options of the tail; names are looked up on every read and reading starts at the beginning.
    """

    def __init__(self, path: Path | str | list[str], *, open_files: int = 10_000, **options: Any) -> None:
        self.descriptors = DescriptorBudget(lambda: open_files)
        given = path if isinstance(path, list) else str(path)
        self.options = Options.model_validate(
            {"name": "app", "path": given, "start": "beginning"} | {"scan_seconds": 0} | options
        )
        self.now = 0.0
        self.cursors: dict[str, str] = {}
        self.beginning: dict[str, str] = {}  # the cursor that says when the first start was; no file's
        self.lines: list[Line] = []
        self.places: list[tuple[str, int]] = []
        self.numbers: list[int] = []
        self.files: list[str] = []
        self.rejections: list[Rejection] = []
        self.resets: Counter[str] = Counter()
        self.source = self.start()

    def start(self) -> TailSource:
        """Start (again) from the stored cursors."""
        self.source = TailSource(self.options, clock=lambda: self.now, descriptors=self.descriptors)
        self.source.resume(self.cursors | self.beginning)
        return self.source

    def stop(self) -> None:
        """Stop, or be killed: what was read and not committed is gone either way."""
        self.source.close()

    def store(self, batch: Batch) -> None:
        """The transaction."""
        self.lines += batch.lines
        self.places += [(batch.stream, offset) for offset in batch.offsets]
        self.numbers += batch.numbers
        self.files += [Path(batch.file).name] * len(batch.lines)
        self.rejections += batch.rejections
        self.resets.update(batch.resets)
        self.cursors[batch.stream] = batch.cursor
        if not batch.cursor:
            del self.cursors[batch.stream]

    def read(self) -> Batch | None:
        """The next batch of a file; that the first start is over is committed on the way."""
        batch = self.source.read()
        while batch is not None and batch.stream == STARTED:
            self.beginning = {STARTED: batch.cursor}
            self.source.commit(batch)
            batch = self.source.read()
        return batch

    def step(self) -> Batch | None:
        """Read and commit one batch."""
        batch = self.read()
        if batch is not None:
            self.store(batch)
            self.source.commit(batch)
        return batch

    def drain(self) -> list[Line]:
        """Read until there is nothing new. Returns every line so far."""
        while self.step() is not None:
            pass
        return self.lines

    def reads(self, path: Path, *lines: bytes) -> list[Line]:
        """Append lines to a file and drain. Returns every line so far."""
        append(path, *lines)
        return self.drain()

    def settle(self, seconds: float = 10.0) -> list[Line]:
        """Drain, let time pass, and drain again."""
        self.drain()
        self.now += seconds
        return self.drain()

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()

    def finish(self) -> list[Line]:
        """Settle, restart and settle again. Returns every line so far: one that was read again is there twice."""
        self.settle()
        self.restart()
        return self.settle()

    @contextmanager
    def away(self, stopped: bool) -> Iterator[None]:  # noqa: FBT001 - drawn by name
        """What happens within it happens between two looks, or while the tail is stopped."""
        if stopped:
            self.stop()
        yield
        if stopped:
            self.start()

    @property
    def unreadable(self) -> set[str]:
        """Names of the files that are reported as unreadable at present."""
        return {Path(name).name for name in self.source.unreadable}

    @property
    def reasons(self) -> list[str]:
        """Why records were rejected, in order."""
        return [rejection.reason.value for rejection in self.rejections]


def append(path: Path, *lines: bytes, end: bytes = b"\n") -> None:
    """Write lines as a logger does: open for appending, write, close."""
    with path.open("ab") as file:
        file.write(b"".join(line + end for line in lines))


def rows(name: str, count: int, first: int = 0) -> list[bytes]:
    """Records that are all different, and long enough to be told apart by their first bytes."""
    pad = b"x" * 70
    return [b'{"id":"%s-%d","answer":"%s"}' % (name.encode(), number, pad) for number in range(first, first + count)]


def lines_of(name: str, count: int, first: int = 0) -> list[bytes]:
    """Records that are all different."""
    return [b'{"id":"%s-%d"}' % (name.encode(), number) for number in range(first, first + count)]


def copytruncate(path: Path, copy: Path) -> None:
    """Rotate as logrotate's `copytruncate` does."""
    copy.write_bytes(path.read_bytes())
    with path.open("r+b") as file:
        file.truncate(0)


def pack(path: Path, *, keep: bool = False) -> Path:
    """Compress a file as gzip and logrotate do: its time is kept, its name gets `.gz`."""
    packed = path.with_name(f"{path.name}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    times = path.stat().st_mtime_ns
    os.utime(packed, ns=(times, times))
    if not keep:
        path.unlink()
    return packed


def rotate(path: Path) -> Path:
    """Rename to `.1`; older rotations, packed or not, move up."""
    for number in range(8, 0, -1):
        for end in ("", ".gz"):
            old = path.with_name(f"{path.name}.{number}{end}")
            if old.exists():
                old.rename(path.with_name(f"{path.name}.{number + 1}{end}"))
    new = path.with_name(f"{path.name}.1")
    path.rename(new)
    return new
