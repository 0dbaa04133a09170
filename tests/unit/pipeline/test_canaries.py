"""Canaries: a run is stored and exposed, never overlaps another, survives a restart; a failure has no score."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.canaries import ScriptedProbe, a_canary, a_canary_loop, a_failure, a_reply
from support.kit import AT, Clock
from support.patience import DEADLINE, SCALE

from ragwatch.errors import StoreError
from ragwatch.model.estimate import Addends
from ragwatch.pipeline.canaries import CanaryLoop, CanarySuite
from ragwatch.ports import RecordedEvent, StoredRun, TrendQuery
from ragwatch.statistics.canary.definition import Category
from ragwatch.statistics.canary.history import changes, report_of
from ragwatch.statistics.snapshot import Gauge, Gauges
from ragwatch.statistics.tally import Tallies, Tally
from ragwatch.statistics.trends import COARSE, HOUR, BucketKey, TrendKind, start_of
from ragwatch.stores.sqlite.store import SqliteStore

CANARIES = (
    a_canary("d1", name="one", query="q1"),
    a_canary("d2", name="two", query="q2"),
    a_canary(name="none", query="q3", category=Category.NEGATIVE),
)
GOOD = {"q1": a_reply("d1", "d9", seconds=0.02), "q2": a_reply("d9", "d2", seconds=0.3), "q3": a_reply()}


def canaries(probe: ScriptedProbe, store: SqliteStore, clock: Clock | None = None, holder: str = "me") -> CanaryLoop:
    """The loop of one suite."""
    return a_canary_loop(store, CanarySuite("docs", CANARIES, (1, 5), probe), clock=clock, holder=holder)


async def test_a_run_is_counted_kept_and_shown(store: SqliteStore) -> None:
    """Figures of the run, its success by canary, and when it was; negative ones enter no mean."""
    probe = ScriptedProbe(GOOD)
    loop = canaries(probe, store)
    assert loop.gauges() == {}
    assert await loop.run("docs") is not None
    gauges = loop.gauges()
    assert gauges[Gauge.CANARY_RECALL, ("docs", "1")] == 0.5
    assert gauges[Gauge.CANARY_RECALL, ("docs", "5")] == 1.0
    assert gauges[Gauge.CANARY_PRECISION, ("docs", "5")] == 0.2
    assert gauges[Gauge.CANARY_RECIPROCAL_RANK, ("docs",)] == 0.75
    assert {labels[1]: value for (gauge, labels), value in gauges.items() if gauge is Gauge.CANARY_SUCCESS} == {
        "one": 1.0,
        "two": 1.0,
        "none": 1.0,
    }
    assert gauges[Gauge.CANARY_DEGRADED, ("docs",)] == 0
    assert gauges[Gauge.CANARY_LAST_RUN, ("docs",)] == gauges[Gauge.CANARY_LAST_SUCCESS, ("docs",)] == AT
    tallies = store.tallies()
    assert tallies[Tally.CANARY_RUNS, ("docs",)] == 1
    assert tallies[Tally.CANARY_SECONDS, ("docs", "0.025")] == 1
    assert [run.failing for run in store.runs("canary", "docs", 9)] == [False]
    assert probe.asked == [("q1", 5), ("q2", 5), ("q3", 5)]


async def test_what_cannot_be_asked_has_no_score(store: SqliteStore) -> None:
    """A failed canary is counted by its reason; nothing is invented for it, and the last success stays where it was."""
    clock = Clock()
    probe = ScriptedProbe(GOOD)
    loop = canaries(probe, store, clock)
    await loop.run("docs")
    probe.replies |= {"q1": a_failure("timeout")}
    clock.now += 600
    await loop.run("docs")
    gauges = loop.gauges()
    assert (Gauge.CANARY_SUCCESS, ("docs", "one")) not in gauges
    assert gauges[Gauge.CANARY_SUCCESS, ("docs", "two")] == 1.0
    assert gauges[Gauge.CANARY_RECALL, ("docs", "5")] == 1.0
    assert gauges[Gauge.CANARY_LAST_RUN, ("docs",)] == AT + 600
    assert gauges[Gauge.CANARY_LAST_SUCCESS, ("docs",)] == AT
    assert store.tallies()[Tally.CANARY_FAILURES, ("docs", "timeout")] == 1
    assert gauges[Gauge.CANARY_DEGRADED, ("docs",)] == 0


async def test_a_change_of_health_is_an_event(store: SqliteStore) -> None:
    """The first run is none, nor is one like the run before; over restarts too."""
    clock = Clock()
    degraded = {"q1": a_reply("d9")}
    for seconds, replies in ((0, {}), (10, {}), (20, degraded), (30, degraded), (40, {"q2": a_failure()}), (50, {})):
        clock.now = AT + seconds
        loop = canaries(ScriptedProbe({**GOOD, **replies}), store, clock)
        assert await loop.run("docs") is not None
    assert store.events(0.0) == [
        RecordedEvent(AT + 20, "canary", "docs: 1 of 3 canaries degraded, 0 failed"),
        RecordedEvent(AT + 50, "canary", "docs: no canary is degraded or failed any more"),
    ]
    runs = store.runs("canary", "docs", 9)
    assert [run.failing for run in runs] == [False, True, True, True, False, False]
    stored = [report_of("docs", run.body) for run in runs[2:]]
    change = changes([old for old in stored if old is not None])["one"]  # against the last good run
    assert [canary.label for canary in change.vanished] == ["d1"]


async def test_health_falls_with_all_scores(store: SqliteStore) -> None:
    """The same passages with much lower scores, without any minimum score; a restart shows the same."""
    probe = ScriptedProbe(GOOD)
    loop = canaries(probe, store)
    await loop.run("docs")
    usual = loop.gauges()[Gauge.CANARY_HEALTH, ("docs",)]
    lower = [tuple(hit._replace(score=(hit.score or 0.0) - 0.7) for hit in probe.replies[q].hits) for q in ("q1", "q2")]
    probe.replies |= {q: replace(probe.replies[q], hits=hits) for q, hits in zip(("q1", "q2"), lower, strict=True)}
    assert await loop.run("docs") is not None
    gauges = loop.gauges()
    assert (usual > 0.0, gauges[Gauge.CANARY_HEALTH, ("docs",)], gauges[Gauge.CANARY_DEGRADED, ("docs",)]) == (
        True,
        0,
        0,
    )
    again = canaries(probe, store)
    again.resume()
    assert again.gauges() == gauges


async def test_figures_of_a_run_are_part_of_trends(store: SqliteStore) -> None:
    """Each known figure once; of a run without a reply there is none, which is a gap and no 0."""
    probe = ScriptedProbe(GOOD)
    loop = canaries(probe, store)
    await loop.run("docs")
    probe.replies = dict.fromkeys(GOOD, a_failure("connect"))
    await loop.run("docs")
    assert set(loop.gauges()) == {(Gauge.CANARY_LAST_RUN, ("docs",)), (Gauge.CANARY_LAST_SUCCESS, ("docs",))}
    start = start_of(AT, HOUR)
    rows = store.trends(TrendQuery(TrendKind.CANARY, "docs", COARSE, HOUR, start, start + HOUR))
    assert {
        row.series.name: (row.sums.n, row.sums.wx) for row in rows if row.series.name in ("recall@1", "degraded")
    } == {"recall@1": (1, 0.5), "degraded": (1, 0.0)}


async def test_runs_never_overlap(store: SqliteStore) -> None:
    """While a suite runs, it is not begun again: neither here, nor after a reload, nor by another process."""
    gate, clock = asyncio.Event(), Clock()
    probe = ScriptedProbe(GOOD, gate=gate)
    loop, other = canaries(probe, store, clock), canaries(probe, store, clock, holder="other")
    first = asyncio.create_task(loop.run("docs"))
    await probe.busy.wait()
    assert await loop.run_all() == {"docs": None}
    assert [await loop.run("docs") for loop in (canaries(probe, store, clock), other)] == [None, None]
    gate.set()
    assert await first is not None
    assert len(probe.asked) == len(CANARIES)
    clock.now += 3600
    assert await other.run("docs") is not None


@pytest.mark.costly
async def test_a_run_longer_than_its_right_to_run_is_not_joined(store: SqliteStore) -> None:
    """The right is renewed while the run goes on; a slow retriever is not asked by two processes at once."""
    gate, claim_seconds = asyncio.Event(), 2.0 * SCALE  # a machine that stalls for longer lets the claim run out
    probe = ScriptedProbe(GOOD, gate=gate)
    suite = canaries(probe, store).suites["docs"]
    first, other = (
        a_canary_loop(store, suite, holder=name, clock=time.time, claim_seconds=claim_seconds)
        for name in ("me", "other")
    )
    under_way = asyncio.create_task(first.run("docs"))
    await probe.busy.wait()
    end = time.monotonic() + 1.5 * claim_seconds
    while time.monotonic() < end:
        assert await asyncio.wait_for(other.run("docs"), DEADLINE) is None
        await asyncio.sleep(0.05)
    gate.set()
    assert await under_way is not None
    assert await other.run("docs") is not None


class LookedAtStore(SqliteStore):
    """A store that notes what is shown at the moment a run is counted, and can be full at that moment."""

    look: Callable[[], Gauges]
    shown: Gauges
    full = False

    def record_run(self, run: StoredRun, tallies: Tallies, sums: Mapping[BucketKey, Addends] | None = None) -> None:
        """Count the run, or be full."""
        self.shown = self.look()
        if self.full:
            raise StoreError("state: cannot write: database or disk is full")
        super().record_run(run, tallies, sums)


async def test_who_sees_a_run_counted_sees_its_figures(tmp_path: Path) -> None:
    """A scrape may fall between any two steps. A run that could not be counted leaves the figures of the one before."""
    with closing(LookedAtStore(tmp_path / "state")) as store:
        probe, clock = ScriptedProbe(GOOD), Clock()
        loop = canaries(probe, store, clock)
        store.look = loop.gauges
        store.full = True
        with pytest.raises(StoreError):
            await loop.run("docs")
        assert loop.gauges() == {}
        store.full = False
        await loop.run("docs")
        good = loop.gauges()
        assert store.shown == good != {}
        probe.replies["q1"], store.full, clock.now = a_reply("d9"), True, AT + 60
        with pytest.raises(StoreError):
            await loop.run("docs")
        assert store.shown != good
        assert loop.gauges() == good
