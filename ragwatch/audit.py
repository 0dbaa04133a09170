"""Audit log: who has read which sample and who has changed what, as JSON lines that are chained by their hashes.

Every line contains the hash of the line before, so that a changed, deleted or inserted line is found. The last hash is
also kept in a file beside the log, `FILE.last`: the chain continues after a rotation, and missing last lines are found.
A line never contains texts of samples, labels or events.
"""

import fcntl
import getpass
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from ragwatch.errors import ConfigError, StoreError

START = "0" * 64
"""The hash before the first line of a chain."""
MAX_LINE_BYTES = 1 << 16
MAX_KEYS = 600  # of samples in one line: a list has at most 500
MODE = 0o600


@dataclass(frozen=True, slots=True)
class Place:
    """Where a chain has arrived: the number and the hash of its last line."""

    seq: int = 0
    hash: str = START


@dataclass(frozen=True, slots=True)
class Verification:
    """Result of checking log files."""

    lines: int  # number of lines up to the first error
    first: int  # number of the first line in its chain; more than 1 where earlier files were rotated away
    error: str | None = None  # what is wrong, with file and line; None if the chain is intact


def hash_of(record: dict[str, object]) -> str:
    """Hash of a record without its own hash, independent of the order of its fields.

    >>> hash_of({"a": 1, "b": 2, "hash": "x"}) == hash_of({"b": 2, "a": 1})
    True
    """
    content = {name: value for name, value in record.items() if name != "hash"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()


def local_actor() -> str:
    """Name of the person who runs a command on this machine."""
    with suppress(KeyError, OSError):  # a container's user may have no name
        return f"{getpass.getuser()} (command line)"
    return f"uid {os.getuid()} (command line)"


class AuditLog:
    """Appends lines to an audit log. Thread-safe; several processes may write to one file.

    The file is created with mode 0600. It may be rotated by renaming it or by copying and truncating it. `clock`
    returns seconds since the epoch. `ConfigError` if the file cannot be written.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._last_path = path.with_name(f"{path.name}.last")
        self._clock = clock
        self._lock = Lock()
        try:
            with self._locked():
                os.close(self._opened())
        except OSError as error:
            raise ConfigError(
                f"audit.file: {path} cannot be written: {error.strerror}; create its folder, or let us write there"
            ) from error

    def record(
        self, *, actor: str, action: str, keys: Sequence[str] = (), address: str | None = None, **facts: object
    ) -> None:
        """Append one line, and flush it to the operating system.

        The actor is the name of the user, or `anonymous`; `keys` are those of samples, `address` is that of the client;
        `facts` are further fields, as JSON values without texts. `StoreError` if it cannot be written.
        """
        kept = list(keys[:MAX_KEYS])
        record: dict[str, object] = {
            "at": round(self._clock(), 3),
            "actor": actor,
            "address": address,
            "action": action,
        }
        record |= {name: value for name, value in facts.items() if value is not None} | {"keys": kept}
        if len(keys) > len(kept):
            record["keys_left_out"] = len(keys) - len(kept)
        try:
            with self._lock, self._locked() as last:
                self._append(record, last)
        except OSError as error:
            raise StoreError(
                f"audit.file: {self._path} cannot be written: {error.strerror}; samples are not shown until it can"
            ) from error

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Lock the file with the last hash, which is not rotated."""
        last = os.open(self._last_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, MODE)
        try:
            fcntl.flock(last, fcntl.LOCK_EX)
            yield last
        finally:
            os.close(last)

    def _opened(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, MODE)

    def _append(self, record: dict[str, object], last: int) -> None:
        place = parse_place(os.pread(last, 4096, 0))
        log = self._opened()
        try:
            end, newer = _end_of(log)
            if newer is not None and newer.seq > place.seq:  # a crash between the two writes
                place = newer
            record |= {"seq": place.seq + 1, "previous": place.hash}
            record["hash"] = hash_of(record)
            line = json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"
            _write(log, line if end in (b"", b"\n") else b"\n" + line)  # after a line that was torn by a crash
        finally:
            os.close(log)
        content = json.dumps({"seq": record["seq"], "hash": record["hash"]}).encode("ascii")
        os.pwrite(last, content + b" " * (128 - len(content)), 0)  # of one length, so that nothing older remains


def parse_place(content: bytes) -> Place:
    """Parse the content of `FILE.last`; the start of a chain if it is empty or damaged.

    >>> parse_place(b'{"seq": 3, "hash": "ab"}').seq, parse_place(b"").seq
    (3, 0)
    """
    try:
        record = json.loads(content)
        return Place(int(record["seq"]), str(record["hash"]))
    except (ValueError, LookupError, TypeError):
        return Place()


def _end_of(log: int) -> tuple[bytes, Place | None]:
    """Last byte of a log, and the place of its last whole line."""
    size = os.fstat(log).st_size
    tail = os.pread(log, MAX_LINE_BYTES, max(0, size - MAX_LINE_BYTES))
    lines = tail.splitlines()
    return tail[-1:], parse_place(lines[-1]) if lines and tail.endswith(b"\n") else None


def _write(file: int, content: bytes) -> None:
    while content:
        content = content[os.write(file, content) :]


def verify(paths: Sequence[Path]) -> Verification:
    """Check the chain of one log, or of several rotated ones, the oldest first. `OSError` if one cannot be read."""
    place: Place | None = None
    first = total = 0
    for path in paths:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                record, said, error = _parsed(line)
                error = error or _fault_of(record, place)
                if error is not None:
                    return Verification(total, first, f"{path}:{number}: {error}")
                place = said
                first, total = first or place.seq, total + 1
    return Verification(total, first, _fault_of_end(paths[-1], place))


def _parsed(line: bytes) -> tuple[dict[str, object], Place, str | None]:
    """The record of a line, the place that it states, and what is wrong with the line."""
    try:
        record = json.loads(line)
        if isinstance(record, dict) and isinstance(record["seq"], int) and isinstance(record["hash"], str):
            return record, Place(record["seq"], record["hash"]), None
    except (ValueError, LookupError, RecursionError):
        pass
    return {}, Place(), "is not a line of an audit log, or was torn by a crash"


def _fault_of(record: dict[str, object], place: Place | None) -> str | None:
    if record["hash"] != hash_of(record):
        return "was changed: its hash is not that of its content"
    if place is not None and (record["seq"], record.get("previous")) != (place.seq + 1, place.hash):
        return f"does not follow line {place.seq} of the chain: lines were deleted, inserted or moved before it"
    return None


def _fault_of_end(path: Path, place: Place | None) -> str | None:
    """What is wrong at the end of the newest file, as far as `FILE.last` says."""
    try:
        last = parse_place(path.with_name(f"{path.name}.last").read_bytes())
    except OSError:
        return None
    if last.seq and (place is None or place.seq < last.seq) and path.stat().st_size:
        return (
            f"{path}: ends with line {0 if place is None else place.seq} of the chain, and line {last.seq} is missing"
        )
    if place is not None and place.seq == last.seq and place.hash != last.hash:
        return f"{path}: its last line is not the one that was written last"
    return None


def known_fields(pairs: Iterable[tuple[str, str]], allowed: frozenset[str], max_chars: int = 100) -> dict[str, str]:
    """Request parameters that may stand in a log, shortened.

    >>> known_fields([("route", "search"), ("detail", "text of a person")], frozenset({"route"}))
    {'route': 'search'}
    """
    return {name: value[:max_chars] for name, value in pairs if name in allowed}
