"""The pool: pauses, pacing, the breaker, and how much may be asked twice. Time is wound by hand."""

import asyncio
import random
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import LogCapture
from support.callers import HandClock, failed, refused
from support.patience import DEADLINE

from ragwatch.judges.llm.failures import RateLimit, parse_rate_limits
from ragwatch.judges.llm.scheduler import MAX_BACKOFF_SECONDS, CallScheduler, CircuitBreaker, RateLimiter
from ragwatch.telemetry import Telemetry

FOREVER = float("inf")


def a_pool(telemetry: Telemetry | None = None, concurrency: int = 4) -> tuple[CallScheduler, HandClock]:
    """A pool and its clock."""
    clock = HandClock()
    told = telemetry or Telemetry()
    return CallScheduler("mine", concurrency=concurrency, telemetry=told, clock=clock, rng=random.Random(3)), clock


async def call(pool: CallScheduler, outcome: str | None = None, until: float = FOREVER, **parts: object) -> None:
    """One call through the pool that is answered, or fails for a reason."""
    async with pool.slot(until) as is_trial:
        if outcome is None:
            pool.record_success((), 10, is_trial=is_trial)
        else:
            pool.record_failure(failed(outcome, **parts), is_trial=is_trial)


def fails(breaker: CircuitBreaker, at: float, *, is_trial: bool = False, fatal: bool = False) -> float | None:
    """A call fails; for how long the breaker opens then."""
    return breaker.record_failure(at, is_trial=is_trial, fatal=fatal)


@pytest.mark.parametrize(("good", "opens"), [(0, 30.0), (5, 30.0), (6, None)])
def test_breaker_opens_at_five_failures_and_half_of_the_calls_of_twenty_seconds(good: int, opens: float | None) -> None:
    """Four failures do not open it, nor five among eleven calls; five among ten do. Older ones do not count."""
    breaker = CircuitBreaker()
    for _ in range(4):
        fails(breaker, -19.5)
    for _ in range(good):
        breaker.record_success(0.0, is_trial=False)
    assert [fails(breaker, 1.0) for _ in range(5)] == [None, None, None, None, opens]


def test_breaker_doubles_up_to_ten_minutes_and_starts_over_when_closed() -> None:
    """Each deciding call that fails doubles the wait, 600 s at most; one that is answered closes and forgets all."""
    breaker, now = CircuitBreaker(), 0.0
    waits = [fails(breaker, now, fatal=True)]
    for _ in range(6):
        now += breaker.wait(now)
        assert breaker.begin_call()
        waits.append(fails(breaker, now, is_trial=True))
    assert waits == [30.0, 60.0, 120.0, 240.0, 480.0, 600.0, 600.0]
    now += breaker.wait(now)
    assert breaker.record_success(now, is_trial=breaker.begin_call())
    assert breaker.is_closed
    assert fails(breaker, now, fatal=True) == 30.0


def test_breaker_lets_one_call_decide() -> None:
    """While the deciding call is under way all others wait; calls from before the opening decide nothing."""
    breaker = CircuitBreaker()
    fails(breaker, 0.0, fatal=True)
    assert breaker.wait(10.0) == 20.0
    assert fails(breaker, 10.0, fatal=True) is None
    assert not breaker.record_success(10.0, is_trial=False)
    assert breaker.wait(30.0) == 0.0
    assert breaker.begin_call()
    assert breaker.wait(30.0) > 0.0
    breaker.end_call(is_trial=True)
    assert breaker.wait(30.0) == 0.0


async def test_a_fatal_failure_stops_all_calls_until_one_is_tried(telemetry: Telemetry, log: LogCapture) -> None:
    """The breaker is told of, calls are refused without being made, and the first good one closes it again."""
    pool, clock = a_pool(telemetry)
    await call(pool, "misconfigured")
    assert pool.ready_in() == 30.0
    assert not pool.healthy
    assert await refused(call(pool), "circuit breaker is open") == ("unavailable", False)
    assert 1.0 in telemetry.levels().values()
    clock.at += 30.0
    await call(pool)
    assert pool.ready_in() == 0.0
    assert set(telemetry.levels().values()) == {0.0}
    assert [entry["event"] for entry in log.entries] == ["circuit breaker opened", "circuit breaker closed"]


async def test_a_deciding_call_that_is_cancelled_decides_nothing() -> None:
    """Then the next call decides, instead of none for ever."""
    pool, clock = a_pool()
    await call(pool, "misconfigured")
    clock.at += 30.0
    never = asyncio.Event()

    async def hanging() -> None:
        async with pool.slot(FOREVER):
            await never.wait()

    task = asyncio.create_task(hanging())
    await asyncio.sleep(0)
    assert pool.ready_in() > 0.0
    task.cancel()
    await asyncio.wait({task})
    assert pool.ready_in() == 0.0
    await call(pool)
    assert pool.healthy


async def test_a_429_pauses_everybody() -> None:
    """Until its time, and nobody is asked before; without a time for longer and longer, until there is an answer."""
    pool, clock = a_pool()
    await call(pool, "rate_limited", wait=7.0)
    assert pool.ready_in() == 7.0
    started = clock.at
    await asyncio.gather(*(call(pool) for _ in range(8)))
    assert clock.at == started + 7.0
    pauses = []
    for _ in range(50):
        await call(pool, "rate_limited")
        pauses.append(pool.ready_in())
    assert pauses[0] <= 1.0
    assert 30.0 < max(pauses) <= MAX_BACKOFF_SECONDS
    clock.at += MAX_BACKOFF_SECONDS
    await call(pool)
    await call(pool, "rate_limited")
    assert pool.ready_in() <= 1.0


