"""Causes as JSON values, and as sentences."""

import math
from collections.abc import Callable
from typing import NotRequired, TypedDict

from ragwatch.statistics.causes.search import Cause, Findings
from ragwatch.statistics.causes.slices import METADATA_PREFIX, Attribute, Slice

Clock = Callable[[float], str]
"""Formats a time in UTC."""

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


class SliceLine(TypedDict):
    """What the answers of a slice have in common, as JSON values."""

    attribute: str
    value: str
    values: NotRequired[list[str]]


class CauseLine(SliceLine):
    """A cause as JSON values."""

    failing: float | None
    others: float | None
    low: float | None
    high: float | None
    explains: float | None
    since: float
    until: float
    ended: float | None
    n: int
    of_failing: float | None
    of_passing: float | None
    e_value: float
    examples: list[str]
    folded: list[SliceLine]
    text: str


class FindingsLine(TypedDict):
    """Causes, and among how many answers they were looked for, as JSON values."""

    causes: list[CauseLine]
    looked_at: int
    answers: int
    failing: int
    share: float | None
    begin: float | None
    end: float | None


def findings_line(findings: Findings, clock: Clock) -> FindingsLine:
    """Return the findings as JSON values. Shares lie in [0, 1], times are seconds since the epoch."""
    return {
        "causes": [cause_line(cause, findings, clock) for cause in findings.causes],
        "looked_at": findings.looked_at,
        "answers": findings.answers,
        "failing": findings.failing,
        "share": _rounded(findings.share),
        "begin": findings.begin,
        "end": findings.end,
    }


def cause_line(cause: Cause, findings: Findings, clock: Clock) -> CauseLine:
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
        "ended": cause.failed_until if findings.end is not None and cause.has_ended(findings.end) else None,
        "n": len(cause.slice.places),
        "of_failing": _rounded(cause.of_failing),
        "of_passing": _rounded(cause.of_passing),
        "e_value": float(f"{math.exp(min(cause.log_e, _MAX_LOG)):.4g}"),
        "examples": list(cause.examples),
        "folded": [_named(slice_) for slice_ in cause.folded],
        "text": sentence(cause, findings, clock),
    }


def _named(slice_: Slice) -> SliceLine:
    line: SliceLine = {"attribute": slice_.attribute, "value": slice_.value}
    if slice_.values:
        line["values"] = list(slice_.values)
    return line


def sentence(cause: Cause, findings: Findings, clock: Clock) -> str:
    """Say a cause in a few words."""
    attribute, value = cause.slice.attribute, cause.slice.value
    if attribute.startswith(METADATA_PREFIX):
        verb = f"{attribute.removeprefix(METADATA_PREFIX)} {value} is in"
    else:
        verb = _VERBS[Attribute(attribute)].format(value)
    shares = f"{_percent(cause.of_failing)} of failing answers and {_percent(cause.of_passing)} of the others"
    parts = [f"{verb} {shares}"]
    if findings.begin is not None and findings.end is not None:
        if cause.is_over(findings.end):
            parts.append(f"from {clock(cause.since)} to {clock(cause.until)} UTC")
        elif cause.is_new(findings.begin):
            parts.append(f"since {clock(cause.since)} UTC")
    parts.append(f"explains {_percent(cause.explains)} of the failures")
    return "; ".join(parts)


def _percent(share: float) -> str:
    """A share as people write it."""
    percent = share * _PERCENT
    return f"{percent:.0f} %" if percent >= 1.0 or percent == 0.0 else f"{percent:.1g} %"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
