"""Replaced files: another file took the place of a log (`sed -i`, an editor, rsync), and repeats lines that were read.

The old file is open, so it is read to its end first. The new one may go on with its content, or lack the last lines
that were written to the old one while the copy was made, or have some lines changed; the lines that both begin with are
read in the old one alone. It is a copy if it begins with all that was read, or with more than half of the lines: a new
log may begin with the same header.
"""

from __future__ import annotations

from ragwatch.sources.tail.content import CHUNK_BYTES, Content, continues, count_lines, edges_at
from ragwatch.sources.tail.file_table import FileTable
from ragwatch.sources.tail.identity import TAIL
from ragwatch.sources.tail.reader import FollowedFile
from ragwatch.sources.tail.search import LostFileSearch


class ReplacedFiles:
    """Decides from which byte files are read that took the place of other ones.

    Args:
        search: Finds rotations of the old files.
        wait_seconds: How long a file with only the first bytes of the old one may be a copy that is being made.
    """

    def __init__(self, table: FileTable, search: LostFileSearch, wait_seconds: float) -> None:
        self._table = table
        self._search = search
        self._wait_seconds = wait_seconds

    def begin(self, new: FollowedFile, now: float) -> bool:
        """Move to the byte from which a file is read. False while that is not known.

        Raises:
            OSError: One of the files cannot be read.
        """
        old = new.replaced
        if old is None or new.content is None:
            return True
        if not old.is_drained:
            return False  # were the place in the new file stored before that, a kill would lose the rest of the old one
        if self._may_grow(new.content, old, now):
            return False
        if not (old.is_gone and self._search.is_packed(old.position, new)):  # else it was rotated: all lines are new
            if continues(new.content, old.position):
                new.continue_after(old)
            else:
                _skip_shared_lines(new, new.content, old)
        if new.stream is not None:
            self._table.move_cursor(new.stream, new.path, new.position)
        new.replaced = None
        return True

    def _may_grow(self, copy: Content, old: FollowedFile, now: float) -> bool:
        """Whether a new file has only the first bytes of the old one, and the copy may still be in the making."""
        since, size = old.rotated_since, copy.state()[0]
        if old.content is None or since is None or now - since >= self._wait_seconds or size >= old.position.offset:
            return False
        return edges_at(copy, size) == edges_at(old.content, size)


def _skip_shared_lines(new: FollowedFile, content: Content, old: FollowedFile) -> None:
    """Skip the lines that a new file has in common with the old one; it lacks others, or has them changed."""
    shared, is_copy = 0, False
    if old.content is not None:
        shared = _shared_bytes(content, old.content)
        if shared >= TAIL and shared == old.content.state()[0]:
            old.leave_end_to_copy(shared)
        is_copy = _is_most(old.content, shared)
    if is_copy:
        new.skip_to_end(shared)
    if shared < content.state()[0] and old.position.offset and (is_copy or old.is_gone):
        new.count_replaced()


def _shared_bytes(one: Content, other: Content) -> int:
    """How many bytes at the start of two contents are the same."""
    at = 0
    while True:
        left, right = one.pread(CHUNK_BYTES, at), other.pread(CHUNK_BYTES, at)
        if left != right or not left:
            pairs = enumerate(zip(left, right, strict=False))
            return at + next((index for index, (a, b) in pairs if a != b), min(len(left), len(right)))
        at += len(left)


def _is_most(content: Content, end: int) -> bool:
    """Whether more than half of the lines of a content are in its first `end` bytes: no header is that long."""
    lines = count_lines(content, end) if end >= TAIL else 0
    if lines is None:
        return True
    rest, at = 0, end
    while rest < lines and (block := content.pread(CHUNK_BYTES, at)):
        rest, at = rest + block.count(b"\n"), at + len(block)
    return rest < lines
