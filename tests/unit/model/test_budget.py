"""Budget: caps hold, money lasts, and probabilities fall smoothly, for all alike, and never to zero."""

import math
from collections import deque
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragwatch.model.budget import (
    BURST,
    HORIZON,
    MIN_FACTOR,
    Cost,
    DecayingRate,
    SpendingCap,
    SpendingForecast,
    fits,
    pacing_factor,
    remaining,
)

HOUR, DAY = 3600.0, 86400.0
STEP = 60.0
PRICE = 0.001
MONEY = st.floats(0.0, 100.0)
TOKENS = st.integers(0, 10**9)
COSTS = st.builds(Cost, MONEY, TOKENS)
CAPS = st.builds(SpendingCap, st.floats(1.0, DAY), st.none() | MONEY, st.none() | TOKENS)


def one_at(rate: float) -> Callable[[float], float]:
    """Traffic that never changes."""
    return lambda _: rate


def by_day(now: float) -> float:
    """Traffic that swings by nine tenths of its mean, with the day."""
    return 1.0 + 0.9 * math.sin(2 * math.pi * now / DAY)


def live(cap: SpendingCap, rate: Callable[[float], float], days: float) -> list[tuple[float, float, float, float]]:
    """(time, rate, factor, dollars in the span) minute by minute of a judge that follows `pacing_factor`."""
    calls, held, minutes = deque[tuple[float, float]](), 0.0, []
    for minute in range(int(days * DAY / STEP)):
        now = minute * STEP
        while calls and calls[0][0] <= now - cap.seconds:
            held -= calls.popleft()[1]
        factor = pacing_factor([cap], [Cost(held)], unit_cost=Cost(PRICE), waiting=0.0, rate=rate(now))
        calls.append((now, factor * rate(now) * STEP * PRICE))
        held += calls[-1][1]
        minutes.append((now, rate(now), factor, held))
    return minutes


def effective(part: list[tuple[float, float, float, float]]) -> float:
    """Effective sample size of an estimate over this time, as weights 1/factor leave it (Kish)."""
    return STEP * sum(rate for _, rate, _, _ in part) ** 2 / sum(rate / factor for _, rate, factor, _ in part)


@pytest.mark.costly
@given(CAPS, COSTS, COSTS)
def test_what_fits_leaves_nothing_above_the_cap(cap: SpendingCap, spent: Cost, worst: Cost) -> None:
    """A call fits exactly when neither limit that is there would be passed."""
    total = spent + worst
    passed = (cap.usd is not None and total.usd > cap.usd) or (cap.tokens is not None and total.tokens > cap.tokens)
    assert fits(cap, spent, worst) is not passed


@given(st.lists(st.tuples(CAPS, COSTS), max_size=4))
def test_what_remains_is_a_share(pairs: list[tuple[SpendingCap, Cost]]) -> None:
    """Between 0 and 1, never more for another cap, and 0 where a cap is used up or gives nothing."""
    caps, spent = [cap for cap, _ in pairs], [cost for _, cost in pairs]
    share = remaining(caps, spent)
    assert 0.0 <= share <= 1.0
    for cap, cost in pairs:
        assert share <= remaining([cap], [cost])
        if (cap.usd is not None and cost.usd >= cap.usd) or (cap.tokens is not None and cost.tokens >= cap.tokens):
            assert share == 0.0


def test_a_cap_without_limits_limits_nothing() -> None:
    """Neither what is left of it nor the pace."""
    assert fits(SpendingCap(DAY), Cost(5.0, 5), Cost(1.0, 1))
    assert remaining([SpendingCap(DAY)], [Cost(5.0, 5)]) == 1.0
    assert pacing_factor([SpendingCap(DAY)], [Cost(5.0, 5)], unit_cost=Cost(1.0, 1), waiting=9, rate=9.0) == 1.0


