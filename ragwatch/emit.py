"""Writes answers of a RAG service to a log file, or sends them to ragwatch, from inside the service.

Needs the standard library only, and never blocks or raises in the service: lines wait in a bounded queue, a background
thread writes them, and what does not fit is dropped and counted.

    from ragwatch.emit import AnswerLog
    log = AnswerLog("/var/log/app/answers.jsonl")  # or AnswerLog("http://localhost:10477/v1/samples", token="...")
    answer_id = log.answer("Who wrote Faust?", ["Faust is a play by Goethe."], "Goethe.", route="search")
    log.feedback(answer_id, "up")
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import threading
import time
import urllib.error
import urllib.request
import weakref
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from uuid import uuid4

MAX_QUEUED_LINES, MAX_QUEUED_BYTES = 10_000, 16 << 20
MAX_BATCH_LINES, MAX_BATCH_BYTES = 500, 1 << 20
EXIT_SECONDS = 1.0
CALL_SECONDS = 5.0
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.5, 30.0
WARNING_SECONDS = 60.0
FILE_MODE = 0o640
_TEMPORARY = frozenset({408, 425, 429, 500, 502, 503, 504})
_MAX_REPLY_BYTES = 64 << 10
_logs: weakref.WeakSet[AnswerLog] = weakref.WeakSet()


class AnswerLog:
    """Writes one JSON line for each answer, in the format `canonical` of ragwatch. Thread-safe and safe to fork.

    Args:
        target: Path of a log file, or URL of `/v1/samples` of ragwatch.
        token: Bearer token for the URL.
        max_lines: Lines that may wait; further ones are dropped.
        max_bytes: Bytes that may wait.

    Attributes:
        dropped: Lines that did not fit in the queue.
        failed: Lines that could not be encoded or written, or that ragwatch refused.
    """

    def __init__(
        self,
        target: str | os.PathLike[str],
        *,
        token: str | None = None,
        max_lines: int = MAX_QUEUED_LINES,
        max_bytes: int = MAX_QUEUED_BYTES,
    ) -> None:
        place = os.fspath(target)
        self._target = _Url(place, token) if place.startswith(("http://", "https://")) else _File(place)
        self._max_lines, self._max_bytes = max_lines, max_bytes
        self.dropped = 0
        self.failed = 0
        self._reset()
        _logs.add(self)

    def _reset(self) -> None:
        """Start with an empty queue: at first, and in a forked child, whose parent writes what waits."""
        self._lock = threading.RLock()  # re-entrant, so that a signal handler may log
        self._changed = threading.Condition(self._lock)
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._writing = 0
        self._thread: threading.Thread | None = None
        self._warned_at = -WARNING_SECONDS

    def answer(
        self,
        question: str | None,
        contexts: Iterable[object],
        answer: str,
        *,
        id: str | None = None,  # noqa: A002 - the name of the field
        **fields: object,
    ) -> str:
        """Log one answer. Returns its id, which `feedback` takes.

        Args:
            question: The question; None if it is not known.
            contexts: The retrieved passages in rank order: texts, objects with `text`, or documents of a framework.
            answer: The answer.
            id: Id of the request; by default a random one.
            fields: Further fields of the format, such as `route`, `metadata`, `history`, `trace_id`, `user_score`.
        """
        name = uuid4().hex if id is None else str(id)
        try:
            passages = [_context(item) for item in contexts]
        except Exception:  # noqa: BLE001 - an iterable of the service may raise anything
            self._fail(1)
            return name
        texts = {"question": question, "contexts": passages, "answer": answer}
        self.record({"id": name, "at": time.time(), **fields, **texts})
        return name

    def feedback(self, id: str, user_score: object, **fields: object) -> None:  # noqa: A002 - the name of the field
        """Log what a user says of an answer: true or false, `up` or `down`, or a number from 0 to 1."""
        self.record({"feedback_for": id, "at": time.time(), **fields, "user_score": user_score})

    def record(self, fields: Mapping[str, object]) -> None:
        """Log one record as it is."""
        try:
            line = _encoded(fields)
        except Exception:  # noqa: BLE001 - a value of the service may raise anything
            self._fail(1)
            return
        with self._lock:
            if len(self._lines) >= self._max_lines or self._bytes + len(line) > self._max_bytes:
                self.dropped += 1
                return
            self._lines.append(line)
            self._bytes += len(line)
            self._start()
            self._changed.notify_all()

    def flush(self, seconds: float = EXIT_SECONDS) -> bool:
        """Wait until all lines are written, for a limited time. Returns whether they are."""
        with self._lock:
            return self._changed.wait_for(lambda: not self._lines and not self._writing, max(0.0, seconds))

    def _start(self) -> None:
        """Start the thread if it does not run; it cannot at the exit of the process, where `_exit` writes the rest."""
        if self._thread is None or not self._thread.is_alive():
            try:
                self._thread = threading.Thread(target=self._work, name="ragwatch.emit", daemon=True)
                self._thread.start()
            except RuntimeError:
                self._thread = None

    def _work(self) -> None:
        pause = 0.0
        while True:
            with self._lock:
                while not self._lines:
                    self._changed.wait()
                batch = self._batch()
            pause = self._try(batch, pause)
            if pause:
                time.sleep(pause)

    def _batch(self) -> list[bytes]:
        """The next lines. They stay in the queue until they are written."""
        batch: list[bytes] = []
        size = 0
        for line in self._lines:
            size += len(line)
            if batch and (len(batch) >= MAX_BATCH_LINES or size > MAX_BATCH_BYTES):
                break
            batch.append(line)
        self._writing = len(batch)
        return batch

    def _try(self, batch: list[bytes], pause: float) -> float:
        """Write a batch. Returns the seconds to wait before the next attempt, 0 after a success."""
        try:
            done, failed = self._target.write(batch)
        except OSError as error:
            self._warn(f"cannot write to {self._target}: {error}; {len(self._lines)} lines wait")
            delay = min(MAX_PAUSE_SECONDS, pause * 2 or FIRST_PAUSE_SECONDS)
            return max(delay, min(MAX_PAUSE_SECONDS, getattr(error, "retry_after", 0.0)))
        except Exception as error:  # noqa: BLE001 - the thread never ends
            self._warn(f"cannot write to {self._target}: {error}")
            done = failed = len(batch)
        with self._lock:
            for line in batch[:done]:
                self._lines.popleft()
                self._bytes -= len(line)
            self._writing = 0
            self.failed += failed
            self._changed.notify_all()
        if failed:
            self._warn(f"{failed} of {done} lines were refused by {self._target}")
        return 0.0

    def _fail(self, count: int) -> None:
        with self._lock:
            self.failed += count

    def _warn(self, message: str) -> None:
        now = time.monotonic()
        if now - self._warned_at >= WARNING_SECONDS:
            self._warned_at = now
            logging.getLogger("ragwatch.emit").warning("ragwatch.emit: %s", message)

    def _exit(self, until: float) -> None:
        """Write what waits, until an instant of the monotonic clock."""
        if self._thread is not None:
            self.flush(until - time.monotonic())
        while self._lines and time.monotonic() < until and not self._try(self._batch(), 0.0):
            pass  # the process is too far down for a thread


class AnswerHandler(logging.Handler):
    """Passes log calls with `extra={"rag": {...}}` to an `AnswerLog`, and ignores all others."""

    def __init__(self, target: str | os.PathLike[str], token: str | None = None) -> None:
        super().__init__()
        self.log = AnswerLog(target, token=token)

    def emit(self, record: logging.LogRecord) -> None:
        """Log the fields of one answer."""
        fields = getattr(record, "rag", None)
        if isinstance(fields, Mapping):
            self.log.record({"id": uuid4().hex, "at": record.created, **fields})


class _File:
    """A log file, opened for appending. Opened again after it was rotated."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = -1
        self._torn = False

    def __str__(self) -> str:
        return self._path

    def write(self, lines: Sequence[bytes]) -> tuple[int, int]:
        """Write each line with one call, so that lines of several processes do not mix.

        Returns how many are done, and how many of these failed for good; `OSError` if none is done, to be tried again.
        """
        file = self._open()
        for done, line in enumerate(lines):
            try:
                written = os.write(file, b"\n" + line if self._torn else line) - self._torn
            except OSError:
                if done:
                    return done, 0
                raise
            self._torn = written < len(line)
            if self._torn:  # the disk is full; the rest of the line would follow what others write meanwhile
                return done + 1, 1
        return len(lines), 0

    def _open(self) -> int:
        if self._file >= 0 and not self._is_moved():
            return self._file
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self._file = os.open(
            self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), FILE_MODE
        )
        return self._file

    def _is_moved(self) -> bool:
        try:
            there, ours = Path(self._path).stat(), os.fstat(self._file)
        except OSError:
            return True
        return (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino)


