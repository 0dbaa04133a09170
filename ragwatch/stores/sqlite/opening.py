"""Opens the database for writing: checks its disk, refuses one that is damaged or missing, and migrates its schema."""

import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from ragwatch.errors import StoreError
from ragwatch.stores.encryption import KEY_STATE, TextCipher, new_key_ids
from ragwatch.stores.engine import REMEMBER
from ragwatch.stores.lock import PRIVATE, write_private
from ragwatch.stores.migrations import scripts_of
from ragwatch.stores.sqlite.sqlite_writer import SqliteWriter

MIB = 1 << 20
TEMPORARY = "ragwatch.tmp"
"""Folder beside a database for what SQLite sorts and rewrites: texts of answers, which /var/tmp would keep."""
MOUNTS = Path("/proc/self/mountinfo")
NETWORKED = re.compile(
    r"nfs4?|cifs|smb3|smbfs|ncpfs|afs|coda|ceph|lustre|gpfs|beegfs|pvfs2|orangefs|davfs|fuse\."
    r"(sshfs|glusterfs|ceph|ceph-fuse|s3fs|mount-s3|goofys|gcsfuse|blobfuse2?|rclone|davfs2?|juicefs|smbnetfs|curlftpfs)"
)

VERSION = len(scripts_of("sqlite"))
PAGE_BYTES = 16384  # a compressed sample fits a page: 2.5 KB on disk for 6 KB of text, a third of what 4 KiB pages take
WAL_BYTES = 64 << 20  # the write-ahead log is truncated to this after a slow reader made it grow
BUSY_MS = 5000  # only other programs, such as the sqlite3 shell, can hold a lock
MAX_FULL_CHECK_BYTES = 256 << 20  # above this size only the tables of cursors, counters and queue are checked
CHECKED_TABLES = ("cursors", "tallies", "work")
MARKER = "ragwatch.state"
MARKER_TEXT = """\
This file shows that ragwatch.db was created here, so that its loss is noticed.
To start from scratch, move ragwatch.db and this file away together: counters begin at zero,
and each log is read from the position of its `start`.
"""
FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""Exceptions of sqlite3. A message about a damaged schema quotes it, which may fail to decode."""
_DAMAGED = "restore a copy of it, or move ragwatch.* away to start from scratch"
_ADVICE = {
    **dict.fromkeys(
        (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR), "free some space on its disk, or check the disk for errors"
    ),
    **dict.fromkeys(
        (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH),
        "it must be on a disk that this user may write",
    ),
    **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), "another program has locked it; stop that program"),
}


def file_system(path: Path, mounts: str) -> str | None:
    """Return the type of the file system that contains an absolute path; `mounts` is `/proc/self/mountinfo`."""
    kind, longest = None, -1
    for line in mounts.splitlines():
        mount, _, rest = line.partition(" - ")
        fields, fs_type = mount.split(" "), rest.partition(" ")[0]
        if len(fields) < 5 or not fs_type:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4]))  # a space is \040
        if path.is_relative_to(point) and len(point.parts) >= longest:  # later mounts hide earlier ones
            kind, longest = fs_type, len(point.parts)
    return kind


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


def advice(error: Exception) -> str:
    """Return what to do about an error of the database."""
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return _ADVICE.get(primary, _DAMAGED)


@contextmanager
def store_errors(action: str) -> Iterator[None]:
    """Raise errors of SQLite as `StoreError`."""
    try:
        yield
    except FAILURES as error:
        reason = "its schema is damaged" if isinstance(error, UnicodeDecodeError) else error
        raise StoreError(f"state: {action}: {reason}; {advice(error)}") from error


def connected(address: str, database: Path, settings: str = "") -> sqlite3.Connection:
    """Open a connection in autocommit mode, with what the statements of the store need."""
    connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
    try:
        connection.execute(settings)
        connection.create_function("unhex", 1, bytes.fromhex, deterministic=True)
        _use_own_temporary_files(connection, database)
    except BaseException:
        connection.close()
        raise
    return connection


def _use_own_temporary_files(connection: sqlite3.Connection, database: Path) -> None:
    """Have SQLite write temporary files beside a database, in all connections of this process.

    Without the folder, which a command that only reads does not make, they are in the one that SQLite chooses.
    """
    connection.execute("PRAGMA temp_store=FILE")  # in memory, a VACUUM would take that of the whole database
    folder = str(database.absolute().with_name(TEMPORARY))
    (stored,) = connection.execute("PRAGMA temp_store_directory").fetchone() or ("",)
    if folder != stored and folder.isprintable() and os.access(folder, os.W_OK):
        quoted = folder.replace("'", "''")
        connection.execute(f"PRAGMA temp_store_directory='{quoted}'")


def prepare(connection: sqlite3.Connection, scripts: Sequence[str] = scripts_of("sqlite")) -> None:
    """Configure the database for one writer, on its connection in autocommit mode, and migrate it.

    Raises a `StoreError` if a newer ragwatch has written it. If it cannot be written, its version is unchanged.
    """
    connection.execute(f"PRAGMA page_size={PAGE_BYTES}")
    connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA journal_size_limit={WAL_BYTES}")
    connection.execute("PRAGMA synchronous=FULL")  # NORMAL may lose the last commits on power loss
    connection.execute(f"PRAGMA busy_timeout={BUSY_MS}")
    current, version = version_of(connection), len(scripts)
    if current > version:
        raise StoreError(
            f"state: written by a newer ragwatch (schema {current}, this one knows {version}); "
            "run that version, or point `state` to an empty directory"
        )
    for target, script in enumerate(scripts[current:], current + 1):
        try:
            connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version={target};\nCOMMIT;")
        except sqlite3.Error:
            with suppress(sqlite3.Error):  # on a full disk SQLite rolls back by itself
                connection.execute("ROLLBACK")
            raise


def version_of(connection: sqlite3.Connection) -> int:
    """Return the schema version of a database; 0 if it has none."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def open_writer(path: Path, cipher: TextCipher | None = None) -> sqlite3.Connection:
    """Open the writing connection, check the database and migrate it. Its files are readable by the owner only.

    Raises a `ConfigError` if a key is not given that texts are encrypted with, and a `StoreError` if the database is
    damaged, missing although it existed before, of a newer version, or not writable.
    """
    marker = path.with_name(MARKER)
    try:
        refuse_missing(path, marker)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE))  # its WAL gets the same mode
        path.chmod(PRIVATE)
        path.with_name(TEMPORARY).mkdir(mode=0o700, exist_ok=True)
        with store_errors(f"cannot open {path}"), ExitStack() as failed:
            writer = failed.enter_context(closing(connected(path.absolute().as_uri(), path)))
            check_content(writer, path, marker)
            prepare(writer)
            states = SqliteWriter(writer, cipher)
            if (ids := new_key_ids(states.rows, cipher)) is not None:  # as plain JSON: it is read without a key
                states.execute(REMEMBER, {"name": KEY_STATE, "body": ids})
            if marker.exists():
                marker.chmod(PRIVATE)  # others could read it once
            else:
                write_private(marker, MARKER_TEXT)
            failed.pop_all()  # the connection stays open
    except OSError as error:
        raise StoreError(
            f"state: cannot open {path}: {error.strerror}; it must be on a writable disk with free space"
        ) from error
    return writer


def refuse_missing(path: Path, marker: Path) -> None:
    """Raise an error if the database existed before: counters must not restart from zero unnoticed."""
    wal = path.with_name(f"{path.name}-wal")
    if not _has_content(path) and (marker.exists() or _has_content(wal)):
        raise _missing(path)


def _missing(path: Path) -> StoreError:
    return StoreError(
        f"state: {path} was created here and is missing or empty; restore it, or start from scratch: "
        "move the remaining ragwatch.* away, and counters begin at zero"
    )


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def check_content(writer: sqlite3.Connection, path: Path, marker: Path) -> None:
    """Check for damage before anything is counted: every page, unless the database is too large."""
    if version_of(writer) == 0:
        if marker.exists():  # SQLite takes a file truncated to one byte for a new database
            raise _missing(path)
        return
    tables = [None] if path.stat().st_size <= MAX_FULL_CHECK_BYTES else CHECKED_TABLES
    for table in tables:
        result = writer.execute(f"PRAGMA quick_check({table or 1})").fetchone()[0]
        if result != "ok":
            raise StoreError(f"state: {path} is damaged: {' '.join(result.split())}; {_DAMAGED}")
