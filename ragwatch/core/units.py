"""Parses sizes of the configuration, such as `500MB` and `2GiB`."""

from __future__ import annotations

import re

_SIZE = re.compile(r"(\d{1,15})(?:(\.\d{1,6})?\s?([KMGT]i?B|B))?", re.IGNORECASE)
_BYTES = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_BYTES |= {"tib": 2**40}
_ADVICE = "is not a size; write one such as 500MB or 2GiB"


def size_bytes(value: object) -> object:
    """Convert a size such as `2GiB` to bytes; values that are neither text nor boolean are returned unchanged.

    A text without a unit is a number of bytes, because a variable of the environment is always a text.

    >>> size_bytes("2GiB"), size_bytes("500 MB"), size_bytes("4096"), size_bytes(10)
    (2147483648, 500000000, 4096, 10)

    Raises:
        ValueError: It is a text but not a size, or a boolean.
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
