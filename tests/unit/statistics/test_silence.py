"""Silence: learnt by the hour of the week, told after what chance explains, and over with the next answer."""

import json
from functools import cache

import pytest

from ragwatch.statistics.drift.silence import MAX_STEP, RETIRED, Rhythm, from_dict, observe

DAY, HOUR, MINUTE = 86400.0, 3600.0, 60.0
DAYS = 120.0
MONDAY = 4 * DAY  # the epoch began on a Thursday


@cache
def observed(
    rhythm: Rhythm, start: float, end: float, every: float | None, *, open_at: int = 0, close_at: int = 24
) -> Rhythm:
    """The rhythm after the minutes of some time, with an answer every so many seconds while the route is open."""
    for minute in range(int(start // MINUTE), int(end // MINUTE)):
        now = minute * MINUTE
        is_open = open_at <= now % DAY // HOUR < close_at
        answered = every is not None and is_open and now % every < MINUTE
        rhythm = observe(rhythm, now, answered=answered, days=DAYS)
    return rhythm


def test_a_thin_route_that_stops_is_noticed() -> None:
    """Five answers an hour for nine days, then none: silent after hours, until the next answer."""
    rhythm = observed(Rhythm(), MONDAY, MONDAY + 9 * DAY, 720.0)
    assert not rhythm.silent
    assert rhythm.rate(MONDAY + 9 * DAY) == pytest.approx(5.0, rel=0.1)
    end = MONDAY + 9 * DAY
    assert not observed(rhythm, end, end + HOUR, None).silent
    stopped = observed(rhythm, end, end + 5 * HOUR, None)
    assert stopped.silent
    assert stopped.missed >= stopped.limit(DAYS)
    again = observe(stopped, end + 5 * HOUR, answered=True, days=DAYS)
    assert (again.silent, again.missed) == (False, 0.0)


def test_only_the_first_answer_of_a_minute_counts() -> None:
    """A second one moves the time of the last look alone."""
    rhythm = observed(Rhythm(), MONDAY, MONDAY + HOUR, 600.0)
    once = observe(rhythm, MONDAY + HOUR, answered=True, days=DAYS)
    twice = observe(once, MONDAY + HOUR + 20.0, answered=True, days=DAYS)
    assert (twice.answers, twice.gaps, twice.last) == (once.answers, once.gaps, once.last)
    assert twice.at == MONDAY + HOUR + 20.0


def test_nights_are_learnt_and_no_first_night_is_silence() -> None:
    """Open from 8 to 18, sixty an hour: no alarm at night, from the first day on; one if a morning stays empty."""
    rhythm = Rhythm()
    for minute in range(int(MONDAY // MINUTE), int((MONDAY + 4 * DAY) // MINUTE)):
        now = minute * MINUTE
        rhythm = observe(rhythm, now, answered=8 <= now % DAY // HOUR < 18, days=DAYS)
        assert not rhythm.silent, now
    friday = MONDAY + 4 * DAY
    assert not observed(rhythm, friday, friday + 8 * HOUR, None).silent
    assert observed(rhythm, friday, friday + 12 * HOUR, None).silent


def test_a_first_weekend_is_no_silence() -> None:
    """Working days say nothing about Saturday."""
    rhythm = observed(Rhythm(), MONDAY, MONDAY + 5 * DAY, 120.0)
    assert not observed(rhythm, MONDAY + 5 * DAY, MONDAY + 7 * DAY, None).silent


def test_an_outage_of_ragwatch_is_no_silence() -> None:
    """Nothing was observed meanwhile: the gap starts again, and a clock that is set back moves nothing else."""
    rhythm = observed(Rhythm(), MONDAY, MONDAY + 8 * DAY, 60.0)
    back = observe(rhythm, MONDAY + 8 * DAY + 12 * HOUR, answered=False, days=DAYS)
    assert (back.silent, back.missed, back.last) == (False, 0.0, MONDAY + 8 * DAY + 12 * HOUR)
    assert observe(rhythm, MONDAY, answered=False, days=DAYS).last == MONDAY
    silent = observed(rhythm, MONDAY + 8 * DAY, MONDAY + 8 * DAY + 2 * HOUR, None)
    assert silent.silent
    assert observe(silent, MONDAY + 9 * DAY, answered=False, days=DAYS).silent


def test_an_outage_of_the_route_is_not_learnt() -> None:
    """After a day without an answer the rates are what they were."""
    rhythm = observed(Rhythm(), MONDAY, MONDAY + 8 * DAY, 60.0)
    end = MONDAY + 9 * DAY
    back = observe(observed(rhythm, MONDAY + 8 * DAY, end, None), end, answered=True, days=DAYS)
    assert back.rate(MONDAY + 8 * DAY + 12 * HOUR) == pytest.approx(60.0, rel=0.05)


def test_a_retired_route_is_forgotten() -> None:
    """After a week its alarm ends."""
    rhythm = observed(Rhythm(), MONDAY, MONDAY + 8 * DAY, 60.0)
    now = MONDAY + 8 * DAY
    while now <= MONDAY + 8 * DAY + RETIRED + MAX_STEP:
        rhythm = observe(rhythm, now, answered=False, days=DAYS)
        now += MAX_STEP
    assert not rhythm.silent
    assert not any(rhythm.answers)


def test_irregular_traffic_is_given_more_time() -> None:
    """As many answers in half an hour, then none for hours, at no fixed time of the day: long gaps raise the limit."""
    regular = observed(Rhythm(), MONDAY, MONDAY + 8 * DAY, 600.0)
    bursty = Rhythm()
    for minute in range(int(MONDAY // MINUTE), int((MONDAY + 8 * DAY) // MINUTE)):
        answered = minute % 310 < 31
        bursty = observe(bursty, minute * MINUTE, answered=answered, days=DAYS)
    assert bursty.limit(DAYS) > 1.3 * regular.limit(DAYS)


def test_state_is_kept_as_json() -> None:
    """It continues where it was; another shape is refused."""
    rhythm = observed(Rhythm(), MONDAY, MONDAY + DAY, 600.0)
    kept = json.loads(json.dumps(rhythm._asdict()))
    assert from_dict(kept) == rhythm
    with pytest.raises(ValueError, match="columns of"):
        from_dict(kept | {"hours": []})
