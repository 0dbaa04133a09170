"""Self-tests of a judge on live answers: what they count."""

from __future__ import annotations

from support.kit import ScriptedJudge, a_draw, an_evidence

from ragwatch.core.evidence import Evidence
from ragwatch.core.sample import Sample
from ragwatch.core.tally import Tally
from ragwatch.core.verdict import Judged, Usage
from ragwatch.pipeline.reading import DrawReader, JudgeSelfTests
from ragwatch.telemetry import Telemetry


class LengthJudge(ScriptedJudge):
    """A judge that accepts every answer of more than some characters, and fails beyond a second number."""

    def __init__(self, accepts: int, fails: int = 1_000_000) -> None:
        super().__init__()
        self.accepts, self.fails = accepts, fails

    async def read(self, sample: Sample) -> tuple[Evidence, Usage]:
        """Supported if it is long."""
        if len(sample.answer) > self.fails:
            raise ValueError("too long")
        return an_evidence((int(len(sample.answer) > self.accepts), 0)), Usage(1, 1, 0.0)


async def counted(judge: LengthJudge) -> dict[Tally, float]:
    """The tallies of the known-bad test of one answer."""
    reader = DrawReader(judge, timeout_seconds=5.0, telemetry=Telemetry())
    verdict = await reader.read(a_draw())
    assert isinstance(verdict, Judged)
    tallies = await JudgeSelfTests(known_bad=1.0).run(verdict, reader)
    return {tally: count for (tally, _), count in tallies.items()}


async def test_a_padded_answer_that_scores_higher_is_counted() -> None:
    """A judge that accepts long answers prefers padding; one that accepts all, or none, does not."""
    found = await counted(LengthJudge(150))
    assert (found[Tally.PADDED], found[Tally.PADDING_PREFERRED], found[Tally.FOOLED]) == (1, 1, 0)
    for length in (0, 1_000_000):
        found = await counted(LengthJudge(length))
        assert (found[Tally.PADDED], found[Tally.PADDING_PREFERRED]) == (1, 0)


async def test_a_failed_reading_counts_nothing() -> None:
    """If only the padded answer fails, the known-bad answer still counts."""
    assert set(await counted(LengthJudge(0, fails=150))) == {Tally.KNOWN_BAD, Tally.FOOLED}
    assert await counted(LengthJudge(0, fails=12)) == {}
