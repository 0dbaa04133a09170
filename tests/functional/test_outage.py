"""Outages and budgets: nothing hangs, nothing is lost, no money is forgotten, and figures stay what they were."""

import random
import signal
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from functional.asking import PENDING, PRICES, an_llm, by_label, configure, records, wait_for, write_log
from functional.daemon import RagwatchProcess
from loopback.process import LoopbackProcess
from support.callers import HandClock
from support.kit import AT, a_draw, an_admission
from support.loops import a_digest
from support.patience import DEADLINE, SCALE, wait_until

from ragwatch.board import Board
from ragwatch.judges import claude
from ragwatch.pipeline.judging import JudgingLoop, JudgingRules
from ragwatch.pipeline.sampling_control import StoredBudgetAccount
from ragwatch.ports import JudgeContext, LoopContext
from ragwatch.statistics.snapshot import Snapshot
from ragwatch.statistics.tally import Tally
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

JUDGED = 'ragwatch_samples_judged_total{judge="claude",route="search"}'
BUDGET_LEFT = 'ragwatch_judge_budget_remaining_ratio{judge="claude"}'
SHARE = 'ragwatch_judge_sampling_probability{judge="claude"}'
CALLS = "POST /v1/messages"
OPEN = 'ragwatch_judge_breaker_open{judge="claude"}'


@pytest.mark.parametrize("count", [30, pytest.param(150, marks=pytest.mark.slow)])
def test_j2_a_third_of_calls_overloaded(tmp_path: Path, loopback: LoopbackProcess, count: int) -> None:
    """30 % of calls answered 529: all are judged in the end, with at most 1.5 requests a sample."""
    loopback.control({"kind": "overloaded", "share": 0.3})
    write_log(tmp_path, records(count))
    with RagwatchProcess(configure(tmp_path, an_llm(loopback))).wait_until_serving() as ragwatch:
        series = wait_for(ragwatch, {PENDING: 0.0, JUDGED: float(count)})
    assert len(loopback.requests()) <= 1.5 * count
    failures = by_label(series, "ragwatch_judge_call_failures_total", "reason")
    assert failures == {"overloaded": len(loopback.requests()) - count}


def test_j1_a_pause_of_two_hours_holds_nobody(tmp_path: Path, loopback: LoopbackProcess) -> None:
    """`retry-after: 7200` pauses the pool: draws wait, pages answer, a stop is a stop, and nobody sleeps through it."""
    loopback.control({"kind": "rate_limited", "retry_after": 7200})
    write_log(tmp_path, records(40))
    config = configure(tmp_path, an_llm(loopback), drain="5s")
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        wait_for(ragwatch, {PENDING: 40.0}, named='ragwatch_judge_calls_total{judge="claude",model="claude-haiku-5-5"}')
        assert ragwatch.get("/-/ready")[0] == 200
        asked = time.monotonic()
        ragwatch.signal(signal.SIGTERM)
        assert ragwatch.end() == 0
        assert time.monotonic() - asked < 30.0 * SCALE  # not two hours
    assert any('"drained": true' in line for line in ragwatch.lines)
    assert len(loopback.requests()) <= 16  # those that were under way when the first was answered


def test_a_bad_key_opens_the_breaker(tmp_path: Path, loopback: LoopbackProcess) -> None:
    """J6: what every call would meet is met by those under way, and then the provider is left alone."""
    loopback.control("bad_key")
    write_log(tmp_path, records(60))
    with RagwatchProcess(configure(tmp_path, an_llm(loopback))).wait_until_serving() as ragwatch:
        series = wait_for(ragwatch, {PENDING: 60.0, OPEN: 1.0})
        reasons = partial(by_label, name="ragwatch_judge_call_failures_total", label="reason")
        wait_until(lambda: reasons(ragwatch.series()), "failures are counted, which is after the breaker opens")
        assert set(reasons(ragwatch.series())) == {"misconfigured"}
    assert len(loopback.requests()) <= 16
    assert JUDGED not in series or series[JUDGED] == 0


def billed(server: LoopbackProcess) -> float:
    """Dollars that the server has charged, without a cache."""
    usage = server.record(bodies=False)["usage"]
    sent = sum(usage.values()) - usage["output"]
    return float(sent * PRICES["input"] + usage["output"] * PRICES["output"]) / 1e6


def spent(folder: Path) -> float:
    """Dollars in our accounts, once the daemon has ended."""
    with closing(SqliteStore(folder / "state")) as store:
        return store.spent("claude", 0.0).usd


def is_asked(server: LoopbackProcess, calls: int) -> bool:
    """Whether the server was asked so often."""
    return bool(server.record(bodies=False)["counts"].get(CALLS, 0) >= calls)


