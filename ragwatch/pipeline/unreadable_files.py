"""Logs which files of a source cannot be read, once for each change."""

from __future__ import annotations

from collections.abc import Mapping

from ragwatch.telemetry import Telemetry

SETTLE_SECONDS = 60.0
"""Time without a failure after which a file counts as readable: on a failing disk, a file can often be opened."""


class UnreadableFiles:
    """Logs which files of one source cannot be read, once for each change."""

    def __init__(self, source: str, telemetry: Telemetry) -> None:
        self._source = source
        self._telemetry = telemetry
        self._reported: dict[str, tuple[str, float]] = {}  # by file: reason, time of the last failure

    def update(self, failing: Mapping[str, str], now: float) -> None:
        """Log changes: files (by name: why) that fail, that fail for another reason, or that are readable again."""
        if not failing and not self._reported:
            return
        new = {name: why for name, why in failing.items() if self._reported.get(name, ("", 0.0))[0] != why}
        self._reported.update((name, (why, now)) for name, why in failing.items())
        readable = [
            name
            for name, (_, last) in self._reported.items()
            if name not in failing and abs(now - last) >= SETTLE_SECONDS
        ]
        for name in readable:
            del self._reported[name]
        if new:
            self._telemetry.unreadable(self._source, new, len(self._reported))
        if readable:
            self._telemetry.readable_again(self._source, readable, len(self._reported))
