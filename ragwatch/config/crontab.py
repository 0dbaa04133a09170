"""Crontab: when a crontab line says that something is done, in UTC.

APScheduler counts the days of a week from Monday and wants both days to fit. A crontab counts them from Sunday (7 is
Sunday too), and where a line names days of the month and days of the week, either will do (crontab(5)).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.combining import OrTrigger
from apscheduler.triggers.cron import CronTrigger

_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")
_PART = re.compile(r"(?:\*|(?P<first>[0-7]|[a-z]{3})(?:-(?P<last>[0-7]|[a-z]{3}))?)(?:/(?P<step>[1-9][0-9]?))?")
_MONTH_DAY, _WEEK_DAY, _FIELDS = 2, 4, 5
_SOME_DAY = datetime(2000, 1, 1, tzinfo=UTC)


def trigger(line: str, spread: int | None = None) -> BaseTrigger:
    """When the line fires.

    Args:
        line: Minute, hour, day of the month, month, day of the week.
        spread: Seconds by which a run may be late, at most.

    Raises:
        ValueError: It is no crontab line, or one that never fires.
    """
    fields = line.split()
    if len(fields) != _FIELDS:
        raise ValueError(f"{len(fields)} fields, where a crontab line has {_FIELDS}")
    either = not any(fields[place].startswith("*") for place in (_MONTH_DAY, _WEEK_DAY))
    fields[_WEEK_DAY] = week_days(fields[_WEEK_DAY])
    if either:
        return OrTrigger([_one(_any(fields, place), spread) for place in (_MONTH_DAY, _WEEK_DAY)])
    found = _one(fields, spread)
    if found.get_next_fire_time(None, _SOME_DAY) is None:
        raise ValueError("it never fires")
    return found


def week_days(field: str) -> str:
    """Days of a week by name, out of a crontab's numbers, names, ranges and steps.

    >>> week_days("1-5"), week_days("0,7"), week_days("*/2"), week_days("fri-7"), week_days("*")
    ('mon,tue,wed,thu,fri', 'sun', 'sun,tue,thu,sat', 'fri,sat,sun', '*')

    Raises:
        ValueError: It names no days.
    """
    if field == "*":
        return field
    found: list[str] = []
    for part in field.lower().split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is no day of a week")
        first = 0 if match["first"] is None else _number(match["first"])
        last = 6 if match["first"] is None or (match["last"] is None and match["step"]) else first
        last = last if match["last"] is None else _number(match["last"])
        if last < first and _DAYS[last] == "sun":
            last = 7  # `fri-sun` ends with the week
        if last < first:
            raise ValueError(f"{part!r} ends before it begins")
        found += _DAYS[first : last + 1 : int(match["step"] or 1)]
    return ",".join(dict.fromkeys(found))


def _number(day: str) -> int:
    if day.isdigit():
        return int(day)
    if day not in _DAYS:
        raise ValueError(f"{day!r} is no day of a week")
    return _DAYS.index(day)


def _any(fields: list[str], place: int) -> list[str]:
    """The fields with any day of the month, or of the week."""
    return [*fields[:place], "*", *fields[place + 1 :]]


def _one(fields: list[str], spread: int | None) -> CronTrigger:
    found = CronTrigger.from_crontab(" ".join(fields), timezone="UTC")
    found.jitter = spread
    return found
