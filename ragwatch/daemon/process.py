"""What belongs to the process, not to a configuration: what a reload keeps, the secret of the state, and settings.

The secret is the key of sampling and of canary marks, in a file beside the database. It is made with the state and
kept: with another secret, a log that is read again is drawn from differently.
"""

import asyncio
import ctypes
import errno
import gc
import os
import resource
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ragwatch.board import Board
from ragwatch.errors import StoreError
from ragwatch.pipeline.leadership import Leadership, Step
from ragwatch.ports import Clock, LoopContext, Store
from ragwatch.ports.capabilities import SharedStore
from ragwatch.statistics.snapshot import Gauge, Gauges
from ragwatch.stores.sqlite.opening import free_bytes
from ragwatch.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class SharedState:
    """What all configurations use in turn."""

    store: Store  # open, with the lock of its directory
    board: Board
    telemetry: Telemetry
    clock: Clock
    secret: bytes = field(default=b"", repr=False)  # secret of the state: the key of sampling and of canary marks
    leadership: Leadership | None = None  # whether this worker leads; None where one process has the store for itself

    @property
    def context(self) -> LoopContext:
        """What loops of every worker use."""
        return LoopContext(self.store, self.telemetry, self.clock)

    @property
    def led_context(self) -> LoopContext:
        """What loops of the leader use."""
        return LoopContext(self.led, self.telemetry, self.clock)

    @property
    def led(self) -> Store:
        """The store for what only the leader writes."""
        return self.store if self.leadership is None else self.leadership.store

    def in_leader(self, step: Step) -> Step:
        """Return a step that runs in the leader only."""
        return step if self.leadership is None else self.leadership.led(step)


KEY_FILE = "ragwatch.secret"
_SECRET_BYTES = 32


def state_secret(state: Path, store: object = None) -> bytes:
    """Read the secret of a state directory; make it if there is none. The caller holds the lock of the directory.

    A store that workers share has one secret for all of them, which replaces that of the directory.

    Raises:
        StoreError: It cannot be read or written, or is damaged.
    """
    stored = stored_secret(state)
    secret = stored or secrets.token_bytes(_SECRET_BYTES)
    if isinstance(store, SharedStore):
        secret = store.shared_secret(secret)
    if secret != stored:
        write_secret(state, secret)
    return secret


def write_secret(state: Path, secret: bytes) -> None:
    """Write the secret of a state directory. Raises `StoreError` if it cannot be written."""
    path = state / KEY_FILE
    new = path.with_name(f"{KEY_FILE}.new")
    try:
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(f"{secret.hex()}\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)  # never half a secret, whenever the process is killed
    except OSError as error:
        raise StoreError(
            f"state: cannot write {path}: {error.strerror}; it must be on a writable disk with free space"
        ) from error


def readable_secret(state: Path) -> bytes | None:
    """Read the secret if this process may; None otherwise. For commands that run canaries beside the daemon."""
    with suppress(StoreError):
        return stored_secret(state)
    return None


def stored_secret(state: Path) -> bytes | None:
    """Read the secret of a state directory; None if there is none.

    Raises:
        StoreError: It cannot be read, or is damaged.
    """
    path = state / KEY_FILE
    try:
        text = path.read_text("ascii").strip()
        secret = bytes.fromhex(text)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(
            f"state: cannot read {path}: {error.strerror}; run as the user whom the state belongs to"
        ) from error
    except ValueError:
        secret = b""
    if len(secret) != _SECRET_BYTES:
        raise StoreError(
            f"state: {path} is damaged: it holds no {2 * _SECRET_BYTES} hexadecimal digits; restore it, or delete it: "
            "a new secret is then made, and answers that are read again may be drawn differently"
        )
    return secret


_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_ARENA_MAX = -8  # M_ARENA_MAX of glibc's malloc.h


def limit_malloc_arenas() -> None:
    """Make all threads share one malloc arena (glibc only).

    Python runs one thread at a time, so one arena suffices. With an arena per thread, each would hold its own copy of
    the free memory, and return it to the kernel and request it again with every batch.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)


def settle() -> None:
    """Exclude all existing objects from garbage collection: they live as long as the process."""
    gc.collect()
    gc.freeze()


def trim_heap() -> None:
    """Return free memory to the kernel (glibc only). It takes about 1 ms per 100 MB."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def raise_file_limit() -> None:
    """Raise the soft limit on open files to the hard limit: every followed log needs a file descriptor."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def log_library_warnings(telemetry: Telemetry) -> Callable[[asyncio.AbstractEventLoop, dict[str, object]], None]:
    """Build an exception handler of the event loop that counts failed attempts to accept connections.

    Without a free file descriptor asyncio retries every second, up to 2048 times (its backlog), and would log each
    attempt with a traceback: megabytes per second. All other errors go to the default handler.
    """

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in _EXHAUSTED:
            telemetry.accept_failed(error.strerror or str(error))
        else:
            loop.default_exception_handler(context)

    return handle


def free_disk_bytes(state: Path) -> Gauges:
    """Measure the free bytes on the disk of the state directory; empty if the file system reports an error."""
    try:
        return {(Gauge.STATE_FREE, ()): float(free_bytes(state))}
    except OSError:
        return {}


def holder() -> str:
    """Name this process: host and process id, unique among all that share a store."""
    return f"{socket.gethostname()}/{os.getpid()}"
