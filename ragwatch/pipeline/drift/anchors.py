"""Anchors: fixed samples that a judge reads again and again, so that its own drift is told from the service's.

They are read at set times, and at once when the judge's version has changed. What is compared is each verdict with
that of the first reading of the same set: with as many verdicts changed one way as the other, the judge is merely
unsteady; with more one way than chance explains (McNemar), it has moved, and every mean with it.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

from ragwatch.core.labels.agreement import VerdictFlips, flips, share
from ragwatch.core.offset import offset
from ragwatch.core.sample import Sample
from ragwatch.core.scores import Quantity
from ragwatch.core.snapshot import Gauge, Gauges
from ragwatch.core.tally import Tallies
from ragwatch.pipeline.drift.rereading import AnchorReading, SampleSetReading
from ragwatch.ports import Judge, NoteStore, StoredRun
from ragwatch.telemetry import Telemetry

KIND = "anchor"
CLAIMED_SECONDS = 3600.0  # the right to read a set in a fleet: longer than that takes
Scores = Mapping[str, Mapping[str, float | None]]  # by anchor, by quantity


@dataclass(frozen=True, slots=True)
class Anchor:
    """A sample that stays, and people's word on it: whether the answer is good; None where nobody was asked."""

    sample: Sample
    good: bool | None = None

    @property
    def key(self) -> str:
        """A hash of everything that a judge reads."""
        read = [self.sample.question, [each.text for each in self.sample.contexts], self.sample.answer]
        return blake2b(json.dumps(read).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class AnchorRules:
    """How anchors are read and compared.

    Attributes:
        every: Seconds between two readings.
        quantity: What is compared.
        at_least: Score from which the verdict is yes; for quantities that ought to be low, no.
        risk: Probability that a steady judge is said to have moved, at each reading: `every` / time between false
            alarms.
        timeout_seconds: A reading of one anchor that takes longer is given up.
    """

    every: float = 86400.0
    quantity: Quantity = Quantity.FAITHFULNESS
    at_least: float = 1.0
    risk: float = 1.0 / 90.0
    timeout_seconds: float = 60.0


def fingerprint(anchors: Sequence[Anchor]) -> str:
    """A hash of the set, whatever its order: readings of different sets are not compared.

    >>> one, two = (Anchor(Sample(name, "why?", (), name)) for name in "ab")
    >>> fingerprint([one, two]) == fingerprint([two, one]) != fingerprint([one])
    True
    """
    return blake2b("".join(sorted({each.key for each in anchors})).encode(), digest_size=16).hexdigest()


class AnchorLoop:
    """The loop that reads one set with one judge.

    Args:
        anchors: The set.
        judge: Who reads; its own instance or the judging loop's, as long as it stays open.
        store: Keeps the readings.
        holder: Name of this process in a fleet.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        rules: AnchorRules,
        anchors: Sequence[Anchor],
        *,
        judge: Judge,
        store: NoteStore,
        telemetry: Telemetry,
        holder: str,
        clock: Callable[[], float],
    ) -> None:
        self.rules = rules
        self.judge = judge
        self._anchors = {each.key: each for each in anchors}
        self._fingerprint = fingerprint(anchors)
        self._store = store
        self._telemetry = telemetry
        self._holder = holder
        self._clock = clock
        self._turn = asyncio.Lock()
        self._rereading = SampleSetReading(judge, timeout_seconds=rules.timeout_seconds, telemetry=telemetry)
        self._first: dict[str, Any] | None = None
        self._last: dict[str, Any] | None = None
        self._found: VerdictFlips | None = None

    @property
    def name(self) -> str:
        """The judge's name, under which readings are kept."""
        return self.judge.name

    def resume(self) -> None:
        """Continue with the readings of earlier processes, where they are of the same set.

        Raises:
            StoreError: The store cannot be read.
        """
        kept = self._store.recall(f"{KIND} {self.name}")
        if kept is not None and kept["fingerprint"] == self._fingerprint:
            self._first, self._last = kept["first"], kept["last"]
            self._compare()

    def due(self) -> bool:
        """Whether the set is to be read now: for the first time, after a while, or by another version."""
        last = self._last
        if last is None or last["version"] != self.judge.version:
            return True
        return (
            abs(self._clock() - float(last["at"])) >= self.rules.every
        )  # in either direction: the clock may have been ahead

    def moved(self) -> bool:
        """Whether the judge has moved, as of the last reading."""
        return self._found is not None and self._found.p <= self.rules.risk

    def gauges(self) -> Gauges:
        """What the last reading showed; nothing before there are two."""
        if self._found is None:
            return {}
        return {
            (Gauge.JUDGE_DRIFT_FLIPS, (self.name,)): self._found.rate.value,
            (Gauge.JUDGE_DRIFT_ALARM, (self.name,)): float(self.moved()),
        }

    async def step(self) -> bool:
        """Read the set, if it is time to. False when it was not, the judge is out of order, or another one reads it.

        Raises:
            StoreError: The reading could not be written.
        """
        async with self._turn:
            if not self.due() or not await asyncio.to_thread(self._claim):
                return False
            at = self._clock()
            read = await self._rereading.read({key: each.sample for key, each in self._anchors.items()}, at)
            if read is None:
                return False
            await asyncio.to_thread(self._keep, read, at)
            return True

    async def renew(self) -> bool:
        """Compare with the last reading from now on: the judge is meant to be as it is. False before the first one.

        Raises:
            StoreError: It could not be written.
        """
        async with self._turn:
            if self._last is None:
                return False
            self._first = self._last
            self._compare()
            await asyncio.to_thread(self._remember)
            return True

    def _claim(self) -> bool:
        name, now = f"{KIND} {self.name}", self._clock()
        return self._store.claim(name, self._holder, now=now, seconds=CLAIMED_SECONDS)

    def _keep(self, read: Mapping[str, AnchorReading], at: float) -> None:
        scores = {key: {str(each): value for each, value in found.scores.items()} for key, found in read.items()}
        self._last = {"at": at, "version": self.judge.version, "scores": scores}
        self._first = self._first or self._last
        self._compare()
        reasons = Counter(found.reason for found in read.values() if found.reason is not None)
        body = {
            "fingerprint": self._fingerprint,
            "version": self.judge.version,
            "since": self._first["version"],
            "read": len(read) - reasons.total(),
            "unread": dict(reasons),
            "flips": None if self._found is None else asdict(self._found),
            "offsets": offsets(self._first["scores"], scores),
            "agreement": self._agreement(scores),
        }
        self._store.record_run(StoredRun(KIND, self.name, at, self.moved(), body), Tallies())
        self._remember()
        changed = 0 if self._found is None else round(self._found.rate.value * self._found.rate.n)
        self._telemetry.anchors_read(self.name, read=body["read"], changed=changed, moved=self.moved())

    def _remember(self) -> None:
        state = {"fingerprint": self._fingerprint, "first": self._first, "last": self._last}
        self._store.remember(f"{KIND} {self.name}", state)

    def _compare(self) -> None:
        if self._first is None or self._last is None or self._first["at"] == self._last["at"]:
            self._found = None
            return
        pairs: Counter[tuple[bool, bool]] = Counter()
        for key in self._anchors:
            before, after = (self._verdict(each["scores"], key) for each in (self._first, self._last))
            if before is not None and after is not None:
                pairs[before, after] += 1
        self._found = flips(pairs)

    def _verdict(self, scores: Scores, key: str) -> bool | None:
        value = scores[key].get(self.rules.quantity)
        return None if value is None else value >= self.rules.at_least

    def _agreement(self, scores: Scores) -> dict[str, float | int] | None:
        """Share of the anchors that people have judged on which the judge says the same."""
        both = [(each.good, self._verdict(scores, key)) for key, each in self._anchors.items()]
        known = [good == verdict for good, verdict in both if good is not None and verdict is not None]
        found = share(sum(known), len(known))
        return None if found is None else asdict(found)


def offsets(before: Scores, after: Scores) -> dict[str, dict[str, float | int]]:
    """By quantity: by how much the scores of the same samples differ. Quantities without a pair are left out."""
    found = {}
    for quantity in map(str, Quantity):
        both = ((before[key].get(quantity), after[key].get(quantity)) for key in before if key in after)
        mean = offset((one, other) for one, other in both if one is not None and other is not None)
        if mean is not None:
            found[quantity] = mean.to_record()
    return found
