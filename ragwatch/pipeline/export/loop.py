"""The loop that sends the scores of new verdicts in one form. Its place is stored, so that a restart resumes there.

`try_endpoint` tests an endpoint with requests that hold nothing.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import SystemRandom
from time import monotonic

from ragwatch.pipeline.export.evaluation import (
    Evaluation,
    ExportRules,
    ExportTarget,
    Signal,
    Skipped,
    evaluation_of,
    skipped,
)
from ragwatch.pipeline.export.otlp import Failure, OtlpClient, Reply, records_in, rejected_of, request_of
from ragwatch.ports import LoopContext, Query, ScoreRow


async def try_endpoint(target: ExportTarget, signals: Iterable[Signal]) -> Mapping[Signal, str | None]:
    """Send an empty request of each kind. Returns what is wrong with each; None if it was accepted.

    Raises:
        ConfigError: `ca_file` cannot be read.
    """
    client = OtlpClient(target, time.time)
    faults: dict[Signal, str | None] = {}
    try:
        for signal in signals:
            reply = await client.send(signal, request_of(signal, (), ExportRules(), 0.0))
            faults[signal] = None if reply.failure is None else f"{reply.failure}: {reply.why}"
    finally:
        await client.close()
    return faults


MAX_STEP_SECONDS = 1.0  # a reload and a stop wait for running steps
MIN_PAUSE_SECONDS = 1.0
MAX_PAUSE_SECONDS = 60.0
MAX_WAIT_SECONDS = 600.0  # of Retry-After
_MAX_DOUBLINGS = 6
_DROPPING = frozenset({Failure.REFUSED, Failure.TOO_LARGE})


@dataclass(frozen=True, slots=True)
class _Outgoing:
    """Verdicts that were read from the store."""

    last: int | None  # sequence number of the last one; None if there are none
    evaluations: tuple[Evaluation, ...] = ()  # what is sent
    left_out: Counter[Skipped] | None = None  # number of verdicts of which nothing is sent, by reason
    body: bytes = b""  # the request; empty if there is nothing to send
    full: bool = False  # whether more may follow


class ExportLoop:
    """Sends the verdicts on answers with a trace id, in the order of settlement, each at least once.

    A verdict is sent twice only if the process ends, the configuration is loaded again, or the connection breaks before
    the reply is stored. `timer` returns seconds of a clock that nobody sets.
    """

    def __init__(
        self,
        signal: Signal,
        rules: ExportRules,
        context: LoopContext,
        *,
        client: OtlpClient,
        timer: Callable[[], float] = monotonic,
    ) -> None:
        self._store, self._telemetry, self._clock = context.store, context.telemetry, context.clock
        self.signal = signal
        self._rules = rules
        self._client = client
        self._timer = timer
        self._state = f"export {signal}"
        self._random = SystemRandom()
        self._last: int | None = None
        self._limit = rules.batch
        self._failures = 0
        self._not_before = 0.0
        self._waiting_since: float | None = None
        self._running: asyncio.Task[bool] | None = None
        context.telemetry.export_begins(signal, [*map(str, Failure)])

    def resume(self) -> None:
        """Continue after the last verdict that is stored as sent."""
        self._last = None

    async def step(self) -> bool:
        """Send the next verdicts, waiting a second for the reply at most. True if more may be waiting."""
        if self._running is None:
            self._report_wait()
            if self._timer() < self._not_before:
                return False
            self._running = asyncio.create_task(self._send_next())
        done, _ = await asyncio.wait({self._running}, timeout=MAX_STEP_SECONDS)
        self._report_wait()
        if not done:
            return False
        task, self._running = self._running, None
        return task.result()

    async def close(self) -> None:
        """End a request under way, and close connections. What it held is sent again by the next process."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
            self._running = None
        await self._client.close()

    async def _send_next(self) -> bool:
        outgoing = await asyncio.to_thread(self._read)
        if outgoing.last is None:
            self._waiting_since = None
            return False
        if self._waiting_since is None:
            self._waiting_since = self._timer()
        reply = await self._client.send(self.signal, outgoing.body) if outgoing.body else Reply()
        if reply.failure is not None:
            self._telemetry.export_failed(self.signal, reply.failure, reply.why)
            if reply.failure is Failure.TOO_LARGE and len(outgoing.evaluations) > 1:
                self._limit = max(1, self._limit // 2)
                return True
            if reply.failure not in _DROPPING:
                self._pause(reply.wait)
                return False
        self._failures = 0
        self._count(outgoing, reply)
        self._last = outgoing.last  # first: if the store cannot be written, nothing is sent again in this process
        await asyncio.to_thread(self._store.remember, self._state, {"seq": outgoing.last})
        if not outgoing.full:
            self._waiting_since = None
        return outgoing.full

    def _count(self, outgoing: _Outgoing, reply: Reply) -> None:
        for reason, verdicts in (outgoing.left_out or {}).items():
            self._telemetry.export_skipped(self.signal, reason, verdicts)
        records = records_in(self.signal, outgoing.evaluations)
        if reply.failure is not None:
            self._telemetry.exported(self.signal, "dropped", records, reply.why)
            return
        rejected, why = rejected_of(self.signal, reply.body)
        rejected = min(records, rejected)
        self._telemetry.exported(self.signal, "sent", records - rejected)
        self._telemetry.exported(self.signal, "rejected", rejected, why)

    def _pause(self, wait: float | None) -> None:
        """Send nothing for as long as the endpoint asks, or twice as long as after the failure before."""
        self._failures += 1
        pause = min(MAX_PAUSE_SECONDS, MIN_PAUSE_SECONDS * 2 ** min(self._failures, _MAX_DOUBLINGS))
        if wait is None:
            pause = self._random.uniform(pause / 2, pause)
        else:
            pause = min(max(wait, MIN_PAUSE_SECONDS), MAX_WAIT_SECONDS)
        self._not_before = self._timer() + pause

    def _report_wait(self) -> None:
        waited = 0.0 if self._waiting_since is None else self._timer() - self._waiting_since
        self._telemetry.export_waiting(self.signal, waited)

    def _read(self) -> _Outgoing:
        now = self._clock()
        rows = self._new_rows(now)
        if not rows:
            return _Outgoing(None)
        evaluations: list[Evaluation] = []
        left_out: Counter[Skipped] = Counter()
        for row in rows:
            sent = self._evaluation(row, now - self._rules.max_age_seconds)
            if isinstance(sent, Skipped):
                left_out[sent] += 1
            else:
                evaluations.append(sent)
        body = request_of(self.signal, evaluations, self._rules, now) if evaluations else b""
        return _Outgoing(rows[-1].seq, tuple(evaluations), left_out, body, full=len(rows) == self._limit)

    def _new_rows(self, now: float) -> list[ScoreRow]:
        """The verdicts after the last one that was sent; at the first start, those of answers below the maximum age."""
        if self._last is None:
            state = self._store.recall(self._state)
            self._last = None if state is None else int(state["seq"])
        if self._last is not None:
            return self._store.window(self._last, 0.0, self._limit)
        rows = self._store.window(0, now - self._rules.max_age_seconds, self._limit)
        if not rows:  # so that older ones are not searched again
            newest = next(self._store.entries(Query(limit=1, texts=False)), None)
            self._last = 0 if newest is None else newest.seq
        return rows

    def _evaluation(self, row: ScoreRow, oldest: float) -> Evaluation | Skipped:
        reason = skipped(row, oldest)
        if reason is not None:
            return reason
        stored = self._store.find(Query(key=row.key, judge=row.judge, limit=1))
        return evaluation_of(stored[0], self.signal, self._rules) if stored else Skipped.DELETED
