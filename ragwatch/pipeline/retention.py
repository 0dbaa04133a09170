"""Retention: prunes the store to its maximum age and size."""

import asyncio

from ragwatch.ports import LoopContext, Retention, SavedState

STATE = "keeping"
MAX_CLOCK_STEP_SECONDS = 86400.0  # between two steps; a clock that moves on by more is not trusted at once


class RetentionLoop:
    """The loop that prunes the store."""

    def __init__(self, retention: Retention, context: LoopContext) -> None:
        self._store, self._telemetry, self._clock = context.store, context.telemetry, context.clock
        self._retention = retention
        self._last: SavedState = None  # when it pruned last, and whether the clock was doubted then

    def resume(self) -> None:
        """Continue after the last step that is stored: another worker may have pruned meanwhile."""
        self._last = None

    async def step(self) -> bool:
        """Prune once. True when something was deleted.

        The first step after a jump of the clock deletes nothing: if the clock were wrong for a moment, all verdicts
        would be too old. This holds after a restart or a reload as well: a host may come up with any time.
        """
        deleted = await asyncio.to_thread(self._step)
        if deleted:
            self._telemetry.pruned(deleted)
        return deleted > 0

    def _step(self) -> int:
        now, before = self._clock(), self._last or self._store.recall(STATE)
        doubted = before is not None and not before["doubted"] and now - float(before["at"]) > MAX_CLOCK_STEP_SECONDS
        self._last = {"at": now, "doubted": doubted}  # kept in memory as well: it must change on a full disk, too
        deleted = 0 if doubted else self._store.prune(self._retention, now=now)
        self._store.remember(STATE, self._last)
        return deleted
