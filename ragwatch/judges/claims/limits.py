"""Limits the size of samples and the CPU time of reading them, for the embedded judges.

Sizes are checked before anything is read. Combinations (half a million pairs of a claim and a context) are bounded by a
deadline that the loops check between claims, contexts and sentences. A sample beyond either limit is unjudged with the
reason `too_large`; it is never read in part.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic, thread_time
from typing import TypeVar

from ragwatch.errors import JudgeError
from ragwatch.statistics.verdict import UnjudgedReason

Item = TypeVar("Item")
Check = Callable[[], None]
"""Called between the steps of a reading; raises JudgeError to stop it."""


def unlimited() -> None:
    """A `Check` without a limit."""


def checked(items: Iterable[Item], check: Check) -> Iterator[Item]:
    """Yield items, with a check before each one."""
    for item in items:
        check()
        yield item


class Deadline:
    """A `Check` that stops a reading after some seconds of CPU time.

    It measures the CPU time of the thread, so that the load of the machine has no effect. Measuring it costs
    microseconds, so it is measured only after enough wall time for the deadline to have passed.

    Args:
        seconds: Maximum CPU time of the reading.
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
        self._next_check = self._wall() + seconds

    def __call__(self) -> None:
        """Check the deadline; a JudgeError (`too_large`) when it has passed."""
        now = self._wall()
        if now < self._next_check:
            return
        remaining = self._end - self._clock()
        if remaining <= 0.0:
            raise JudgeError(UnjudgedReason.TOO_LARGE, f"not read within {self._seconds:g} s of CPU time, the limit")
        self._next_check = now + remaining

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the time of a step that has a limit of its own."""
        remaining = self._end - self._clock()
        yield
        self._start(remaining)


def check_claims(count: int, max_claims: int | None) -> None:
    """Reject a text with too many claims as `too_large`. Splitting stops at one more, so their number is unknown."""
    if max_claims is not None and count > max_claims:
        raise JudgeError(UnjudgedReason.TOO_LARGE, f"more than the {max_claims} claims allowed")


def check_size(count: int, limit: int, what: str) -> None:
    """Reject a sample with a count above a limit as `too_large`."""
    if count > limit:
        raise JudgeError(UnjudgedReason.TOO_LARGE, f"{count} {what}, more than the {limit} allowed")
