"""Trials: a small share of what a judge has read is used to test the judge itself. No score comes of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ragwatch.core.sampling import chosen, key_of
from ragwatch.core.self_tests import fooled, known_bad, repeats
from ragwatch.core.tally import Tallies, Tally
from ragwatch.core.verdict import Judged
from ragwatch.pipeline.reading import DrawReader


class JudgeSelfTests:
    """Which answers are read again, and what that adds to the tallies.

    Args:
        repeat: Share of judged answers that are read a second time.
        known_bad: Share of judged answers of which a known-bad one is made and read.
    """

    def __init__(self, repeat: float = 0.0, known_bad: float = 0.0) -> None:
        self._repeat, self._known_bad = repeat, known_bad

    async def of(self, verdict: Judged, reader: DrawReader) -> Tallies:
        """What testing the judge on this answer adds to the tallies; nothing for most, or when a reading fails."""
        found: Tallies = Counter()
        if self._is_in("repeat", self._repeat, verdict):
            await self._read_twice(verdict, reader, found)
        if verdict.draw.sample.contexts and self._is_in("known bad", self._known_bad, verdict):
            await self._try_to_fool(verdict, reader, found)
        return found

    @staticmethod
    def _is_in(what: str, share: float, verdict: Judged) -> bool:
        return share > 0.0 and chosen(key_of(f"{what} {verdict.reading.judge}", verdict.draw.key), share)

    @staticmethod
    async def _read_twice(verdict: Judged, reader: DrawReader, found: Tallies) -> None:
        second = await reader.again(verdict.draw)
        if second is None:
            return
        version = verdict.reading.version
        for quantity, same in repeats(verdict.scores, second.scores).items():
            labels = (verdict.reading.judge, version, str(quantity))
            found[Tally.REPEATED, labels] += 1
            found[Tally.REPEATED_ALIKE, labels] += same

    @staticmethod
    async def _try_to_fool(verdict: Judged, reader: DrawReader, found: Tallies) -> None:
        bad = known_bad(verdict.draw.sample, verdict.draw.key)
        reading = await reader.again(replace(verdict.draw, sample=bad))
        if reading is not None:
            labels = (verdict.reading.judge, verdict.reading.version)
            found[Tally.KNOWN_BAD, labels] += 1
            found[Tally.FOOLED, labels] += fooled(reading.evidence)