class _RetryError(OSError):
    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, which would carry the token to another host."""

    def redirect_request(self, *_: object) -> None:
        """Refuse."""


class _Url:
    """The address of `/v1/samples` of ragwatch."""

    def __init__(self, url: str, token: str | None) -> None:
        self._url = url
        self._headers = {"Content-Type": "application/x-ndjson"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._opener = urllib.request.build_opener(_NoRedirect)

    def __str__(self) -> str:
        return self._url.partition("?")[0]

    def write(self, lines: Sequence[bytes]) -> tuple[int, int]:
        """Send the lines in one request, as `_File.write`; ragwatch recognises by ids what it has received before."""
        request = urllib.request.Request(self._url, b"".join(lines), self._headers)  # noqa: S310 - http or https only
        try:
            with self._opener.open(request, timeout=CALL_SECONDS) as reply:
                return len(lines), _rejected(reply.read(_MAX_REPLY_BYTES))
        except urllib.error.HTTPError as error:
            with error:
                if error.code not in _TEMPORARY:
                    return len(lines), len(lines)
                raise _RetryError(f"status {error.code}", _seconds(error.headers.get("Retry-After"))) from error


def _rejected(reply: bytes) -> int:
    try:
        return int(json.loads(reply)["rejected"])
    except (ValueError, LookupError, TypeError):
        return 0


def _seconds(header: str | None) -> float:
    try:
        seconds = float(header or 0.0)
    except ValueError:
        return 0.0
    return seconds if isfinite(seconds) else 0.0


def _context(item: object) -> object:
    """A passage as text or as an object with a text; documents of frameworks by their attributes."""
    if isinstance(item, str | Mapping):
        return item
    item = getattr(item, "node", item)
    for name in ("page_content", "text", "content"):
        text = getattr(item, name, None)
        if isinstance(text, str):
            identity, details = getattr(item, "id", None) or getattr(item, "id_", None), getattr(item, "metadata", None)
            date = details.get("updated_at") if isinstance(details, Mapping) else None
            parts = {"text": text, "id": None if identity is None else str(identity), "updated_at": date}
            return {name: part for name, part in parts.items() if part is not None}
    return str(item)


def _encoded(fields: Mapping[str, object]) -> bytes:
    """One line of JSON."""
    try:
        text = _dumps(fields)
    except ValueError:  # NaN or infinity, which JSON does not have
        text = _dumps(_finite(fields))
    return text.encode("utf-8", "replace") + b"\n"


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)


def _plain(value: object) -> object:
    """A value that JSON does not have, such as a number of numpy, a set or a time."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return list(value)
    item: object = getattr(value, "item", None) or getattr(value, "isoformat", None)
    return item() if callable(item) else str(value)


def _finite(value: object) -> object:
    """The value with null for numbers that are not finite."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_finite(item) for item in value]
    if hasattr(value, "item"):
        return _finite(_plain(value))
    return value


def _close_all() -> None:
    until = time.monotonic() + EXIT_SECONDS
    for log in sorted(_logs, key=lambda log: log._thread is not None):  # noqa: SLF001 - threads go on meanwhile
        log._exit(until)  # noqa: SLF001 - of this module


def _reset_all() -> None:
    for log in list(_logs):
        log._reset()  # noqa: SLF001 - of this module


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)
