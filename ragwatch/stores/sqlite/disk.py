"""Checks of the disk under the state directory, and advice for SQLite errors."""

from __future__ import annotations

import os
import re
import sqlite3
from pathlib import Path

from ragwatch.errors import StoreError

MIB = 1 << 20
TEMPORARY = "ragwatch.tmp"
"""Folder beside a database for what SQLite sorts and rewrites: texts of answers, which /var/tmp would keep."""
MOUNTS = Path("/proc/self/mountinfo")
NETWORKED = re.compile(
    r"nfs4?|cifs|smb3|smbfs|ncpfs|afs|coda|ceph|lustre|gpfs|beegfs|pvfs2|orangefs|davfs|fuse\."
    r"(sshfs|glusterfs|ceph|ceph-fuse|s3fs|mount-s3|goofys|gcsfuse|blobfuse2?|rclone|davfs2?|juicefs|smbnetfs|curlftpfs)"
)

_DAMAGED = "restore a copy of it, or move ragwatch.* away to start from scratch"
_ADVICE = {
    **dict.fromkeys(
        (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR), "free some space on its disk, or check the disk for errors"
    ),
    **dict.fromkeys(
        (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH),
        "it must be on a disk that we may write",
    ),
    **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), "another program has locked it; stop that program"),
}


def file_system(path: Path, mounts: str) -> str | None:
    r"""Return the type of the file system that contains an absolute path.

    `mounts` is the text of `/proc/self/mountinfo`.

    >>> file_system(Path("/a/b"), "1 0 0:1 / / rw - ext4 /dev/x rw\n2 1 0:2 / /a rw shared:1 - nfs4 host:/x rw")
    'nfs4'
    """
    kind, longest = None, -1
    for line in mounts.splitlines():
        mount, _, rest = line.partition(" - ")
        fields, fs_type = mount.split(" "), rest.partition(" ")[0]
        if len(fields) < 5 or not fs_type:
            continue
        point = Path(_unescaped(fields[4]))
        if path.is_relative_to(point) and len(point.parts) >= longest:  # later mounts hide earlier ones
            kind, longest = fs_type, len(point.parts)
    return kind


def _unescaped(text: str) -> str:
    """Decode the octal escapes in which the kernel writes space, tab, newline and backslash."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text


def refuse_network(directory: Path, mounts: Path = MOUNTS) -> None:
    """Raise a `StoreError` about a network file system: SQLite's locks and shared memory fail across machines."""
    try:
        text = mounts.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:  # not Linux
        return
    kind = file_system(directory.resolve(), text)
    if kind is not None and NETWORKED.fullmatch(kind):
        raise StoreError(
            f"state: {directory} is on a network file system ({kind}), where a database loses data; give a local disk"
        )


def free_bytes(directory: Path) -> int:
    """Return the bytes that this process may still write on the disk of a directory."""
    stats = os.statvfs(directory)
    return stats.f_bavail * stats.f_frsize


FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""Exceptions of sqlite3. A message about a damaged schema quotes it, which may fail to decode."""


def reason(error: Exception) -> str:
    """Return the error message to show."""
    return "its schema is damaged" if isinstance(error, UnicodeDecodeError) else str(error)


def advice(error: Exception) -> str:
    """Return what to do about an error of the database."""
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return _ADVICE.get(primary, _DAMAGED)


def use_own_temporary_files(connection: sqlite3.Connection, database: Path) -> None:
    """Have SQLite write temporary files beside a database, in all connections of this process.

    Without the folder, which a command that only reads does not make, they are in the one that SQLite chooses.
    """
    connection.execute("PRAGMA temp_store=FILE")  # in memory, a VACUUM would take that of the whole database
    folder = str(database.absolute().with_name(TEMPORARY))
    (stored,) = connection.execute("PRAGMA temp_store_directory").fetchone() or ("",)
    if folder != stored and folder.isprintable() and os.access(folder, os.W_OK):
        quoted = folder.replace("'", "''")
        connection.execute(f"PRAGMA temp_store_directory='{quoted}'")