@given(st.lists(st.tuples(CAPS, COSTS), max_size=3), COSTS, st.floats(0, 1e6), st.floats(0, 1e4))
def test_a_factor_is_a_probability_that_is_never_zero(
    pairs: list[tuple[SpendingCap, Cost]], unit_cost: Cost, waiting: float, rate: float
) -> None:
    """In [1/1024, 1], whatever is spent, waits or arrives; more of any of these never raises it."""
    caps, spent = [cap for cap, _ in pairs], [cost for _, cost in pairs]
    factor = pacing_factor(caps, spent, unit_cost=unit_cost, waiting=waiting, rate=rate)
    assert MIN_FACTOR <= factor <= 1.0
    assert pacing_factor(caps, spent, unit_cost=unit_cost, waiting=waiting + 1, rate=rate) <= factor
    assert pacing_factor(caps, spent, unit_cost=unit_cost, waiting=waiting, rate=rate * 2) <= factor
    assert (
        pacing_factor(caps, [cost + Cost(1.0, 1) for cost in spent], unit_cost=unit_cost, waiting=waiting, rate=rate)
        <= factor
    )


@pytest.mark.parametrize(
    ("caps", "spent", "unit_cost", "factor"),
    [
        ([SpendingCap(600.0, usd=6.0)], [Cost(5.0)], Cost(0.1), 0.01),  # a dollar for 100 s of ten dimes
        ([SpendingCap(600.0, tokens=6000)], [Cost(9.9, 5000)], Cost(0.1, 100), 0.01),
        ([SpendingCap(600.0, usd=6.0, tokens=60_000)], [Cost(5.0, 59_000)], Cost(0.1, 100), 0.01),
        ([SpendingCap(600.0, usd=6.0), SpendingCap(6000.0, usd=60.0)], [Cost(5.0), Cost(58.0)], Cost(0.1), 0.002),
        ([SpendingCap(600.0, usd=6.0)], [Cost(0.0)], Cost(0.1), BURST * 0.01),
        ([SpendingCap(600.0, usd=6.0)], [Cost(6.0)], Cost(0.1), MIN_FACTOR),
        ([SpendingCap(600.0, usd=6.0)], [Cost(7.0)], Cost(), MIN_FACTOR),
        ([SpendingCap(600.0, usd=6.0)], [Cost(5.0)], Cost(), 1.0),
        ([], [], Cost(1.0), 1.0),
    ],
)
def test_factors_by_hand(caps: list[SpendingCap], spent: list[Cost], unit_cost: Cost, factor: float) -> None:
    """Of ten readings a second: what is left over a sixth of the span; the smallest over caps, money and tokens."""
    assert pacing_factor(caps, spent, unit_cost=unit_cost, waiting=0, rate=10.0) == pytest.approx(factor)


def test_what_waits_is_paid_first() -> None:
    """Money that draws in the queue will take is not given to new ones."""
    cap, spent = SpendingCap(600.0, usd=6.0), Cost(5.0)
    assert pacing_factor([cap], [spent], unit_cost=Cost(0.1), waiting=5, rate=10.0) == pytest.approx(0.005)
    assert pacing_factor([cap], [spent], unit_cost=Cost(0.1), waiting=10, rate=10.0) == MIN_FACTOR


def test_nobody_is_lowered_where_money_is_plenty() -> None:
    """Traffic that costs a tenth of the cap is read whole, day and night."""
    assert {factor for _, _, factor, _ in live(SpendingCap(DAY, usd=864.0), by_day, 2)} == {1.0}


@pytest.mark.parametrize("rate", [one_at(1.0), by_day])
def test_money_lasts_through_the_night(rate: Callable[[float], float]) -> None:
    """Where traffic asks for ten times the cap, every quarter of a day gets its part, from the first day on."""
    cap = SpendingCap(DAY, usd=8.64)
    minutes = live(cap, rate, 4)
    assert max(held for _, _, _, held in minutes) <= 8.64 + 1e-9
    for day in range(4):
        part = [minute for minute in minutes if day * DAY <= minute[0] < (day + 1) * DAY]
        assert sum(seen * factor for _, seen, factor, _ in part) * STEP * PRICE > 0.8 * 8.64
        assert effective(part) > 0.4 * 8.64 / PRICE
        assert min(factor for _, _, factor, _ in part) > MIN_FACTOR


