"""Causes as JSON values, and as sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ragwatch.core.causes.search import Cause, Findings
from ragwatch.core.causes.slices import METADATA_PREFIX, Attribute, Slice

_DIGITS = 4
_MAX_LOG = 700.0  # a greater one is no number
_PERCENT = 100
_VERBS = {
    Attribute.CONTEXT: "{} is in",
    Attribute.TOP_CONTEXT: "{} is ranked first in",
    Attribute.CITED_CONTEXT: "{} is cited in",
    Attribute.MISSING_CONTEXT: "{} not retrieved:",
    Attribute.CONTEXTS: "number of contexts {}:",
    Attribute.TOP_SCORE: "top score {}:",
    Attribute.ANSWER_LENGTH: "{} characters of answer:",
    Attribute.JUDGE: "judge {}:",
    Attribute.TERM: "“{}” is asked in",
    Attribute.HOUR: "{}:",
}


def findings_line(findings: Findings) -> dict[str, Any]:
    """Return the findings as JSON values. Shares lie in [0, 1], times are seconds since the epoch."""
    return {
        "causes": [cause_line(cause, findings) for cause in findings.causes],
        "looked_at": findings.looked_at,
        "answers": findings.answers,
        "failing": findings.failing,
        "share": _rounded(findings.share),
        "begin": findings.begin,
        "end": findings.end,
    }


def cause_line(cause: Cause, findings: Findings) -> dict[str, Any]:
    """Return one cause as JSON values: `failing` is the failing share inside, `others` that outside."""
    return {
        **_named(cause.slice),
        "failing": _rounded(cause.failing),
        "others": _rounded(cause.others),
        "low": _rounded(cause.low),
        "high": _rounded(cause.high),
        "explains": _rounded(cause.explains),
        "since": cause.since,
        "until": cause.until,
        "n": len(cause.slice.places),
        "of_failing": _rounded(cause.of_failing),
        "of_passing": _rounded(cause.of_passing),
        "e_value": float(f"{math.exp(min(cause.log_e, _MAX_LOG)):.4g}"),
        "examples": list(cause.examples),
        "folded": [_named(slice_) for slice_ in cause.folded],
        "text": sentence(cause, findings),
    }


def _named(slice_: Slice) -> dict[str, Any]:
    several: Mapping[str, Any] = {"values": list(slice_.values)} if slice_.values else {}
    return {"attribute": slice_.attribute, "value": slice_.value, **several}


def sentence(cause: Cause, findings: Findings) -> str:
    """Say a cause in a few words."""
    parts = [
        f"{_verb(cause.slice)} {_percent(cause.of_failing)} of failing answers and {_percent(cause.of_passing)} of"
    ]
    parts[0] += " the others"
    if findings.begin is not None and findings.end is not None:
        parts += _period(cause, findings.begin, findings.end)
    parts.append(f"explains {_percent(cause.explains)} of the failures")
    return "; ".join(parts)


def _period(cause: Cause, begin: float, end: float) -> list[str]:
    """When the answers of a slice were given, unless they were given all the time."""
    since, until = _clock(cause.since, end), _clock(cause.until, end)
    if cause.is_over(end):
        return [f"from {since.removesuffix(' UTC')} to {until}"]
    return [f"since {since}"] if cause.is_new(begin) else []


def _verb(slice_: Slice) -> str:
    if slice_.attribute.startswith(METADATA_PREFIX):
        return f"{slice_.attribute.removeprefix(METADATA_PREFIX)} {slice_.value} is in"
    return _VERBS[Attribute(slice_.attribute)].format(slice_.value)


def _percent(share: float) -> str:
    """A share as people write it.

    >>> _percent(0.714), _percent(0.004), _percent(0.0)
    ('71 %', '0.4 %', '0 %')
    """
    percent = share * _PERCENT
    return f"{percent:.0f} %" if percent >= 1.0 or percent == 0.0 else f"{percent:.1g} %"


def _clock(at: float, now: float) -> str:
    """A time of today as `14:10 UTC`, another one with its date.

    >>> _clock(86400.0, 90000.0), _clock(0.0, 90000.0), _clock(1e300, 1e300)
    ('00:00 UTC', '1970-01-01 00:00 UTC', 'an unknown time')
    """
    try:
        moment, today = datetime.fromtimestamp(at, UTC), datetime.fromtimestamp(now, UTC).date()
    except (OverflowError, ValueError, OSError):
        return "an unknown time"
    return f"{moment:%H:%M} UTC" if moment.date() == today else f"{moment:%Y-%m-%d %H:%M} UTC"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
