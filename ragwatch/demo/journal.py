"""Journal: the log that the demo service writes and ragwatch reads. One line, one write; it rotates by renaming."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

MOST_BYTES = 5_000_000
KEPT = 2  # rotated files beside the current one


class Journal:
    """Appends records as JSON lines. Safe to use from several threads.

    Args:
        path: The log file; made, with its folder, when the first record is written.
        most_bytes: Size that the file never passes: it is renamed to `NAME.1` (and that to `NAME.2`) before.
    """

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES) -> None:
        self.path = path
        self._most_bytes = most_bytes
        self._lock = Lock()

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one record as one line, with one write, so that a reader never sees two lines mixed.

        Raises:
            OSError: The disk is full, or the folder may not be written.
        """
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        with self._lock:
            self._rotate(len(line))
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(handle, line)
            finally:
                os.close(handle)

    def _rotate(self, coming: int) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        size = self.path.stat().st_size if self.path.exists() else 0
        if not size or size + coming <= self._most_bytes:
            return
        for number in range(KEPT, 0, -1):
            younger = self._numbered(number - 1)
            if younger.exists():
                younger.replace(self._numbered(number))

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}") if number else self.path
