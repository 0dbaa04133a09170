"""Purse: where a judge sets money aside before a call. Its caps are never passed, whatever calls are under way."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ragwatch.core.budget import Cost, SpendingCap, fits
from ragwatch.core.verdict import UnjudgedReason
from ragwatch.errors import JudgeError
from ragwatch.ports import Accounts

HALVINGS = 7  # when there will be room is told to a 128th of the cap's span


class StoredBudgetAccount:
    """Money of one judge, on accounts that survive a kill.

    Args:
        judge: Name of the judge.
        caps: What it may spend; none for no limit, and then spending is kept all the same.
        accounts: Where it is kept.
        clock: Seconds since the epoch.
    """

    def __init__(self, judge: str, caps: Sequence[SpendingCap], accounts: Accounts, clock: Callable[[], float]) -> None:
        self._judge = judge
        self._caps = tuple(caps)
        self._accounts = accounts
        self._clock = clock

    async def reserve(self, worst: Cost) -> int:
        """Set the worst case aside. Returns the reservation's number.

        Raises:
            JudgeError: `over_budget`: the caps have no room for it at present, or (permanent) never will.
            StoreError: It could not be written.
        """
        return await asyncio.to_thread(self._reserve, worst)

    async def settle(self, reservation: int, actual: Cost) -> None:
        """Replace what was set aside by what the call did cost. What is never settled counts in full.

        Raises:
            StoreError: It could not be written.
        """
        await asyncio.to_thread(self._accounts.pay, reservation, actual)

    def _reserve(self, worst: Cost) -> int:
        for cap in self._caps:
            if not fits(cap, Cost(), worst):
                message = f"one call may cost {_told(worst)}, more than {_limit(cap)}; raise that budget"
                raise JudgeError(UnjudgedReason.OVER_BUDGET, message, permanent=True)
        now = self._clock()
        found = self._accounts.reserve(self._judge, worst, self._caps, now=now)
        if found is None:
            cap, seconds = max(((cap, self._wait(cap, worst, now)) for cap in self._caps), key=lambda each: each[1])
            message = f"no room for {_told(worst)} within {_limit(cap)}; expected in {seconds:.0f} s"
            raise JudgeError(UnjudgedReason.OVER_BUDGET, message, permanent=False)
        return found

    def _wait(self, cap: SpendingCap, worst: Cost, now: float) -> float:
        """Seconds until a cap has room, when nothing more is spent: calls leave its span by and by."""
        if fits(cap, self._accounts.spent(self._judge, now - cap.seconds), worst):
            return 0.0
        full, room = 0.0, cap.seconds
        for _ in range(HALVINGS):
            middle = (full + room) / 2
            if fits(cap, self._accounts.spent(self._judge, now + middle - cap.seconds), worst):
                room = middle
            else:
                full = middle
        return room


class InMemoryBudget(StoredBudgetAccount):
    """Money of a judge that has no store behind it, as in `ragwatch judge`: the accounts end with the process.

    Args:
        caps: What may be spent; none for no limit.
        clock: Seconds since the epoch.
    """

    def __init__(self, caps: Sequence[SpendingCap] = (), clock: Callable[[], float] = time.time) -> None:
        self._notebook = _MemoryAccounts()
        super().__init__("", caps, self._notebook, clock)

    def spent(self) -> Cost:
        """Money set aside or paid so far."""
        return self._notebook.spent("", float("-inf"))


@dataclass(slots=True)
class _Call:
    """What was set aside or paid for a call, and when it began."""

    at: float
    cost: Cost
    settled: bool = False


class _MemoryAccounts:
    """Accounts in memory."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._turn = threading.Lock()

    def reserve(self, judge: str, worst: Cost, caps: Sequence[SpendingCap], *, now: float) -> int | None:
        """Set money aside; None when a cap would be passed."""
        with self._turn:
            if not all(fits(cap, self.spent(judge, now - cap.seconds), worst) for cap in caps):
                return None
            self._calls.append(_Call(now, worst))
            return len(self._calls) - 1

    def pay(self, reservation: int, actual: Cost) -> None:
        """Replace what was set aside; the first word counts."""
        with self._turn:
            call = self._calls[reservation]
            if not call.settled:
                call.cost, call.settled = actual, True

    def spent(self, _judge: str, since: float) -> Cost:
        """Money for calls begun after an instant."""
        return sum((each.cost for each in self._calls if each.at > since), Cost())


def _told(cost: Cost) -> str:
    return f"${cost.usd:.4f} and {cost.tokens} tokens"


def _limit(cap: SpendingCap) -> str:
    parts = [] if cap.usd is None else [f"${cap.usd:.2f}"]
    parts += [] if cap.tokens is None else [f"{cap.tokens} tokens"]
    return f"{' and '.join(parts)} in {cap.seconds:.0f} s"
