"""Schedule: a crontab line means what crontab(5) says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ragwatch.config.crontab import week_days
from ragwatch.daemon.schedule import trigger_of

SATURDAY = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def times(schedule: str, count: int) -> list[str]:
    """When a suite with this schedule runs, from a Saturday noon on, without any spread."""
    trigger, now, found = trigger_of(schedule, 0.0), SATURDAY, []
    for _ in range(count):
        fires = trigger.get_next_fire_time(None, now)
        assert fires is not None
        found.append(f"{fires:%a %d %H:%M}")
        now = fires + timedelta(seconds=1)
    return found


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("0 6 * * 0", ["Sun 22 06:00", "Sun 29 06:00"]),
        ("0 6 * * 7", ["Sun 22 06:00", "Sun 29 06:00"]),
        ("0 6 * * 1-5", ["Mon 23 06:00", "Tue 24 06:00"]),
        ("0 6 * * fri-sun", ["Sun 22 06:00", "Fri 27 06:00"]),
        ("0 6 * * */3", ["Sun 22 06:00", "Wed 25 06:00"]),
        ("0 6 * * 4/2", ["Thu 26 06:00", "Sat 28 06:00"]),
        ("0 6 23 * 2", ["Mon 23 06:00", "Tue 24 06:00"]),
        ("0 6 */2 * 2", ["Tue 01 06:00", "Tue 15 06:00"]),
        ("*/30 * * * *", ["Sat 21 12:00", "Sat 21 12:30"]),
    ],
)
def test_when_it_runs(schedule: str, expected: list[str]) -> None:
    """Weeks begin on Sunday, 7 is Sunday too, and of two kinds of days either will do."""
    assert times(schedule, len(expected)) == expected


@pytest.mark.parametrize("field", ["8", "0-9", "mon-xyz", "5-2", "1,,2", "*/0", "l", "thu-tue", "1-5-6"])
def test_what_is_no_day(field: str) -> None:
    """Neither a number from 0 to 7, a name, a range nor a step."""
    with pytest.raises(ValueError, match=r"no day of a week|ends before it begins"):
        week_days(field)


@pytest.mark.parametrize("schedule", ["0 6 * *", "0 6 * * * *", "@daily", "99 6 * * 1", "0 0 30 2 *"])
def test_what_is_no_crontab(schedule: str) -> None:
    """The wrong number of fields, a field that is none, or a day that never comes: the suite would never run."""
    with pytest.raises(ValueError, match=r"fields|Error validating|never"):
        trigger_of(schedule, 0.0)
