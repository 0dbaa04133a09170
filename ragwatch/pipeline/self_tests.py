"""Self-tests: tests a judge on a small share of the answers it has read. They produce no scores."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ragwatch.core.sampling import is_drawn, key_of
from ragwatch.core.self_tests import fooled, known_bad, padded, repeats, scores_higher
from ragwatch.core.tally import Tallies, Tally
from ragwatch.core.verdict import Judged
from ragwatch.pipeline.reading import DrawReader


class JudgeSelfTests:
    """Selects answers to read again, and counts the results in tallies.

    Args:
        repeat: Share of judged answers that are read a second time.
        known_bad: Share of judged answers from which a known-bad answer is made and read, as it is and padded.
    """

    def __init__(self, repeat: float = 0.0, known_bad: float = 0.0) -> None:
        self._repeat, self._known_bad = repeat, known_bad

    async def run(self, verdict: Judged, reader: DrawReader) -> Tallies:
        """Test the judge on this answer, if it is selected. Returns tallies; none where a reading fails."""
        tallies: Tallies = Counter()
        if self._is_selected("repeat", self._repeat, verdict):
            await self._read_twice(verdict, reader, tallies)
        if verdict.draw.sample.contexts and self._is_selected("known bad", self._known_bad, verdict):
            await self._test_known_bad(verdict, reader, tallies)
        return tallies

    @staticmethod
    def _is_selected(test: str, share: float, verdict: Judged) -> bool:
        return share > 0.0 and is_drawn(key_of(f"{test} {verdict.reading.judge}", verdict.draw.key), share)

    @staticmethod
    async def _read_twice(verdict: Judged, reader: DrawReader, tallies: Tallies) -> None:
        second = await reader.test(verdict.draw)
        if second is None:
            return
        version = verdict.reading.version
        for quantity, same in repeats(verdict.scores, second.scores).items():
            labels = (verdict.reading.judge, version, str(quantity))
            tallies[Tally.REPEATED, labels] += 1
            tallies[Tally.REPEATED_ALIKE, labels] += same

    @staticmethod
    async def _test_known_bad(verdict: Judged, reader: DrawReader, tallies: Tallies) -> None:
        bad = known_bad(verdict.draw.sample, verdict.draw.key)
        reading = await reader.test(replace(verdict.draw, sample=bad))
        if reading is None:
            return
        labels = (verdict.reading.judge, verdict.reading.version)
        tallies[Tally.KNOWN_BAD, labels] += 1
        tallies[Tally.FOOLED, labels] += fooled(reading.evidence)
        longer = await reader.test(replace(verdict.draw, sample=padded(bad, verdict.draw.key)))
        higher = None if longer is None else scores_higher(reading.scores, longer.scores)
        if higher is not None:
            tallies[Tally.PADDED, labels] += 1
            tallies[Tally.PADDING_PREFERRED, labels] += higher
