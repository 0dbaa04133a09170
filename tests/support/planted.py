"""Planted bugs: the five ways to lose or double lines that log tailers are known for. The machine must catch each."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b

from ragwatch.ports import Admission
from ragwatch.sources.tail.content import Content, ContentOpener
from ragwatch.sources.tail.identity import ContentEdges, FilePosition
from ragwatch.stores.sqlite.store import SqliteStore


class CheckpointFirst(SqliteStore):
    """The cursor is stored in a transaction of its own, then the rows: a kill between loses lines."""

    def admit(self, admission: Admission) -> int:
        """Cursor, then rows."""
        super().admit(replace(admission, draws=(), tallies=Counter()))
        return super().admit(admission)


class CheckpointLast(SqliteStore):
    """The rows are stored, then the cursor: a kill between counts lines twice."""

    def admit(self, admission: Admission) -> int:
        """Rows, under the cursor there was (or none), then the cursor."""
        known = self.cursors(admission.source).get(admission.stream, "")
        new = super().admit(replace(admission, cursor=known))
        super().admit(replace(admission, draws=(), tallies=Counter()))
        return new


def fits_any_content(self: FilePosition, edges: ContentEdges | None) -> bool:
    """Identity by inode only: what the bytes were does not matter, as long as the file is no shorter."""
    return self.offset == 0 or edges is not None


def mark_of_first_line(self: ContentEdges) -> str:
    """Fingerprint of the first line only."""
    return blake2b(self.head.partition(b"\n")[0], digest_size=16).hexdigest()


Open = Callable[..., tuple[Content, os.stat_result] | None]


def opening_by_name(real: Open) -> Open:
    """What a name meant when the folder was listed it still means."""

    def open_by_name(self: ContentOpener, path: str, ino: int | None = None) -> tuple[Content, os.stat_result] | None:
        del ino
        return real(self, path)

    return open_by_name