@given(st.integers(1, 400), st.integers(0, 400))
def test_repeats_are_a_tenth_of_all_calls(calls: int, wanted: int) -> None:
    """However often it is asked for: ten to begin with, and one for each ten calls."""
    pool, _ = a_pool()

    async def run() -> int:
        granted = sum(pool.take_retry() for _ in range(wanted))
        for _ in range(calls):
            await call(pool)
            granted += pool.take_retry()
        return granted

    assert asyncio.run(run()) <= 10 + calls / 10


@pytest.mark.parametrize(
    ("limit", "wait"),
    [
        (RateLimit("requests", 1000, 1000, 60.0), 0.0),
        (RateLimit("requests", 1000, 200, 60.0), 0.0),
        (RateLimit("requests", 1000, 100, 60.0), 0.5 * 60 / 900),
        (RateLimit("requests", 1000, 0, 60.0), 60 / 1000),
        (RateLimit("input-tokens", 60_000, 0, 60.0), 6.0),  # of which a call takes 6,000
    ],
)
def test_calls_are_spread_when_a_limit_runs_low(limit: RateLimit, wait: float) -> None:
    """No wait while a fifth is left; below, it grows up to the time that one call takes to refill, until it is full."""
    pace = RateLimiter()
    pace.record_tokens(6_000)
    pace.record_limits([limit], 0.0)
    pace.begin_call(0.0)
    assert pace.wait(0.0) == pytest.approx(wait)
    pace.begin_call(60.0)
    assert pace.wait(60.0) == 0.0


async def test_no_header_stops_a_judge_for_months() -> None:
    """A gateway that writes the reset as an instant (seconds since the epoch): an hour later we look again."""
    pool, clock = a_pool()
    told = {"limit": "100", "remaining": "1", "reset": "1790000000"}
    headers = [(f"x-ratelimit-{what}-requests", value) for what, value in told.items()]
    async with pool.slot(clock.now() + 25.0) as is_trial:
        pool.record_success(parse_rate_limits(headers, now=1_789_999_990.0), 100, is_trial=is_trial)
    await call(pool)  # the pace is heard when a call begins
    clock.at += 3601.0
    async with asyncio.timeout(DEADLINE):
        await call(pool, until=clock.now() + 25.0)


async def test_headers_slow_the_pool_down(telemetry: Telemetry) -> None:
    """When a provider says that nothing is left, calls start as fast as it refills; what is left is exported."""
    pool, clock = a_pool(telemetry, concurrency=8)
    async with pool.slot(FOREVER) as is_trial:
        pool.record_success((RateLimit("requests", 60, 0, 60.0),), 10, is_trial=is_trial)
    started = clock.at
    await asyncio.gather(*(call(pool) for _ in range(8)))
    assert clock.at - started == pytest.approx(7.0)
    assert list(telemetry.levels().values()) == [0.0]


async def test_no_more_calls_at_a_time_than_allowed() -> None:
    """The places are those of calls under way."""
    pool, _ = a_pool(concurrency=3)
    under_way: set[int] = set()
    most: list[int] = []

    async def one(number: int) -> None:
        async with pool.slot(FOREVER) as is_trial:
            under_way.add(number)
            most.append(len(under_way))
            await asyncio.sleep(0)
            under_way.remove(number)
            pool.record_success((), 1, is_trial=is_trial)

    await asyncio.gather(*map(one, range(20)))
    assert max(most) == 3


LIMITS = {
    "input-tokens": {"limit": "50000", "remaining": "49000", "reset": "2026-11-21T12:00:30Z"},
    "requests": {"limit": "many", "remaining": "1", "reset": "2026-11-21T12:00:30Z"},
}


def test_limits_are_read_and_nonsense_is_left_out() -> None:
    """An instant becomes seconds from now; a limit of which a part is missing or no number is none."""
    noon = 1_795_262_400.0

    def read(now: float = noon, **parts: str) -> tuple[RateLimit, ...]:
        told = LIMITS | {"input-tokens": LIMITS["input-tokens"] | parts}
        named = {f"anthropic-ratelimit-{of}-{part}": value for of, row in told.items() for part, value in row.items()}
        return parse_rate_limits([*named.items(), ("content-type", "application/json")], now)

    assert read() == (RateLimit("input-tokens", 50_000.0, 49_000.0, 30.0),)
    assert (read(noon + 90.0)[0].seconds, read(reset="12.5")[0].seconds) == (0.0, 12.5)
    assert [read(reset=broken) for broken in ("soon", "2026-13-40", "3 days")] == [()] * 3
    assert [read(limit=broken) for broken in ("inf", "nan", "-3", "0", "")] == [()] * 5


def test_x23_a_header_of_digits_takes_linear_time() -> None:
    """A provider chooses its headers: 16,000 digits took half a minute, in which nothing else ran."""
    begun = process_time()
    for digits in ("1" * 16_000, "1." * 8_000, "1m" * 8_000 + "x"):
        parts = {"limit": "60", "remaining": "59", "reset": digits}
        parse_rate_limits([(f"x-ratelimit-{part}-tokens", text) for part, text in parts.items()], 0.0)
    assert process_time() - begun < 1.0
