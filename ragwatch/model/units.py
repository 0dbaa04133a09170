"""Parses sizes and durations of the configuration, such as `500MB` and `15m`."""

import re

_SIZE = re.compile(r"(\d{1,15})(?:(\.\d{1,6})?\s?([KMGT]i?B|B))?", re.IGNORECASE)
_BYTES = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_BYTES |= {"tib": 2**40}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s?(ms|s|m|h|d|w)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_ADVICE = "is not a size; write one such as 500MB or 2GiB"


def size_bytes(value: object) -> object:
    """Convert a size such as `2GiB` to bytes; values that are neither text nor boolean are returned unchanged.

    A text without a unit is a number of bytes, because a variable of the environment is always a text.
    """
    if isinstance(value, bool):  # YAML reads yes, no, on and off as booleans, and pydantic reads booleans as 1 and 0
        raise ValueError(f"{str(value).lower()} {_ADVICE}")  # noqa: TRY004 - pydantic wants ValueError
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value.strip())
    if match is None:
        raise ValueError(f"{value!r} {_ADVICE}")
    whole, fraction, unit = match.groups()
    return int(float(f"{whole}{fraction or ''}") * _BYTES[(unit or "B").lower()])


def duration_seconds(value: object) -> object:
    """Convert a duration such as `15m` to seconds; values that are not text are returned unchanged.

    >>> duration_seconds("15m"), duration_seconds("1.5h"), duration_seconds(10)
    (900.0, 5400.0, 10)
    """
    if not isinstance(value, str):
        return value
    match = _DURATION.fullmatch(value.strip())
    if match is None:
        raise ValueError(f"{value!r} is not a duration; write one such as 30s, 15m, 1h or 7d")
    return float(match[1]) * _SECONDS[match[2]]
