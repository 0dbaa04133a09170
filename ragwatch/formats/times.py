"""Converts times in logs to seconds since the epoch."""

from __future__ import annotations

from datetime import UTC, datetime
from sys import float_info

from ragwatch.errors import FormatError
from ragwatch.model.sample import RejectReason

# A number above a limit is in that fraction of a second: seconds reach 1e11 in the year 5138.
_MAX_SECONDS = 10**11
EARLIEST, LATEST = 946_684_800.0, 4_102_444_800.0
"""The years 2000 to 2099: other times are a zero, a duration, a counter or a number in another unit."""
_MAX_NUMBER = float_info.max
_DATE, _SECOND = len("20260501"), len("20260501100000")
_DATES = (_DATE, _SECOND)  # as numbers of seconds these would be a time in 1970 and one after 2286
_UNITS = ((10**17, 10**9), (10**14, 10**6), (_MAX_SECONDS, 10**3))


def epoch_seconds(value: object, path: str) -> float:
    """Convert ISO 8601 text (UTC if it has no offset) or a number of s, ms, us or ns to seconds since the epoch.

    >>> epoch_seconds("2026-05-01T10:00:00+02:00", "at") == epoch_seconds(1777622400000, "at") == 1777622400.0
    True

    Raises:
        FormatError: wrong_type, if it is neither.
    """
    if isinstance(value, str):
        return _from_text(value, path)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _from_number(value, path)
    raise _wrong(value, path)


def plausible_time(value: object, path: str) -> float:
    """Convert the time of an answer or a document.

    Raises:
        FormatError: It is no time, or lies outside of `EARLIEST` to `LATEST`.
    """
    seconds = epoch_seconds(value, path)
    if EARLIEST <= seconds <= LATEST:
        return seconds
    message = f"{str(value)[:40]!r} is no plausible time of an answer or document, which lies in the years 2000 to 2099"
    raise FormatError(RejectReason.IMPLAUSIBLE_TIME, path, message)


def without_offset(value: object) -> datetime | None:
    """Return the moment in an ISO 8601 text that has a time of day and no offset; None for anything else."""
    if not isinstance(value, str) or len(value) <= len("2026-05-01") or value.replace(".", "", 1).isdecimal():
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo is None else None


def _from_text(text: str, path: str) -> float:
    # Digits are read as a number before a date: ISO's basic format allows any separator instead of T, so that one in
    # two hundred timestamps in milliseconds, such as "1794010112345", would also be valid as 23:45 of 1 January 1794.
    compact = text.isdecimal() and len(text) in _DATES
    if not compact and text.replace(".", "", 1).isdecimal():
        return _from_digits(text, path)
    try:
        moment = datetime.fromisoformat(f"{text[:_DATE]}T{text[_DATE:]}" if compact and len(text) > _DATE else text)
    except ValueError:
        pass
    else:
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return _from_number(moment.timestamp(), path)
    return _from_digits(text, path)


def _from_digits(text: str, path: str) -> float:
    try:
        # Integers stay integers: as floats, nanoseconds would be off by hundreds.
        return _from_number(int(text) if len(text) < 20 and text.isdecimal() else float(text), path)
    except ValueError:
        raise _wrong(text, path) from None


def _from_number(number: float, path: str) -> float:
    if 0 <= number <= _MAX_SECONDS:
        return float(number)
    if not 0 <= number <= _MAX_NUMBER:
        raise _wrong(number, path)
    return number / next(per_second for limit, per_second in _UNITS if number > limit)


def _wrong(value: object, path: str) -> FormatError:
    message = f"must be ISO 8601 or a number of seconds since 1970, not {str(value)[:40]!r}"
    return FormatError(RejectReason.WRONG_TYPE, path, message)
