"""Unreadable: what of a source cannot be read at present, told once for each change and not on every look."""

from __future__ import annotations

from collections.abc import Mapping

from ragwatch.telemetry import Telemetry

SETTLED = 60.0
"""Seconds without a failure after which a file counts as well. On a sick disk each look opens it, and fails later."""


class UnreadableFiles:
    """Tells of the files of one source.

    Args:
        source: Its name.
        telemetry: Is told.
    """

    def __init__(self, source: str, telemetry: Telemetry) -> None:
        self._source = source
        self._telemetry = telemetry
        self._told: dict[str, tuple[str, float]] = {}

    def look(self, failing: Mapping[str, str], now: float) -> None:
        """Tell what is new: a file that fails, for another reason than before, or no longer.

        Args:
            failing: Names and why, at this moment.
            now: Seconds since the epoch.
        """
        if not failing and not self._told:
            return
        new = {name: why for name, why in failing.items() if self._told.get(name, ("", 0.0))[0] != why}
        self._told.update((name, (why, now)) for name, why in failing.items())
        well = [name for name, (_, last) in self._told.items() if name not in failing and abs(now - last) >= SETTLED]
        for name in well:
            del self._told[name]
        if new:
            self._telemetry.unreadable(self._source, new, len(self._told))
        if well:
            self._telemetry.readable_again(self._source, well, len(self._told))
