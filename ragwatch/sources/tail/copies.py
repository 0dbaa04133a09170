"""Copy detection: whether an unknown file is a copy of a known one, or only begins with the same bytes."""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress

from ragwatch.sources.tail.content import Content, OpenedFile, continues, edges_at
from ragwatch.sources.tail.directories import DirectoryListing
from ragwatch.sources.tail.disk import family
from ragwatch.sources.tail.file_table import FileTable
from ragwatch.sources.tail.identity import FileIdentity, FilePosition


class CopyDetector:
    """Compares unknown content with the files that are known at this moment.

    Services write the same header at the top of every file, so that equal content before a position is no proof while
    the original can be read: a copy, complete or not, is a prefix of it. Where the original is gone, or was truncated
    and that is not detected yet, its copy may go on after the position: `LostFileSearch` continues there.
    """

    def __init__(self, table: FileTable, listing: DirectoryListing) -> None:
        self._table = table
        self._listing = listing
        self._open = {followed.position.identity: followed.content for followed in table.active}
        self._positions: dict[str, list[FilePosition]] = {}
        for position in sorted(table.positions(), key=lambda position: position.offset):  # gzip is cheapest forward
            self._positions.setdefault(family(position.path), []).append(position)

    def find_original(self, opened: OpenedFile, *, gone: Container[FileIdentity] = ()) -> FilePosition | None:
        """The position in a file of which this may be a copy; None when it is a new file.

        Args:
            opened: An unknown file; its position has the path it was written under.
            gone: Files that are known to be deleted.
        """
        size, packed = opened.content.state()[0], opened.content.packed is not None
        for position in self._positions.get(opened.position.path, ()) if size else ():
            if not packed and position.path != opened.position.path:
                continue  # a file beside it with a name like `app-7` may be no rotation at all
            if position.identity != opened.position.identity and position.identity not in gone:
                if position.offset <= size and not position.fits(edges_at(opened.content, position.offset)):
                    continue
                if self._may_be_copy(opened.content, size, position):
                    return position
        return None

    def _may_be_copy(self, content: Content, size: int, position: FilePosition) -> bool:
        edges, original = edges_at(content, size), self._open_original(position)
        if original is None:
            return continues(content, position)
        try:  # the original is read after the content: it may be growing
            if edges is not None and edges == edges_at(original, size):
                return True
            truncated = not position.fits(edges_at(original, position.offset))
        except OSError:
            truncated = True  # it cannot be read: treated as if it were not here
        finally:
            original.close()
        return truncated and continues(content, position)

    def _open_original(self, position: FilePosition) -> Content | None:
        """A second reader of the file of a position. None when it is not in this directory, or cannot be opened."""
        content = self._open.get(position.identity)
        if content is not None:
            with suppress(OSError):  # closed to save descriptors, and renamed since
                return content.duplicate()
        opened = self._table.open_in(self._listing, position.identity)
        return opened[1] if opened is not None else None
