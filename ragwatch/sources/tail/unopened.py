"""Losses: files that were seen and could not be opened, until they can be, or are gone for good and counted."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ragwatch.sources.tail.disk import GZIP, MatchedFile
from ragwatch.sources.tail.file_table import FileTable, note
from ragwatch.sources.tail.identity import FileIdentity, FilePosition
from ragwatch.sources.tail.listing import list_directory
from ragwatch.sources.tail.rotation import OpenedFile


class UnopenedFiles:
    """Files that a scan found and could not open: no permission, no descriptor left, or moved within that instant.

    Args:
        ledger: Where they are followed, or counted.
    """

    def __init__(self, ledger: FileTable) -> None:
        self._ledger = ledger
        self._seen: dict[FileIdentity, tuple[str, MatchedFile]] = {}

    def remember(self, identity: FileIdentity, item: MatchedFile) -> None:
        """It is there, and was not opened."""
        if not item.paths[0].endswith(GZIP):
            self._seen[identity] = (os.path.realpath(item.paths[0]), item)

    def settle(self, found: Mapping[FileIdentity, MatchedFile]) -> None:
        """Take up what was renamed before it could be opened; count what was deleted."""
        known = {position.identity for position in self._ledger.positions()}
        for identity, (path, item) in list(self._seen.items()):
            if identity in known:
                del self._seen[identity]
            elif identity not in found:
                self._seek(identity, path, item)

    def _seek(self, identity: FileIdentity, path: str, item: MatchedFile) -> None:
        listing = list_directory(os.path.dirname(path))  # noqa: PTH120 - a string stays a string
        if listing is None or listing.device != identity.dev:
            return  # its folder cannot be read, or is not mounted: nothing is known
        found = self._ledger.find(listing, identity)
        if identity.ino not in listing.paths:
            del self._seen[identity]
            if item.size:
                place = FilePosition(identity.dev, identity.ino, path)
                self._ledger.notes.append(note(f"{place.dev:x}-{place.ino:x}", path, "", {"deleted_unread": 1}))
        elif found is not None:
            name, content, _ = found
            del self._seen[identity]
            position = FilePosition(identity.dev, identity.ino, path, mtime_ns=item.mtime_ns)
            self._ledger.follow_rotated(OpenedFile(name, content, position), None)
