"""Whose fault it is: over the demo's real service and the embedded judge, a harsher judge and a broken index differ."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from support.kit import Clock, a_judge_context, an_admission

from ragwatch.core.sample import OTHER, Draw
from ragwatch.core.sampling import key_of
from ragwatch.core.snapshot import Gauge
from ragwatch.core.tally import Tally
from ragwatch.core.verdict import Judged
from ragwatch.demo.breakage import Breakage
from ragwatch.demo.driver import endless
from ragwatch.demo.questions import questions
from ragwatch.demo.service import RagService
from ragwatch.formats import canonical
from ragwatch.judges.lexical.judge import LexicalJudge, Options, build
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.drift.anchors import Anchor, AnchorLoop, AnchorRules
from ragwatch.pipeline.drift.rules import DriftRules
from ragwatch.pipeline.drift.scores import ScoreDriftLoop
from ragwatch.pipeline.reading import DrawReader
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

MINUTE = 60.0
WATCHED = (Quantity.FAITHFULNESS, Quantity.CONTEXT_PRECISION, Quantity.ANSWER_RELEVANCY)
REFERENCE = 300


def a_judge(version: str, support: float) -> LexicalJudge:
    """The embedded judge at another threshold, under a name of its own."""
    found = build(Options(support=support), name="embedded", context=a_judge_context())
    found.version = version
    return found


class Watched:
    """The demo's service, whose answers are judged one a minute, and what watches them."""

    def __init__(self, store: SqliteStore, service: RagService) -> None:
        self.store, self.service, self.clock = store, service, Clock()
        self._asked = endless(questions(service.passages), seed=1)
        self._anchors = [Anchor(each.sample) for each in self.answers(60)]
        self.employ(a_judge("plain", 0.5))

    def answers(self, count: int) -> list[Draw]:
        """Answers of the service as it is now."""
        found = []
        for question in islice(self._asked, count):
            self.clock.now += MINUTE
            reply = self.service.ask(question.text)
            sample = canonical.read({"question": question.text, **reply}, "")
            found.append(Draw(key_of("demo", sample.id), sample, "demo", OTHER, 1.0, self.clock.now))
        return found

    def employ(self, judge: LexicalJudge) -> None:
        """As a reload does: the rooms are built anew around another judge."""
        self.judge = judge
        parts = {"store": self.store, "telemetry": Telemetry(), "clock": self.clock}
        self.anchors = AnchorLoop(AnchorRules(), self._anchors, judge=judge, holder="me", **parts)
        self.anchors.resume()
        rules = DriftRules(judge.name, judge.version, WATCHED, (OTHER,), reference=REFERENCE, tolerance=0.05)
        self.drift = ScoreDriftLoop(rules, judge_moved=self.anchors.moved, **parts)
        self.drift.resume()

    async def pass_by(self, count: int) -> None:
        """So many answers are given and judged."""
        reader = DrawReader(self.judge, timeout_seconds=10.0, telemetry=Telemetry())
        draws = self.answers(count)
        self.store.admit(an_admission(*draws))
        verdicts = [verdict for draw in draws if isinstance(verdict := await reader.read(draw), Judged)]
        self.store.settle(verdicts)
        await self.anchors.step()
        await self.drift.step()

    @property
    def pages(self) -> float:
        """Drift alarms so far."""
        return sum(value for (tally, _), value in self.store.tallies().items() if tally is Tally.DRIFT_ALARMS)


@pytest.fixture
def watched(store: SqliteStore, tmp_path: Path) -> Iterator[Watched]:
    """A healthy service that has been watched for a while."""
    service = RagService(tmp_path / "rag.jsonl")
    yield Watched(store, service)
    service.close()


@pytest.mark.slow  # `test_drift_live` has the same story, over HTTP
async def test_a_harsher_judge_is_judge_drift_and_a_broken_index_is_a_page(watched: Watched) -> None:
    """The judge's signal rises and nobody is called for the service; later the index breaks, and somebody is."""
    await watched.pass_by(REFERENCE + 150)
    assert (watched.pages, watched.anchors.moved()) == (0, False)
    watched.employ(a_judge("harsh", 0.97))
    await watched.pass_by(REFERENCE + 150)
    assert watched.anchors.gauges()[Gauge.JUDGE_DRIFT_ALARM, ("embedded",)] == 1.0
    assert watched.pages == 0
    assert [event.kind for event in watched.store.events(0.0)] == ["judge"]
    await watched.anchors.renew()
    assert watched.anchors.moved() is False
    watched.service.break_it(Breakage.VANISH)
    await watched.pass_by(150)
    alarms = {
        labels for (gauge, labels), value in watched.drift.gauges().items() if gauge is Gauge.DRIFT_ALARM and value
    }
    assert ("context_precision", OTHER) in alarms
    assert watched.pages == len(alarms)
    assert watched.anchors.moved() is False
