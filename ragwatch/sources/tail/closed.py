"""Closed: files that the budget of descriptors keeps closed, and that were renamed or deleted meanwhile."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ragwatch.sources.tail.content import edges_at
from ragwatch.sources.tail.disk import GZIP, MatchedFile
from ragwatch.sources.tail.file_table import FileTable, note
from ragwatch.sources.tail.identity import FileIdentity
from ragwatch.sources.tail.listing import DirectoryListing, list_directory
from ragwatch.sources.tail.reader import FollowedFile


class ClosedFiles:
    """Finds closed files again. An open file needs no name; a closed one is only as good as the name it is found by.

    Args:
        ledger: The files.
    """

    def __init__(self, ledger: FileTable) -> None:
        self._ledger = ledger

    def trace(self, found: Mapping[FileIdentity, MatchedFile]) -> set[str]:
        """Bring the names of closed files up to date. Returns the paths of files that are gone.

        Args:
            found: What the patterns match at present.
        """
        gone: set[str] = set()
        listings: dict[str, DirectoryListing | None] = {}
        for followed in list(self._ledger.active):
            content = followed.content
            if content is None or content.handle.in_place():
                continue
            path = self._path(followed, found, listings)
            if path is None:
                continue  # its folder cannot be read at present, or is not mounted
            if path and path.endswith(GZIP) == followed.content_packed:
                content.handle.path = path
                if self._is_same(followed):
                    followed.path = path
                    continue
            gone.add(followed.position.path)
            self._let_go(followed)
        return gone

    def _path(
        self,
        followed: FollowedFile,
        found: Mapping[FileIdentity, MatchedFile],
        listings: dict[str, DirectoryListing | None],
    ) -> str | None:
        """Where the file is by now; empty when it is gone, None when that is not known."""
        identity = followed.position.identity
        if identity in found:
            return found[identity].paths[0]
        known = True
        for directory in {os.path.dirname(each) for each in (followed.path, followed.position.path)}:  # noqa: PTH120
            if directory not in listings:
                listings[directory] = list_directory(directory)
            listing = listings[directory]
            if listing is None or listing.device != identity.dev:
                known = False
            elif identity.ino in listing.paths:
                return listing.paths[identity.ino]
        return "" if known else None

    @staticmethod
    def _is_same(followed: FollowedFile) -> bool:
        """Whether the file with this inode has what was read. If not, the inode was given to another file."""
        position = followed.position
        try:
            return followed.content is None or position.fits(edges_at(followed.content, position.offset))
        except OSError:
            return True  # it cannot be read at present: the next step says so

    def _let_go(self, followed: FollowedFile) -> None:
        """It is gone from where it was: its copy is looked for, or its loss counted, as after a restart."""
        ledger, position = self._ledger, followed.last_seen
        ledger.active.remove(followed)
        if followed.stream is not None:
            ledger.stored[position.identity] = (followed.stream, position)
        elif position.size:
            stream = f"{position.dev:x}-{position.ino:x}"
            ledger.notes.append(note(stream, followed.path, "", {"deleted_unread": 1}))
        for stream in followed.superseded:
            ledger.notes.append(note(stream, followed.path, ""))
        followed.close()