def test_j4_a_kill_forgets_no_money(tmp_path: Path, loopback: LoopbackProcess) -> None:
    """Killed while calls are under way, again and again: our accounts never hold less than was charged."""
    loopback.control(latency={"mean": 0.05})
    write_log(tmp_path, records(100))
    config = configure(tmp_path, an_llm(loopback, prices=PRICES, budget={"usd_per_day": 1000.0}))
    for number in (1, 2):
        with RagwatchProcess(config).wait_until_serving() as ragwatch:
            wait_until(partial(is_asked, loopback, 20 * number), "enough calls")
            ragwatch.kill()
        assert spent(tmp_path) >= billed(loopback) > 0.0
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        wait_for(ragwatch, {PENDING: 0.0, JUDGED: 100.0})
    assert spent(tmp_path) >= billed(loopback)


def test_j5_a_dollar_is_a_dollar(tmp_path: Path, loopback: LoopbackProcess) -> None:
    """Sixteen workers and a cap of one dollar: what is charged stays below it, the rest waits, and series say so."""
    write_log(tmp_path, records(150))
    config = configure(tmp_path, an_llm(loopback, prices=PRICES, budget={"usd_per_day": 1.0}))
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        end = time.monotonic() + DEADLINE
        while (series := ragwatch.series()).get(SHARE, 1.0) > 0.5 or series[BUDGET_LEFT] > 0.5:
            assert time.monotonic() < end, series
            time.sleep(0.1)
        more = len(loopback.requests()) + 20
        while len(loopback.requests()) < more and ragwatch.series()[BUDGET_LEFT] > 0.2:
            assert time.monotonic() < end
        assert ragwatch.series()[PENDING] > 0
    assert 0.3 < billed(loopback) <= 1.0
    assert billed(loopback) <= spent(tmp_path) <= 1.0


class Simulated:
    """Judging and digest of Claude at the loopback server, in time wound by hand."""

    def __init__(self, store: SqliteStore, server: LoopbackProcess) -> None:
        self.store, self.board, self.hand = store, Board(), HandClock()
        self.telemetry = Telemetry()
        purse = StoredBudgetAccount("claude", (), store, self.now)
        given = claude.Options(base_url=server.address, api_key=server.key)
        context = JudgeContext(self.telemetry, purse, self.now)
        self.judge = claude.build(given, name="claude", context=context, clock=self.hand, rng=random.Random(3))
        rules = JudgingRules(max_age_seconds=3600.0)
        self.loop = JudgingLoop(self.judge, rules, LoopContext(store, self.telemetry, self.now))
        self.digest = a_digest(store, self.board, self.now, judge=self.judge, telemetry=self.telemetry)
        self.admitted = 0

    def now(self) -> float:
        """Seconds since the epoch."""
        return AT + self.hand.at - 1000.0

    async def seconds(self, count: int, *, arriving: int = 0) -> Snapshot:
        """Live on for so long, with so many answers every ten seconds. Returns the last figures."""
        end = self.hand.at + count
        while self.hand.at < end:
            names = [f"r{number}" for number in range(self.admitted, self.admitted + arriving)]
            self.admitted += arriving
            self.store.admit(an_admission(*(a_draw(each, at=self.now()) for each in names), judges=("claude",)))
            while await self.loop.step():
                pass
            await self.loop.expire()
            self.hand.at += 10.0
        await self.digest.step()
        found = self.board.latest()
        assert found is not None
        return found


def of_faithfulness(found: Snapshot) -> tuple[float, float]:
    """Its mean, and when the last sample was."""
    (mean,) = (row.estimate.value for row in found.estimates if row.quantity == "faithfulness")
    return mean, found.last_sample["faithfulness", "search", "claude"]


async def test_j3_ten_minutes_of_nothing_but_529(store: SqliteStore, loopback: LoopbackProcess) -> None:
    """The mean stands still and is seen to be stale, coverage falls, no score is made up, and nothing is lost."""
    life = Simulated(store, loopback)
    before = await life.seconds(300, arriving=1)
    loopback.change("overloaded")
    seq = max(row.seq for row in store.window(0, 0.0, 1000))
    during = await life.seconds(600, arriving=1)
    assert of_faithfulness(during) == of_faithfulness(before)
    assert during.at - of_faithfulness(during)[1] > 590
    key = ("search", "claude", "1h")
    assert (before.coverage[key], 0.3 < during.coverage[key] < 0.6) == (1.0, True)
    # Drift detectors take settled scores and nothing else: there is none, so no alarm can come of an outage.
    assert list(store.window(seq, 0.0, 1000)) == []
    assert during.pending == {"claude": 60}
    calls = len(loopback.requests()) - 30
    assert calls < 60  # 10 minutes of 60 waiting draws, each tried again and again without a breaker, would be hundreds
    loopback.change()
    after = await life.seconds(1200)
    assert after.coverage[key] == 1.0
    assert after.tallies[Tally.JUDGED, ("search", "claude")] == life.admitted == 90
    assert (after.pending, of_faithfulness(after)[0]) == ({}, of_faithfulness(before)[0])
    await life.loop.close()
