"""Twins: whether a content that nobody knows is a copy of one that is known, or only begins like it."""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress

from ragwatch.sources.tail.content import Content, edges_at, proves
from ragwatch.sources.tail.disk import family
from ragwatch.sources.tail.file_table import FileTable
from ragwatch.sources.tail.identity import FileIdentity, FilePosition
from ragwatch.sources.tail.listing import DirectoryListing
from ragwatch.sources.tail.rotation import OpenedFile


class CopyDetector:
    """What is known at this moment, to be compared with contents that are not.

    Services write the same header at the top of every file, so that a content holds what was read before a place is no
    proof while the file of that place can be asked: a copy of it, finished or not, is all a beginning of it. Where that
    file is gone, or was emptied and nobody has noticed yet, its copy may go on behind the place, and is left to those
    who look for it there.

    Args:
        ledger: What is known.
        listing: The folder in which the files are.
    """

    def __init__(self, ledger: FileTable, listing: DirectoryListing) -> None:
        self._ledger = ledger
        self._listing = listing
        self._open = {each.position.identity: each.content for each in ledger.active}
        self._places: dict[str, list[FilePosition]] = {}
        for place in sorted(ledger.positions(), key=lambda each: each.offset):  # packed content is cheapest forward
            self._places.setdefault(family(place.path), []).append(place)

    def of(self, opened: OpenedFile, *, gone: Container[FileIdentity] = ()) -> FilePosition | None:
        """The place in a file of which this may be a copy; None when it is news.

        Args:
            opened: A content that nobody knows, with the path it was written under.
            gone: Files that are known not to be there.
        """
        size, packed = opened.content.state()[0], opened.content.packed is not None
        for place in self._places.get(opened.position.path, ()) if size else ():
            if not packed and place.path != opened.position.path:
                continue  # a file beside it with a name like `app-7` may be no rotation at all
            if place.identity != opened.position.identity and place.identity not in gone:
                if place.offset <= size and not place.fits(edges_at(opened.content, place.offset)):
                    continue
                if self._may_be_copy(opened.content, size, place):
                    return place
        return None

    def _may_be_copy(self, content: Content, size: int, place: FilePosition) -> bool:
        edges, other = edges_at(content, size), self._original(place)
        if other is None:
            return proves(content, place)
        try:  # the file is asked after the content: it may be growing
            if edges is not None and edges == edges_at(other, size):
                return True
            moved = not place.fits(edges_at(other, place.offset))
        except OSError:
            moved = True  # it cannot be asked: as if it were not here
        finally:
            other.close()
        return moved and proves(content, place)

    def _original(self, place: FilePosition) -> Content | None:
        """The file of a place, for a look at it. None when it is not in this folder, or cannot be read."""
        content = self._open.get(place.identity)
        if content is not None:
            with suppress(OSError):  # closed for want of descriptors, and renamed since
                return content.again()
        found = self._ledger.find(self._listing, place.identity)
        return found[1] if found is not None else None