def test_spending_settles_at_six_sevenths() -> None:
    """Under steady traffic the factor comes to rest where the docstring says, and moves little by little."""
    cap = SpendingCap(HOUR, usd=0.36)
    minutes = live(cap, one_at(1.0), 1)
    rest = HORIZON / (HORIZON + 1) * 0.1
    assert [factor for _, _, factor, _ in minutes][-60:] == pytest.approx([rest] * 60, rel=0.02)
    steps = [abs(after[2] - before[2]) for before, after in pairwise(minutes)]
    assert max(steps) < 0.02


def test_a_rate_is_known_after_some_time() -> None:
    """None before any time has passed; exact under steady arrivals from the first interval on, but for its length."""
    rate = DecayingRate(600.0)
    assert rate.per_second is None
    rate.add(100, 0.0)
    assert rate.per_second is None
    for now in range(1, 3001):
        rate.add(4, float(now))
        assert rate.per_second == pytest.approx(4.0, rel=0.002)


def test_a_rate_forgets() -> None:
    """After five time constants of silence less than a hundredth is left; a clock set back does no harm."""
    rate = DecayingRate(60.0)
    rate.add(0, 0.0)
    rate.add(600, 60.0)
    before = rate.per_second
    rate.add(0, 30.0)
    assert rate.per_second == before
    rate.add(0, 360.0)
    assert before is not None
    assert 0.0 < (rate.per_second or 0.0) < before / 100


def test_a_pace_says_nothing_before_it_knows() -> None:
    """1 at first, whatever a new process finds in the books; the least where a cap is used up already."""
    caps = [SpendingCap(DAY, usd=1.0)]
    pace = SpendingForecast()
    assert pace.factor(caps, [Cost(0.5)], 10) == 1.0
    pace.update(0.0, assigned=5000, settled=4000, spent=Cost(), factor=1.0)
    assert (pace.since, pace.unit_cost, pace.factor(caps, [Cost(0.5)], 10)) == (0.0, None, 1.0)
    assert pace.factor(caps, [Cost(1.0)], 10) == MIN_FACTOR


def test_a_pace_learns_price_and_traffic() -> None:
    """The mean cost of a reading since it began, and what it would be given at factor 1."""
    pace = SpendingForecast()
    pace.update(0.0, assigned=100, settled=90, spent=Cost(), factor=1.0)
    pace.update(10.0, assigned=110, settled=91, spent=Cost(0.5, 50), factor=0.5)
    assert pace.unit_cost == Cost(0.5, 50)  # the first reading tells more than nothing
    pace.update(20.0, assigned=120, settled=100, spent=Cost(1.0, 105), factor=0.5)
    assert pace.unit_cost == Cost(0.5, 50)  # a few more are no better: what is under way counts at its worst
    pace.update(30.0, assigned=130, settled=115, spent=Cost(2.5, 251), factor=0.5)
    assert pace.unit_cost == Cost(0.1, 11)
    cap = SpendingCap(600.0, usd=6.0)
    expected = pacing_factor([cap], [Cost(5.0)], unit_cost=Cost(0.1), waiting=2, rate=2.0)
    assert pace.factor([cap], [Cost(5.0)], 2) == pytest.approx(expected, rel=0.02)
    assert expected == pytest.approx(0.04)


def test_a_pace_starts_its_price_anew_each_day() -> None:
    """A price that rises is known a day later; a day without readings keeps the old one."""
    pace = SpendingForecast()
    pace.update(0.0, assigned=0, settled=0, spent=Cost(), factor=1.0)
    pace.update(DAY, assigned=100, settled=100, spent=Cost(1.0), factor=1.0)
    assert (pace.since, pace.unit_cost) == (DAY, Cost(0.01))
    pace.update(2 * DAY, assigned=100, settled=100, spent=Cost(), factor=1.0)
    assert (pace.since, pace.unit_cost) == (DAY, Cost(0.01))
    pace.update(2 * DAY + 60, assigned=200, settled=200, spent=Cost(10.0), factor=1.0)
    assert (pace.since, pace.unit_cost) == (2 * DAY + 60, Cost(0.1))
