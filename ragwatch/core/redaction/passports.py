"""Detects passports, by the check digits of the machine-readable zone or by the word before the number."""

from __future__ import annotations

import re

from ragwatch.core.redaction.checksums import mrz
from ragwatch.core.redaction.numbers import letters_and_digits
from ragwatch.core.redaction.rule import RedactionRule, SensitiveKind, Span

_MRZ = re.compile(
    r"(?<![A-Z0-9<])(?:[A-Z<]{2}[A-Z<]{3}[A-Z<]{39}\s{1,3}|[A-Z<]{2}[A-Z<]{3}[A-Z0-9<]{25}\s{1,3})?"
    r"(?P<line>[A-Z0-9<]{9}\d[A-Z<]{3}\d{7}[MFX<]\d{7}[A-Z0-9<]{14}[\d<]\d|\d{7}[MFX<]\d{7}[A-Z<]{3}[A-Z0-9<]{11}\d)(?![A-Z0-9<])"
)
_PASSPORT = re.compile(
    r"(?i)(?:passport|reisepass|passeport|pasaporte|passaporto|paspoort)"
    r"(?:[ _-]?(?:number|no|nr|num|num\xe9ro|n\xfamero|numero|nummer|id|#))?\.?"
    r"[\"']?(?:[ ](?:is|was|ist|:))?[ \t:=#\"']{1,4}(?P<secret>[A-Za-z]{0,3}\d[A-Za-z0-9]{4,8})(?!\w)"
)


def _machine_readable(match: re.Match[str]) -> Span | None:
    """Accepts the machine-readable zone of a passport or an identity card, by the check digits of its dates."""
    line = match["line"]
    if line[:7].isdigit() and len(line) == 30:
        birth, expiry = line[:7], line[8:15]
    else:
        birth, expiry = line[13:20], line[21:28]
        if mrz(line[:9]) != int(line[9]):
            return None
    return match.span() if all(mrz(field[:6]) == int(field[6]) for field in (birth, expiry)) else None


def _passport(match: re.Match[str]) -> Span | None:
    """Accepts a passport number with at least five digits behind the word."""
    return match.span("secret") if sum(map(str.isdigit, match["secret"])) >= 5 else None


PASSPORT_RULES: tuple[RedactionRule, ...] = (
    RedactionRule(
        "passport-mrz",
        SensitiveKind.PERSON_ID,
        _MRZ,
        "Machine-readable zone of a passport or an identity card",
        _machine_readable,
        normalize=letters_and_digits,
        hints=("<",),
        min_digits=14,
    ),
    RedactionRule(
        "passport",
        SensitiveKind.PERSON_ID,
        _PASSPORT,
        "Number behind the word passport",
        _passport,
        normalize=letters_and_digits,
        anchors=("passport", "reisepass", "passeport", "pasaporte", "passaporto", "paspoort"),
        folded_anchors=True,
        min_digits=5,
    ),
)
