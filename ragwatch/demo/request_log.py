"""Writes the log of the demo service as JSON lines, one write per line; rotates by renaming."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from threading import Lock

MAX_BYTES = 5_000_000
KEPT_FILES = 2  # rotated files, without the current one


class RequestLog:
    """Appends records as JSON lines. Thread-safe.

    Args:
        path: Log file; created with its folder when the first record is written.
        max_bytes: Maximum size: the file is renamed to `NAME.1` (and that one to `NAME.2`) before it grows larger.
    """

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._lock = Lock()

    def append(self, record: Mapping[str, object]) -> None:
        """Writes one record as one line with one write, so that concurrent lines do not mix.

        Raises:
            OSError: The disk is full, or the folder is not writable.
        """
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        with self._lock:
            self._rotate(len(line))
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(handle, line)
            finally:
                os.close(handle)

    def _rotate(self, size_of_line: int) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        size = self.path.stat().st_size if self.path.exists() else 0
        if not size or size + size_of_line <= self._max_bytes:
            return
        for number in range(KEPT_FILES, 0, -1):
            newer = self._numbered(number - 1)
            if newer.exists():
                newer.replace(self._numbered(number))

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}") if number else self.path
