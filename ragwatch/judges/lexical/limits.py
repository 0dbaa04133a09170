"""Limits of the embedded judges: how large a sample may be, and how long reading it may take.

Sizes are checked before anything is read. What a size cannot tell (half a million pairs of a claim and a context) is
bounded by a deadline that the loops check between claims, contexts and sentences. A sample beyond either is unjudged
with the reason `too_large`; nothing is read in part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic, thread_time

from ragwatch.core.verdict import UnjudgedReason
from ragwatch.errors import JudgeError

Check = Callable[[], None]
"""Called between two steps of a reading; raises JudgeError when it has to stop."""


def unlimited() -> None:
    """The check of a reading that may take as long as it needs: training, benches, tests."""


class Deadline:
    """A `Check` that stops a reading after some seconds of CPU time.

    CPU time of the reading thread, so that whether a sample is read does not depend on what else the machine does.
    Asking for it costs microseconds, so it is asked for only when enough wall time has passed for it to have run out.

    Args:
        seconds: How much the reading may take.
        clock: Monotonic CPU seconds of this thread.
        wall: Monotonic seconds; never slower than `clock`.
    """

    def __init__(
        self, seconds: float, clock: Callable[[], float] = thread_time, wall: Callable[[], float] = monotonic
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._wall = wall
        self._start(seconds)

    def _start(self, seconds: float) -> None:
        self._end = self._clock() + seconds
        self._look_at = self._wall() + seconds

    def __call__(self) -> None:
        """Return while there is time left.

        Raises:
            JudgeError: `too_large`.
        """
        now = self._wall()
        if now < self._look_at:
            return
        left = self._end - self._clock()
        if left <= 0.0:
            raise JudgeError(
                UnjudgedReason.TOO_LARGE, f"not read within {self._seconds:g} s of CPU time, which is all it may take"
            )
        self._look_at = now + left

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave out the time of a part that is bounded otherwise."""
        left = self._end - self._clock()
        yield
        self._start(left)


def check_claims(count: int, most: int | None) -> None:
    """Refuse a text of which more claims were cut than are allowed; cutting stops at one more, so no count is known.

    Raises:
        JudgeError: `too_large`.
    """
    if most is not None and count > most:
        raise JudgeError(UnjudgedReason.TOO_LARGE, f"more than the {most} claims allowed")


def check_size(count: int, limit: int, what: str) -> None:
    """Refuse a sample that has more of something than is allowed.

    Raises:
        JudgeError: `too_large`.
    """
    if count > limit:
        raise JudgeError(UnjudgedReason.TOO_LARGE, f"{count} {what}, more than the {limit} allowed")
