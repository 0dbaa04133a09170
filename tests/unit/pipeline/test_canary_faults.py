"""Canary faults: canaries across a reload, and the effect of one bad reading on a whole run."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections import Counter
from dataclasses import replace

import pytest
from support.canaries import a_canary, a_canary_loop, a_failure, a_reply
from support.kit import AT, Clock, ScriptedJudge

from ragwatch.core.canary.definition import Retrieved
from ragwatch.core.evidence import Evidence, ShapeError
from ragwatch.core.sample import Sample
from ragwatch.core.snapshot import Gauge
from ragwatch.core.verdict import Usage
from ragwatch.errors import StoreError
from ragwatch.pipeline.canaries import AnswerJudging, CanaryLoop, CanarySuite
from ragwatch.ports import StoredRun
from ragwatch.stores.sqlite.store import SqliteStore

CANARIES = (a_canary("d1", name="one", query="q1"),)


class Probe:
    """Finds what is wanted, and answers; waits at a gate, where there is one."""

    name, concurrency = "docs", 4

    def __init__(self, gate: asyncio.Event | None = None) -> None:
        self.gate = gate
        self.asked = 0
        self.closed = False
        self.closed_on = 0
        self.busy = asyncio.Event()

    async def ask(self, query: str, k: int) -> Retrieved:  # noqa: ARG002 - the port's
        """The right context."""
        self.asked += 1
        self.busy.set()
        if self.gate is not None:
            await self.gate.wait()
        self.closed_on += self.closed
        reply = a_reply("d1")
        hits = tuple(hit._replace(text="Cats purr.") for hit in reply.hits)
        return replace(reply, hits=hits, answer="Cats purr.")

    async def close(self) -> None:
        """From now on nothing can be asked."""
        self.closed = True


def canaries(
    store: SqliteStore, probe: Probe, *, clock: Clock | None = None, answers: AnswerJudging | None = None
) -> CanaryLoop:
    """One suite, as `build` makes it: the holder is the process."""
    suite = CanarySuite("docs", CANARIES, (1,), probe, answers=answers)
    return a_canary_loop(store, suite, holder="host/1", clock=clock)


async def test_runs_do_not_overlap_across_a_reload(store: SqliteStore) -> None:
    """The rooms that a reload built run their suites at once (`at_start`), while the old ones still ask."""
    gate = asyncio.Event()
    old, new = Probe(gate), Probe()
    before = canaries(store, old)
    run = asyncio.create_task(before.run("docs"))
    await old.busy.wait()
    again = await canaries(store, new).run("docs")
    gate.set()
    await run
    assert again is None


async def test_no_probe_is_closed_beneath_a_run(store: SqliteStore) -> None:
    """What a reload breaks would be counted as a failure of the retriever."""
    gate = asyncio.Event()
    probe = Probe(gate)
    loop = canaries(store, probe)
    run = asyncio.create_task(loop.run("docs"))
    await probe.busy.wait()
    closing = asyncio.create_task(loop.close())
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(run, closing)
    assert probe.closed_on == 0


@pytest.mark.parametrize("error", [ShapeError("torn"), StoreError("disk full"), ZeroDivisionError("bug")])
async def test_a_judge_that_errs_costs_its_score_alone(store: SqliteStore, error: Exception) -> None:
    """What the retriever found is kept and shown, whatever becomes of reading the answer."""

    class Torn(ScriptedJudge):
        async def read(self, sample: Sample) -> tuple[Evidence, Usage]:  # noqa: ARG002 - the port's
            raise error

    answers = AnswerJudging(Torn(), oracle=False, clock=Clock())
    loop = canaries(store, Probe(), answers=answers)
    try:
        await loop.run("docs")
    except type(error):
        pass
    assert loop.gauges()[Gauge.CANARY_RECALL, ("docs", "1")] == 1.0


async def test_the_last_success_survives_a_long_outage_and_a_restart(store: SqliteStore) -> None:
    """17 hours of failures at a run each ten minutes, then a restart: the alert on its age must go on firing."""
    clock = Clock()
    probe = Probe()
    loop = canaries(store, probe, clock=clock)
    await loop.run("docs")

    class Down(Probe):
        async def ask(self, query: str, k: int) -> Retrieved:  # noqa: ARG002 - the port's
            return a_failure()

    down = canaries(store, Down(), clock=clock)
    down.resume()
    for _ in range(101):
        clock.now += 600.0
        await down.run("docs")
    assert down.gauges()[Gauge.CANARY_LAST_SUCCESS, ("docs",)] == AT
    restarted = canaries(store, probe, clock=clock)
    restarted.resume()
    assert restarted.gauges() == down.gauges()


def test_resuming_holds_few_runs_at_a_time(store: SqliteStore) -> None:
    """472 canaries with ten hits each: 100 runs are 370 MB of JSON, 7 s of silence at every start and reload."""
    body = {"answered": False, "ks": [1], "reports": [], "answers": [], "line": {"hits": ["x" * 64] * 4000}}
    for index in range(100):
        store.record_run(StoredRun("canary", "docs", AT + index, failing=True, body=body), Counter())
    loop = canaries(store, Probe())
    tracemalloc.start()
    loop.resume()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * 4000 * (64 + 49)


async def test_the_next_rooms_run_at_once(store: SqliteStore) -> None:
    """When closed rooms gave a run up, its right is free again: `at_start` of the next ones is not lost."""
    old, new = Probe(asyncio.Event()), Probe()
    before, after = canaries(store, old), canaries(store, new)
    given_up = asyncio.create_task(before.run("docs"))
    await old.busy.wait()
    await before.close()
    assert await after.run("docs") is not None
    assert await given_up is None


async def test_closed_rooms_ask_nothing(store: SqliteStore) -> None:
    """A job that comes due while the configuration is swapped begins no run with a probe that is closed."""
    probe = Probe()
    loop = canaries(store, probe)
    await loop.close()
    assert await loop.run("docs") is None
    assert (probe.asked, store.runs("canary", "docs", 1)) == (0, [])


async def test_what_is_no_longer_configured_is_not_shown(store: SqliteStore) -> None:
    """A canary that was taken out or edited, a k that is gone, answers nobody judges: a reload takes their series."""
    kept, gone = CANARIES[0], a_canary("d9", name="gone", query="q9")
    edited, anew = (a_canary(name, name="edited", query="q2") for name in ("d8", "d1"))
    answers = AnswerJudging(ScriptedJudge(), oracle=False, clock=Clock())
    suite = CanarySuite("docs", (kept, gone, edited), (1, 5), Probe(), answers=answers)
    first = a_canary_loop(store, suite)
    await first.run("docs")
    assert first.gauges()[Gauge.CANARY_DEGRADED, ("docs",)] == 2.0
    fewer = replace(suite, canaries=(kept, anew), ks=(5,), answers=None)
    second = a_canary_loop(store, fewer)
    second.resume()
    gauges = second.gauges()
    assert gauges[Gauge.CANARY_DEGRADED, ("docs",)] == 0.0
    assert gauges[Gauge.CANARY_RECALL, ("docs", "5")] == 1.0
    assert (Gauge.CANARY_RECALL, ("docs", "1")) not in gauges
    assert {labels[1] for gauge, labels in gauges if gauge is Gauge.CANARY_SUCCESS} == {"one"}
    assert not [labels for gauge, labels in gauges if gauge is Gauge.CANARY_ANSWER]
