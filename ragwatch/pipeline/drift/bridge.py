"""Version bridge: measures the offset between two versions of a judge, on answers that both have read.

It tells the step of every mean at a change of the judge from a change of the service: the mean difference of each
quantity between both versions on the same answers, with its interval.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from ragwatch.errors import StoreError
from ragwatch.formats import canonical
from ragwatch.model.sample import Sample
from ragwatch.pipeline.drift.anchors import SampleSetReading, offsets, scores_of
from ragwatch.ports import Clock, Judge, Query, RecordedEvent, Store, StoredRun
from ragwatch.statistics.tally import Tallies
from ragwatch.telemetry import Telemetry

KIND = "bridge"
MAX_CHARS = 16 << 20  # of all texts together
_SEARCH_FACTOR = 5  # verdicts searched for each answer: the new version may have read some already


class VersionBridge:
    """The loop that measures the offset when the version of one judge has changed.

    Args:
        max_answers: Maximum number of answers to read again: the newest that the old version has read. 0 for none.
        timeout_seconds: A reading that takes longer is cancelled.
    """

    def __init__(
        self,
        judge: Judge,
        max_answers: int,
        *,
        timeout_seconds: float,
        store: Store,
        telemetry: Telemetry,
        clock: Clock,
    ) -> None:
        self.judge = judge
        self._max_answers = max_answers
        self._store = store
        self._telemetry = telemetry
        self._clock = clock
        self._rereading = SampleSetReading(judge, timeout_seconds=timeout_seconds, telemetry=telemetry)
        self._old: str | None = None
        self._before: dict[str, Mapping[str, float | None]] = {}
        self._samples: dict[str, Sample] = {}

    def resume(self) -> None:
        """Detect whether the version has changed since the last process, and select the answers to read.

        A bridge that was not finished starts again.
        """
        self._old, self._before, self._samples = None, {}, {}
        state = self._store.recall(self._name)
        if state is None:
            with suppress(StoreError):  # the first version that can be stored is the one to start with
                self._save()
        elif state["version"] != self.judge.version:
            self._open(str(state["version"]))

    @property
    def is_open(self) -> bool:
        """Whether an offset is being measured."""
        return self._old is not None

    async def step(self) -> bool:
        """Continue an open bridge. True when this step has measured the offset."""
        if self._old is None:
            return False
        at = self._clock()
        readings = await self._rereading.read(self._samples, at)
        if readings is None:
            return False
        await asyncio.to_thread(self._close, self._old, offsets(self._before, scores_of(readings)), at)
        self._old, self._before, self._samples = None, {}, {}
        return True

    @property
    def _name(self) -> str:
        return f"{KIND} {self.judge.name}"

    def _open(self, old: str) -> None:
        since = self._store.pruned_until()  # of earlier answers, retention has kept failures only
        query = Query(judge=self.judge.name, outcome="judged", since=since, limit=_SEARCH_FACTOR * self._max_answers)
        chars = 0
        for entry in self._store.entries(query):  # one by one: they may be large together
            if len(self._samples) >= self._max_answers or chars > MAX_CHARS:
                break
            if entry.sample is None or entry.verdict.judge_version != old:
                continue
            key = entry.verdict.key
            with suppress(StoreError):  # a damaged sample is left out
                record, whole = entry.sample.beginning(MAX_CHARS)
                if not whole:
                    continue
                self._samples[key] = canonical.read(record, key)
                self._before[key] = {str(quantity): score for quantity, score in entry.verdict.scores.items()}
                chars += self._samples[key].chars
        self._old = old

    def _close(self, old: str, measured: Mapping[str, Mapping[str, float]], at: float) -> None:
        body = {"before": old, "after": self.judge.version, "offsets": measured, "answers": len(self._samples)}
        self._store.record_run(StoredRun(KIND, self.judge.name, at, failing=False, body=body), Tallies())
        values = ", ".join(f"{quantity} {record['value']:+.3f}" for quantity, record in measured.items())
        detail = f"{self.judge.name}: {self.judge.version} instead of {old}: {values or 'no answers in common'}"
        self._store.record(RecordedEvent(at, "judge", detail))
        self._telemetry.announced("judge", detail)
        self._save()

    def _save(self) -> None:
        self._store.remember(self._name, {"version": self.judge.version})
