"""Files without an open descriptor: closed to save descriptors, or not opened yet, and renamed or deleted meanwhile."""

import os

from ragwatch.sources.tail.content import OpenedFile
from ragwatch.sources.tail.disk import GZIP, DirectoryListing, MatchedFile, family, list_directory
from ragwatch.sources.tail.file_table import FileTable
from ragwatch.sources.tail.identity import FileIdentity, FilePosition
from ragwatch.sources.tail.reader import FollowedFile


def update_paths(table: FileTable) -> set[str]:
    """Update the paths of closed files and release deleted ones. Returns the original paths of the latter.

    An open file does not depend on its path; a closed one is reopened by it.
    """
    gone: set[str] = set()
    listings: dict[str, DirectoryListing | None] = {}
    for followed in list(table.active):
        content, position = followed.content, followed.position
        if content is None or content.handle.is_reachable():
            continue
        path = _find(table, followed, listings)
        if path is None:
            continue  # its directory cannot be listed at present, or is not mounted
        if path and not position.offset and _is_of_another(table, path, position):
            table.forget(followed)  # a scan follows it again, by the path that it has: its inode may be reused
            continue
        if path and path.endswith(GZIP) == followed.is_packed:
            content.handle.path = path
            try:
                same = content.fits(position)  # else the inode was reused
            except OSError:
                same = True  # it cannot be read at present: the next step raises it again
            if same:
                followed.path = path
                continue
        gone.add(position.path)
        table.release_deleted(followed)
    return gone


def _find(table: FileTable, followed: FollowedFile, listings: dict[str, DirectoryListing | None]) -> str | None:
    """The path of a file by now; empty when it was deleted, None when that is not known."""
    identity = followed.position.identity
    if identity in table.matched:
        return table.matched[identity].paths[0]
    searched = True
    for directory in {os.path.dirname(path) for path in (followed.path, followed.position.path)}:
        if directory not in listings:
            listings[directory] = list_directory(directory)
        listing = listings[directory]
        if listing is None or listing.device != identity.dev:
            searched = False
        elif identity.ino in listing.paths:
            return listing.paths[identity.ino]
    return "" if searched else None


def _is_of_another(table: FileTable, path: str, position: FilePosition) -> bool:
    """Whether a path is that of another log, or of a rotation of one; a scan follows it by that path."""
    log = family(os.path.realpath(path))
    if log == family(position.path):
        return False
    return position.identity in table.matched or log in {family(other.path) for other in table.positions()}


class UnopenedFiles:
    """Files that a scan matched and could not open: no permission, no descriptor left, or renamed in between."""

    def __init__(self, table: FileTable) -> None:
        self._table = table
        self._files: dict[FileIdentity, tuple[str, MatchedFile]] = {}

    def add(self, identity: FileIdentity, match: MatchedFile) -> None:
        """Remember a file that was matched and not opened."""
        if not match.paths[0].endswith(GZIP):
            self._files[identity] = (os.path.realpath(match.paths[0]), match)

    def resolve(self) -> bool:
        """Follow files that were renamed before they could be opened; count those that were deleted.

        Returns:
            Whether one of them has a stored position, so that it has to be searched for.
        """
        known = any(identity in self._table.stored for identity in self._files)
        tracked = {position.identity for position in self._table.positions()}
        for identity, (path, match) in list(self._files.items()):
            if identity in tracked:
                del self._files[identity]
            elif identity not in self._table.matched:
                self._find(identity, path, match)
        return known

    def _find(self, identity: FileIdentity, path: str, match: MatchedFile) -> None:
        listing = list_directory(os.path.dirname(path))
        if listing is None or listing.device != identity.dev:
            return  # its directory cannot be listed, or is not mounted
        opened = self._table.open_in(listing, identity)
        if identity.ino not in listing.paths:
            del self._files[identity]
            if match.size:
                self._table.count_deleted(identity, path)
        elif opened is not None:
            renamed, content, _ = opened
            del self._files[identity]
            position = FilePosition(identity.dev, identity.ino, path, mtime_ns=match.mtime_ns)
            self._table.adopt(OpenedFile(renamed, content, position), None)
