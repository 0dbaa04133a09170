"""Bridge: when a judge changes its version, the new one reads what the old one has read, until the offset is known.

So the step that every mean makes at a change of judge is told from a step of the service: the same answers, both
judges, the mean difference of each quantity with its interval.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from ragwatch.core.sample import Sample
from ragwatch.core.tally import Tallies
from ragwatch.errors import StoreError
from ragwatch.formats import canonical
from ragwatch.pipeline.drift.anchors import offsets
from ragwatch.pipeline.drift.rereading import SampleSetReading
from ragwatch.ports import Judge, Query, RecordedEvent, Store, StoredRun
from ragwatch.telemetry import Telemetry

KIND = "bridge"
MOST_CHARS = 16 << 20  # of their texts together
_SEARCHED = 5  # answers looked at for each that is wanted: the new version may have read some already


class VersionBridge:
    """The loop that looks for a change of one judge's version.

    Args:
        judge: The judge in force.
        most: Answers to read again; the newest that the old version has read. 0 for none.
        timeout_seconds: A reading that takes longer is given up.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        judge: Judge,
        most: int,
        *,
        timeout_seconds: float,
        store: Store,
        telemetry: Telemetry,
        clock: Callable[[], float],
    ) -> None:
        self.judge = judge
        self._most = most
        self._store = store
        self._telemetry = telemetry
        self._clock = clock
        self._rereading = SampleSetReading(judge, timeout_seconds=timeout_seconds, telemetry=telemetry)
        self._old: str | None = None
        self._before: dict[str, Mapping[str, float | None]] = {}
        self._samples: dict[str, Sample] = {}

    def resume(self) -> None:
        """Find out whether the version has changed since the last process, and which answers both are to have read.

        A bridge that was not finished is begun again.

        Raises:
            StoreError: The store cannot be read.
        """
        kept = self._store.recall(self._name)
        if kept is None:
            with suppress(StoreError):  # the first version that can be noted is the one to begin with
                self._remember()
        elif kept["version"] != self.judge.version:
            self._open(str(kept["version"]))

    @property
    def is_open(self) -> bool:
        """Whether an offset is still to be found."""
        return self._old is not None

    async def step(self) -> bool:
        """Go on with an open bridge. True when the offset was found in this step.

        Raises:
            StoreError: It could not be written.
        """
        if self._old is None:
            return False
        at = self._clock()
        read = await self._rereading.read(self._samples, at)
        if read is None:
            return False
        after = {key: {str(each): value for each, value in found.scores.items()} for key, found in read.items()}
        await asyncio.to_thread(self._close, self._old, offsets(self._before, after), at)
        self._old, self._before, self._samples = None, {}, {}
        return True

    @property
    def _name(self) -> str:
        return f"{KIND} {self.judge.name}"

    def _open(self, old: str) -> None:
        since = self._store.picked_until()  # of earlier ones failures are left alone, and these do not stand for all
        wanted = Query(judge=self.judge.name, outcome="judged", since=since, limit=_SEARCHED * self._most)
        chars = 0
        for each in self._store.entries(wanted):  # one by one: they may be large together
            if len(self._samples) >= self._most or chars > MOST_CHARS:
                break
            if each.sample is None or _version(each.bare) != old:
                continue
            key = str(each.place["key"])
            with suppress(StoreError):  # one that is damaged is no reason to leave out the others
                record, whole = each.sample.beginning(MOST_CHARS)
                if not whole:
                    continue
                self._samples[key] = canonical.read(record, key)
                self._before[key] = each.bare["scores"]
                chars += self._samples[key].chars
        self._old = old

    def _close(self, old: str, found: Mapping[str, Mapping[str, float]], at: float) -> None:
        body = {"before": old, "after": self.judge.version, "offsets": found, "answers": len(self._samples)}
        self._store.record_run(StoredRun(KIND, self.judge.name, at, failing=False, body=body), Tallies())
        told = ", ".join(f"{quantity} {each['value']:+.3f}" for quantity, each in found.items())
        detail = f"{self.judge.name}: {self.judge.version} instead of {old}: {told or 'no answers in common'}"
        self._store.record(RecordedEvent(at, "judge", detail))
        self._telemetry.announced("judge", detail)
        self._remember()

    def _remember(self) -> None:
        self._store.remember(self._name, {"version": self.judge.version})


def _version(verdict: Mapping[str, Any]) -> object:
    return verdict["judge"]["version"]
