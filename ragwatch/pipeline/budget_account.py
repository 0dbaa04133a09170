"""Budget accounts: reserve the worst-case cost of a call before it, so that no cap is ever exceeded."""

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

HALVINGS = 7  # the waiting time in a message is precise to 1/128 of the span of a cap


class StoredBudgetAccount:
    """The budget of one judge, on accounts that survive a kill.

    Args:
        judge: Name of the judge.
        caps: What it may spend; none for no limit. Spending is stored in either case.
        accounts: Store reservations and payments.
        clock: Seconds since the epoch.
    """

    def __init__(self, judge: str, caps: Sequence[SpendingCap], accounts: Accounts, clock: Callable[[], float]) -> None:
        self._judge = judge
        self._caps = tuple(caps)
        self._accounts = accounts
        self._clock = clock

    async def reserve(self, worst: Cost) -> int:
        """Reserve the worst-case cost. Returns the number of the reservation.

        Raises:
            JudgeError: `over_budget`: it would exceed a cap at present, or (permanent) at any time.
            StoreError: It could not be written.
        """
        return await asyncio.to_thread(self._reserve, worst)

    async def settle(self, reservation: int, actual: Cost) -> None:
        """Replace a reservation by the actual cost. One that is never settled counts in full.

        Raises:
            StoreError: It could not be written.
        """
        await asyncio.to_thread(self._accounts.pay, reservation, actual)

    def _reserve(self, worst: Cost) -> int:
        for cap in self._caps:
            if not fits(cap, Cost(), worst):
                message = f"one call may cost {_amount(worst)}, more than {_limit(cap)}; raise that budget"
                raise JudgeError(UnjudgedReason.OVER_BUDGET, message, permanent=True)
        now = self._clock()
        reservation = self._accounts.reserve(self._judge, worst, self._caps, now=now)
        if reservation is None:
            waits = [(cap, self._wait(cap, worst, now)) for cap in self._caps]
            cap, seconds = max(waits, key=lambda wait: wait[1])
            message = f"no budget for {_amount(worst)} within {_limit(cap)}; expected in {seconds:.0f} s"
            raise JudgeError(UnjudgedReason.OVER_BUDGET, message, permanent=False)
        return reservation

    def _wait(self, cap: SpendingCap, worst: Cost, now: float) -> float:
        """Seconds until a cap allows a cost, if nothing more is spent, because earlier calls leave its span."""
        if fits(cap, self._accounts.spent(self._judge, now - cap.seconds), worst):
            return 0.0
        low, high = 0.0, cap.seconds
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            if fits(cap, self._accounts.spent(self._judge, now + middle - cap.seconds), worst):
                high = middle
            else:
                low = middle
        return high


class InMemoryBudget(StoredBudgetAccount):
    """The budget of a judge without a store, as in `ragwatch judge`: it ends with the process.

    Args:
        caps: What may be spent; none for no limit.
        clock: Seconds since the epoch.
    """

    def __init__(self, caps: Sequence[SpendingCap] = (), clock: Callable[[], float] = time.time) -> None:
        self._memory = _MemoryAccounts()
        super().__init__("", caps, self._memory, clock)

    def spent(self) -> Cost:
        """Cost reserved or paid so far."""
        return self._memory.spent("", float("-inf"))


@dataclass(slots=True)
class _Call:
    """The cost reserved or paid for a call, and when the call began."""

    at: float
    cost: Cost
    settled: bool = False


class _MemoryAccounts:
    """Accounts in memory."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._lock = threading.Lock()

    def reserve(self, judge: str, worst: Cost, caps: Sequence[SpendingCap], *, now: float) -> int | None:
        """Reserve the worst-case cost; None when it would exceed a cap."""
        with self._lock:
            if not all(fits(cap, self.spent(judge, now - cap.seconds), worst) for cap in caps):
                return None
            self._calls.append(_Call(now, worst))
            return len(self._calls) - 1

    def pay(self, reservation: int, actual: Cost) -> None:
        """Replace a reservation by the actual cost, once."""
        with self._lock:
            call = self._calls[reservation]
            if not call.settled:
                call.cost, call.settled = actual, True

    def spent(self, _judge: str, since: float) -> Cost:
        """Cost of calls that began after an instant."""
        return sum((call.cost for call in self._calls if call.at > since), Cost())


def _amount(cost: Cost) -> str:
    return f"${cost.usd:.4f} and {cost.tokens} tokens"


def _limit(cap: SpendingCap) -> str:
    parts = [] if cap.usd is None else [f"${cap.usd:.2f}"]
    parts += [] if cap.tokens is None else [f"{cap.tokens} tokens"]
    return f"{' and '.join(parts)} in {cap.seconds:.0f} s"
