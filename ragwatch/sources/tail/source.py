"""tail: follows JSONL files through rotation, truncation and restarts, without a line lost or read twice.

What was rotated and packed with gzip before it was read to its end is read from there; a packed file is read only once
it is complete and its checksum holds. What happens to files beside being read is counted, by reason, in `Batch.resets`:

    truncated, replaced           the content was started over, and read from its first byte
    truncated_unread              ... and bytes that had been seen and not read are in no rotation: lost
    deleted_unread                the same for a file that was deleted, or never could be opened
    gz_truncated, gz_damaged      a packed file that is incomplete for longer than `rotate_wait_seconds`, or is damaged
    gz_bomb                       a packed file that unpacks to more than 500 times its size (above 64 MiB), or 64 GiB

A file that was created and deleted between two looks at its folder leaves no trace, and cannot be counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Literal

from pydantic import BaseModel, ByteSize, ConfigDict, Field

from ragwatch.core.snapshot import Lag
from ragwatch.errors import SourceError
from ragwatch.ports import Batch
from ragwatch.sources.tail.descriptors import SHARED, DescriptorBudget, FileGoneError
from ragwatch.sources.tail.file_table import FollowPlan, note
from ragwatch.sources.tail.reader import FollowedFile, ReadStep
from ragwatch.sources.tail.records import ReadLimits
from ragwatch.sources.tail.scanner import FileScanner


class Options(BaseModel):
    """Configuration of a tail."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(
        min_length=1, description="Name of the source: the label `source`, and part of every sample's key."
    )
    path: str | list[str] = Field(
        min_length=1, description="File or files to follow; `*`, `?`, `[..]` and `**` match names."
    )
    format: str = Field("auto", description="Shape of the records; `auto` looks at the first ones.")
    mapping: dict[str, str] = Field({}, description="Where the parts of a sample are, for the format `custom`.")
    skip_prefix: bool = Field(
        default=False, description="Pass over text (a time, a level) that stands in a line before its JSON object."
    )
    framing: Literal["auto", "plain", "cri", "docker"] = Field(
        "auto", description="What a container runtime wraps around each record; `auto` looks at each file's first one."
    )
    start: Literal["beginning", "end"] = Field(
        "end", description="Where to begin in files that are there at the very first start. Later ones are read whole."
    )
    max_line_bytes: ByteSize = Field(
        ByteSize(4 << 20), gt=0, description="A longer record is counted as `line_too_long` and passed over."
    )
    read_bytes: ByteSize = Field(ByteSize(4 << 20), gt=0, description="Bytes read at once: one transaction's worth.")
    rotate_wait_seconds: float = Field(
        5.0, ge=0, description="How long a file that was renamed or deleted is still watched after its last growth."
    )
    scan_seconds: float = Field(
        1.0, ge=0, description="How often names are looked up. Open files are looked at on every poll."
    )

    @property
    def patterns(self) -> tuple[str, ...]:
        """All paths and globs."""
        return (self.path,) if isinstance(self.path, str) else tuple(self.path)


