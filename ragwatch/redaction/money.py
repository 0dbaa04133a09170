"""Detects bank account and card numbers, and excludes other numbers by checksum and formatting.

An IBAN is cut to the length of its country before it is checked, because words may follow it in groups of four; the
check of python-stdnum takes the end as known, and costs 55 ms of import.
"""

from __future__ import annotations

import re

from ragwatch.redaction.person_checks import luhn, mod97
from ragwatch.redaction.rule import Span, letters_and_digits, rules

# Length of an IBAN by country, from the registry of ISO 13616.
_IBAN_COUNTRIES = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 "
    "ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 "
    "LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 "
    "PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 "
    "YE30 "
)
IBAN_LENGTHS = {entry[:2]: int(entry[2:]) for entry in _IBAN_COUNTRIES.split()}
_ISSUERS = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11,16}|35\d{14,17}"
    r"|(?:6011|64[4-9]\d|65\d\d|62\d\d)\d{12,15}|(?:50|5[6-9]|6\d)\d{10,17}"
)


_OF_MACHINES = re.compile(
    r"(?i)(?:seed|entropy|random|rng|nonce|hash|checksum|offset|timestamp|epoch|array|uint64|int64|snowflake)"
    r"[^\W\d]{0,16}[^\d\n]{0,6}(?:\d{4,20}[, ]{1,3}){0,6}\Z"
)
_BEFORE_CHARS = 100


def _iban(match: re.Match[str]) -> Span | None:
    """Accepts an IBAN of the length of its country with a valid checksum (ISO 7064, mod 97-10)."""
    text, start = match[0], match.start()
    length = IBAN_LENGTHS.get(text[:2].upper(), len(text) + 1)
    end = start + length + ((length - 1) // 4 if not text[4].isalnum() else 0)
    if end > match.end() or match.string[end : end + 1].isalnum():
        return None
    value = letters_and_digits(match.string[start:end])
    return (start, end) if mod97(value[4:] + value[:4]) else None


def _card(match: re.Match[str]) -> Span | None:
    """Accepts a number with the prefix and length of an issuer and a valid Luhn checksum, unless it is of a machine.

    Three digits after it are either part of the number or the security code of the card; both readings are tried.
    """
    if not match["sign"] and _OF_MACHINES.search(match.string[max(0, match.start() - _BEFORE_CHARS) : match.start()]):
        return None
    for value in (match[0], match[0][:-4]) if match["tail"] else (match[0],):
        digits = value.replace(match["sign"] or " ", "")
        if _ISSUERS.fullmatch(digits) and luhn(digits):
            return match.start(), match.start() + len(value)
    return None


MONEY_RULES = rules("money", {"iban": _iban, "card": _card})
