"""Converts crontab expressions into APScheduler triggers, in UTC.

APScheduler numbers weekdays from Monday, and requires both the day of the month and the weekday to match. crontab(5)
numbers weekdays from Sunday (7 is Sunday too), and if an expression restricts both, either is sufficient.
"""

import re
from datetime import UTC, datetime

from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.combining import OrTrigger
from apscheduler.triggers.cron import CronTrigger

_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")
_PART = re.compile(r"(?:\*|(?P<first>[0-7]|[a-z]{3})(?:-(?P<last>[0-7]|[a-z]{3}))?)(?:/(?P<step>[1-9][0-9]?))?")
_MONTH_DAY, _WEEK_DAY, _FIELDS = 2, 4, 5
_ANY_DATE = datetime(2000, 1, 1, tzinfo=UTC)


def trigger(expression: str, jitter: int | None = None) -> BaseTrigger:
    """Build the trigger of a crontab expression: minute, hour, day of the month, month, weekday.

    `jitter` is the maximum random delay of a run in seconds. `ValueError` if it is not one, or never fires.
    """
    fields = expression.split()
    if len(fields) != _FIELDS:
        raise ValueError(f"{len(fields)} fields, where a crontab line has {_FIELDS}")
    restricts_both_days = not any(fields[index].startswith("*") for index in (_MONTH_DAY, _WEEK_DAY))
    fields[_WEEK_DAY] = week_days(fields[_WEEK_DAY])
    if restricts_both_days:
        either = ([*fields[:index], "*", *fields[index + 1 :]] for index in (_MONTH_DAY, _WEEK_DAY))
        return OrTrigger([_cron_trigger(some, jitter) for some in either])
    cron_trigger = _cron_trigger(fields, jitter)
    if cron_trigger.get_next_fire_time(None, _ANY_DATE) is None:
        raise ValueError("it never fires")
    return cron_trigger


def week_days(field: str) -> str:
    """Convert the weekday field of a crontab (numbers, names, ranges, steps) into names of days.

    >>> week_days("1-5"), week_days("0,7"), week_days("*/2"), week_days("fri-7"), week_days("*")
    ('mon,tue,wed,thu,fri', 'sun', 'sun,tue,thu,sat', 'fri,sat,sun', '*')
    """
    if field == "*":
        return field
    days: list[str] = []
    for part in field.lower().split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is no day of a week")
        first = 0 if match["first"] is None else _day_number(match["first"])
        last = 6 if match["first"] is None or (match["last"] is None and match["step"]) else first
        last = last if match["last"] is None else _day_number(match["last"])
        if last < first and _DAYS[last] == "sun":
            last = 7  # Sunday is 7 at the end of a range such as `fri-sun`
        if last < first:
            raise ValueError(f"{part!r} ends before it begins")
        days += _DAYS[first : last + 1 : int(match["step"] or 1)]
    return ",".join(dict.fromkeys(days))


def _day_number(day: str) -> int:
    if day.isdigit():
        return int(day)
    if day not in _DAYS:
        raise ValueError(f"{day!r} is no day of a week")
    return _DAYS.index(day)


def _cron_trigger(fields: list[str], jitter: int | None) -> CronTrigger:
    cron_trigger = CronTrigger.from_crontab(" ".join(fields), timezone="UTC")
    cron_trigger.jitter = jitter
    return cron_trigger