class TailSource:
    """Lines of files, in batches of one file each; files take turns. See `ports.Source`.

    Args:
        options: What to follow.
        clock: Monotonic seconds; only for waiting and ages, never for order or identity.
        descriptors: The budget of open files, by default the one that all sources of the process share.
    """

    def __init__(
        self, options: Options, clock: Callable[[], float] = time.monotonic, descriptors: DescriptorBudget = SHARED
    ) -> None:
        self.name = options.name
        self._clock = clock
        self._rotate_wait = options.rotate_wait_seconds
        limits = ReadLimits(block=options.read_bytes, line=options.max_line_bytes, framing=options.framing)
        plan = FollowPlan(options.patterns, options.start == "end", limits, options.scan_seconds, self._rotate_wait)
        self._roster = FileScanner(plan, clock, descriptors)
        self._files = self._roster.ledger
        self._turn = 0
        self._pending: tuple[Batch, FollowedFile | None, ReadStep | None] | None = None

    @property
    def skipped(self) -> frozenset[str]:
        """Names that match but are no text to follow: directories, FIFOs, devices, compressed files."""
        return frozenset(self._roster.skipped)

    @property
    def unreadable(self) -> dict[str, str]:
        """Names that cannot be read at present, and why. They are tried again, packed ones when they change."""
        return self._files.packs.refusals() | self._files.unreadable

    def resume(self, cursors: Mapping[str, str]) -> None:
        """Continue behind these stored cursors.

        Raises:
            SourceError: A cursor cannot be read; a person decides where to begin.
        """
        self._roster.resume(cursors)

    def read(self) -> Batch | None:
        """The next lines of one file, the same again until they are committed. None when there is nothing new.

        A batch without lines moves a cursor; one whose cursor is empty says that the stream is gone for good.

        Raises:
            SourceError: Files match, or may match in a folder that is closed, and none of them can be read at present.
        """
        if self._pending is None:
            self._pending = self._next()
        if self._pending is not None:
            return self._pending[0]
        if self._files.unreadable and not self._files.active:
            path, why = next(iter(self._files.unreadable.items()))
            raise SourceError(f"source {self.name}: {path}: {why}")
        return None

    def commit(self, batch: Batch) -> None:
        """The store holds this batch: move on.

        Raises:
            ValueError: It is not the batch that was read last.
        """
        if self._pending is None or self._pending[0] is not batch:
            raise ValueError("only the batch that was read last can be committed")
        _, followed, step = self._pending
        self._pending = None
        if followed is None or step is None:
            self._files.notes.popleft()
            return
        for stream in followed.accept(step):
            self._files.notes.append(note(stream, followed.path, ""))

    def lag(self) -> Lag:
        """Unread bytes of open files, and for how long the oldest of them have been known. Looks at the files now."""
        if self._roster.scanned:  # nothing may be read while a queue is full: files are held so that none is missed
            self._roster.scan()
        now = self._clock()
        size, age = 0, 0.0
        for followed in self._files.active:
            with suppress(OSError):  # the next read finds out, and says so
                unread, seconds = followed.unread(now)
                size, age = size + unread, max(age, seconds)
        unreadable = self.unreadable | self._roster.missing
        unknown = not self._files.active and (
            self._files.unreadable or self._roster.missing or not self._roster.scanned
        )
        return Lag(
            size,
            None if unknown else age,
            unreadable,
            closed=sum(each.content is not None and each.content.handle.fd is None for each in self._files.active),
            problems=tuple(f"{folder}: {why}" for folder, why in self._roster.missing.items()),
            skipped=str(self._roster.beginning or ""),
        )

    def close(self) -> None:
        """Release the files. What was read and not committed is read again by the next start."""
        self._roster.close()

    def _next(self) -> tuple[Batch, FollowedFile | None, ReadStep | None] | None:
        self._roster.scan()
        if self._files.notes:
            return self._files.notes[0], None, None
        elders = self._roster.elders()
        files = self._files.active
        self._turn %= max(1, len(files))
        for at, followed in enumerate((*files[self._turn :], *files[: self._turn])):
            for each in (*elders.get(followed.position.path, ()), followed):
                step = self._step(each)
                if self._files.notes:  # a copy was found: its cursor goes first, and the step is read again
                    return self._files.notes[0], None, None
                if step is not None:
                    self._turn += at + 1
                    return step.batch, each, step
        return None

    def _step(self, followed: FollowedFile) -> ReadStep | None:
        """The next step of a file; one that was moved away and has ended is released."""
        if followed.content is None:
            return None
        now = self._clock()
        try:
            step = followed.read(now)
            while followed.lost:  # what was read before the search may lie in a copy by the time that one is met
                self._roster.seek_copies(followed)
                step = followed.read(now)
            if step is None and followed.idle(now, self._rotate_wait):
                step = followed.leave()
                if step is None:
                    self._roster.retire(followed)
        except FileGoneError:
            return None  # the next scan finds it under another name, or counts what is lost
        except OSError as error:
            self._roster.lose(followed, error)
            return None
        return step


def build(options: Options) -> TailSource:
    """Make the source."""
    return TailSource(options)
