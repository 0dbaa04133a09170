"""Where personal data and secrets stand in a text: one Rule a kind, each linear in the length of the text.

Linear means: a run of characters is entered at its start only (a lookbehind forbids the rest), repetitions are
bounded or possessive, and whatever a pattern cannot decide (a checksum, a country) is decided by a function on the
few characters it found. Names of people are not found: that takes a model, and a wrong one does harm.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import AddressValueError, IPv6Address

Span = tuple[int, int]


class Secret(StrEnum):
    """What was taken out. The values are label values of a series and stand in the text: `[EMAIL:3f2a9c]`.

    No value may be a word that a rule looks for (such as `api_key`), or a token would be taken for a secret.
    """

    PRIVATE_KEY = "PRIVATE_KEY"
    JWT = "JWT"
    KEY = "KEY"
    CREDENTIAL = "CREDENTIAL"
    EMAIL = "EMAIL"
    IBAN = "IBAN"
    CARD = "CARD"
    IP = "IP"
    PHONE = "PHONE"


@dataclass(frozen=True, slots=True)
class Rule:
    """How one kind is found.

    Attributes:
        kind: What it finds.
        hints: Texts of which at least one stands in every text with such a secret; empty to look always.
        pattern: What it looks like. A group `secret` is the part to take out, without one the whole match is.
        accept: The part of a match that is a secret, as a span of the text; None when it only looks like one.
        same: The value without its formatting: what is written in two ways is the same secret.
        words: The same as `hints`, for patterns that do not mind case.
        digits: A text with fewer digits holds no such secret.
    """

    kind: Secret
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    accept: Callable[[re.Match[str]], Span | None]
    same: Callable[[str], str]
    words: tuple[str, ...] = ()
    digits: int = 0

    def may_be_in(self, text: str, folded: str, digits: int) -> bool:
        """Whether it is worth a search; most texts hold no secret, and this costs a hundredth of looking.

        Args:
            text: The text.
            folded: The same in lower case.
            digits: How many digits it holds.
        """
        if digits < self.digits:
            return False
        if self.hints and not any(hint in text for hint in self.hints):
            return False
        return not self.words or any(word in folded for word in self.words)


def _whole(match: re.Match[str]) -> Span | None:
    return match.span("secret") if "secret" in match.re.groupindex else match.span()


def _as_written(value: str) -> str:
    return value


def _letters_and_digits(value: str) -> str:
    return "".join(filter(str.isalnum, value)).upper()


# --- keys and passwords -------------------------------------------------------------------------------------------

_PEM = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[^-]*+(?:-(?!----)[^-]*+)*+-----END [A-Z0-9 ]{1,60}-----"  # the whole block
    r"|(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{16,}+)++)"  # or the start of one that was cut off
)

_JWT = re.compile(r"(?<![\w-])eyJ[A-Za-z0-9_-]{8,}+(?:\.{1,2}[A-Za-z0-9_-]{4,}+){1,4}+")

_KEY = re.compile(
    r"(?<![A-Za-z0-9_-])(?:"
    r"sk-[A-Za-z0-9_-]{16,}+"  # OpenAI, Anthropic and those who copy them
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{10,}+"  # Stripe
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"  # AWS
    r"|gh[pousr]_[A-Za-z0-9]{20,}+|github_pat_[A-Za-z0-9_]{20,}+|glpat-[A-Za-z0-9_-]{16,}+"
    r"|xox[a-z]-[A-Za-z0-9-]{10,}+"  # Slack
    r"|AIza[A-Za-z0-9_-]{30,}+|ya29\.[A-Za-z0-9_-]{20,}+"  # Google
    r"|hf_[A-Za-z0-9]{20,}+"
    r")"
)
_AUTHORIZATION = re.compile(r"(?i)\b(?:bearer|basic)[ \t]{1,4}(?P<secret>[A-Za-z0-9._~+/-]{12,}+={0,2})")
_URL_PASSWORD = re.compile(r"://[^\s:/@\[\]]{0,64}:(?P<secret>[^\s/@\[\]]{1,128})@")
_ASSIGNMENT = re.compile(
    r"(?i)(?P<name>api[_-]?key|secret|access[_-]?key|passw(?:or)?d|passwd|pwd|(?:auth|access|refresh)[_-]?token)"
    r"[A-Za-z0-9_-]{0,24}\\?[\"']?[ \t]{0,4}(?P<sign>:|=|:=|=>)[ \t]{0,4}"
    r"(?P<quote>\\?[\"'])?(?P<secret>(?(quote)[^\"'\\\[\]\r\n]{4,256}(?=\\?[\"'])|(?!))|[^\s\"'\\,;<>\[\](){}]{4,256})"
)
_RANDOM = re.compile(r"[0-9=]|[a-z][A-Z]")
_STRONG = re.compile(r"[0-9!@#$%^&*+=~|]")


def _with_digit(match: re.Match[str]) -> Span | None:
    """Keys hold digits; words joined by dashes (`sk-learn-compatible-models`) do not."""
    return match.span() if any(map(str.isdigit, match[0])) else None


def _authorizing(match: re.Match[str]) -> Span | None:
    """What looks random; `basic understanding` and `bearer instruments` do not."""
    return match.span("secret") if _RANDOM.search(match["secret"]) else None


def _assigned(match: re.Match[str]) -> Span | None:
    """The value, unless it is prose: `password: must be long` says nothing, `password: hunter2` does."""
    start, end = match.span("secret")
    if not match["quote"]:
        end = start + len(match["secret"].rstrip(".:!?"))
    value = match.string[start:end]
    prose = match["sign"] == ":" and not match["quote"] and not _STRONG.search(value)
    return None if prose or len(value) < 4 or "://" in value else (start, end)


# --- addresses ----------------------------------------------------------------------------------------------------

_EMAIL = re.compile(
    r"(?<![\w.%+-])[\w.%+-]++(?:'[\w.%+-]++){0,2}@[^\W_](?:[\w-]{0,62}(?:\.[\w-]{1,63}){0,8})\.[^\W\d_]{2,24}"
)
_IPV4 = re.compile(
    r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?!\w|\.\d)"
)
_IPV6 = re.compile(
    r"(?<![\w:.])(?=[0-9A-Fa-f:]{2,})(?:[0-9A-Fa-f]{0,4}:){2,7}(?:(?:\d{1,3}\.){3}\d{1,3}|[0-9A-Fa-f]{0,4})(?![\w:])"
)
_VERSION = re.compile(r"(?i)\b(?:version|release|build|ver|rev)\b[.:=# ]{0,3}\Z")


def _ipv4(match: re.Match[str]) -> Span | None:
    """`version 1.2.3.4` and `v1.2.3.4` are no addresses. A bare 1.2.3.4 could be either and is taken out."""
    before = match.string[max(0, match.start() - 12) : match.start()]
    return None if _VERSION.search(before) else match.span()


def _ipv6(match: re.Match[str]) -> Span | None:
    """An address, and not a slice (`x[1::2]`), a scope (`a::b`) or a time."""
    value = match[0]
    groups = [group for group in value.split(":") if group]
    telling = len(groups) > 2 or any(len(group) > 2 and not group.isdigit() for group in groups)
    try:
        IPv6Address(value)
    except AddressValueError:
        return None
    return match.span() if telling and len(groups) > 1 else None


# --- money --------------------------------------------------------------------------------------------------------

# Length by country: the registry of ISO 13616.
_IBAN_COUNTRIES = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 "
    "ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 "
    "LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 "
    "PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 "
    "YE30 "
)
_IBAN_LENGTHS = {entry[:2]: int(entry[2:]) for entry in _IBAN_COUNTRIES.split()}
_IBAN = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?:[A-Za-z0-9]{11,30}(?![A-Za-z0-9])"
    r"|(?:[ \xa0-][A-Za-z0-9]{4}){2,7}(?:[ \xa0-][A-Za-z0-9]{1,3}(?![A-Za-z0-9]))?)"
)
_CARD = re.compile(
    r"(?<![\w.+])(?:[3-6]\d{3}|2[2-7]\d\d)"
    r"(?:\d{9,15}|(?P<sign>[ \xa0-])"
    r"(?:\d{4}(?P=sign)\d{4}(?P=sign)\d{1,4}(?P<tail>(?P=sign)\d{3})?|\d{6}(?P=sign)\d{4,5}))(?!\w)"
)
_ISSUERS = re.compile(
    rb"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11,16}|35\d{14,17}"
    rb"|(?:6011|64[4-9]\d|65\d\d|62\d\d)\d{12,15}|(?:50|5[6-9]|6\d)\d{10,17}"
)
# What a digit adds to the Luhn sum: itself, or the digit sum of its double.
_ONCE = bytes.maketrans(b"0123456789", bytes(range(10)))
_TWICE = bytes.maketrans(b"0123456789", bytes((0, 2, 4, 6, 8, 1, 3, 5, 7, 9)))


def _iban(match: re.Match[str]) -> Span | None:
    """As many characters as its country has, when their checksum (ISO 7064, mod 97-10) holds."""
    found, start = match[0], match.start()
    length = _IBAN_LENGTHS.get(found[:2].upper(), len(found) + 1)
    end = start + length + ((length - 1) // 4 if not found[4].isalnum() else 0)
    if end > match.end() or match.string[end : end + 1].isalnum():
        return None
    value = _letters_and_digits(match.string[start:end])
    digits = "".join(str(int(sign, 36)) for sign in value[4:] + value[:4])
    return (start, end) if int(digits) % 97 == 1 else None


def _card(match: re.Match[str]) -> Span | None:
    """A number an issuer gives out (by its first digits and length) whose Luhn checksum holds.

    Three digits behind it are part of the number or the code from the back of the card: both are tried.
    """
    for value in (match[0], match[0][:-4]) if match["tail"] else (match[0],):
        digits = value.replace(match["sign"] or " ", "").encode()
        luhn = sum(digits[-1::-2].translate(_ONCE)) + sum(digits[-2::-2].translate(_TWICE))
        if luhn % 10 == 0 and _ISSUERS.fullmatch(digits):
            return match.start(), match.start() + len(value)
    return None


# --- telephones ---------------------------------------------------------------------------------------------------

_PHONE = re.compile(
    r"(?:\([2-9]\d\d\)[ \xa0-]?\d{3}[ \xa0.-]\d{4}"  # (415) 555-2671
    r"|(?<![\w.,:/+-])(?:"
    r"(?P<world>\+[1-9](?:[ \xa0.()/-]{0,3}\d){6,14}|00[1-9]\d?(?:[ \xa0./-]{0,2}\(?\d){5,11})"  # +49 (0)30 1..
    r"|1[ \xa0.-]\([2-9]\d\d\)[ \xa0-]?\d{3}[ \xa0.-]\d{4}"  # 1 (415) 555-2671
    r"|(?:1[ \xa0.-])?[2-9]\d\d(?:[ \xa0./-]\d{3}-|\.\d{3}\.)\d{4}"  # 415-555-2671, 415.555.2671
    r"|(?P<trunk>\(?0[1-9]\d{0,3}\)?[ \xa0/-]{1,3}\d{3,8}(?:[ \xa0-]\d{2,5}){0,2})"  # 030 1234567, 0151/23456789
    r"|0[1-9](?:(?P<pair>[ \xa0.-])\d\d)(?:(?P=pair)\d\d){3}"  # 06 12 34 56 78
    r"))(?![\d_]|-\w)"
)
_CALLED = re.compile(
    r"(?i)\b(?:phone|tel(?:ephone|efon)?|mobile|mobil|cell|fax|hotline|whatsapp|call)\b"
    r"(?:[ .:#=-]{1,3}(?:number|no|nr|is|us|at|me|on)\b){0,3}[ .:#=\"'-]{1,4}"
    r"(?P<secret>\(?\d(?:[ \xa0.()/-]{0,2}\d){6,14})(?!\w)"
)
_DATE = re.compile(r"(?:\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{4})")


def _phone(match: re.Match[str]) -> Span | None:
    """A number of 8 to 15 digits (9 to 12 with a trunk prefix) with the formatting of a telephone number."""
    if match["world"]:
        return _world_phone(match)
    if match["trunk"]:
        return _trunk_phone(match)
    return match.span()


def _world_phone(match: re.Match[str]) -> Span | None:
    value = match[0]
    decimal = value.count(".") == 1 and not set(value) & set(" \xa0()/-")
    bare_id = value.startswith("00") and value.isdigit()
    enough = sum(map(str.isdigit, value)) >= 8
    return match.span() if enough and not decimal and not bare_id else None


def _trunk_phone(match: re.Match[str]) -> Span | None:
    """Groups are given back from the end until at most 12 digits are left: what follows is another number."""
    value = match[0]
    while sum(map(str.isdigit, value)) > 12:
        value = value[: max(map(value.rfind, " \xa0-"))]
    zip_code = len(value) == 10 and value[5] == "-"
    plausible = sum(map(str.isdigit, value)) >= 9 and not zip_code and not _DATE.search(value)
    return (match.start(), match.start() + len(value)) if plausible else None


def _called(match: re.Match[str]) -> Span | None:
    return None if _DATE.match(match["secret"]) else match.span("secret")


# A secret that may hold another stands first: a block of PEM holds keys, an IBAN holds the digits of a card.
RULES: tuple[Rule, ...] = (
    Rule(Secret.PRIVATE_KEY, ("PRIVATE KEY",), _PEM, _whole, _letters_and_digits),
    Rule(Secret.JWT, ("eyJ",), _JWT, _whole, _as_written),
    Rule(
        Secret.KEY,
        ("sk-", "k_", "AKIA", "ASIA", "gh", "glpat-", "xox", "AIza", "ya29", "hf_"),
        _KEY,
        _with_digit,
        _as_written,
    ),
    Rule(Secret.KEY, (), _AUTHORIZATION, _authorizing, _as_written, words=("bearer", "basic")),
    Rule(Secret.CREDENTIAL, ("://",), _URL_PASSWORD, _whole, _as_written),
    Rule(Secret.CREDENTIAL, (":", "="), _ASSIGNMENT, _assigned, _as_written),
    Rule(Secret.EMAIL, ("@",), _EMAIL, _whole, str.lower),
    Rule(Secret.IBAN, (), _IBAN, _iban, _letters_and_digits, digits=6),  # no bank's numbers are all letters
    Rule(Secret.CARD, (), _CARD, _card, _letters_and_digits, digits=13),
    Rule(Secret.IP, (":",), _IPV6, _ipv6, str.lower),
    Rule(Secret.IP, (".",), _IPV4, _ipv4, _as_written),
    Rule(Secret.PHONE, (), _PHONE, _phone, _letters_and_digits, digits=8),
    Rule(
        Secret.PHONE,
        (),
        _CALLED,
        _called,
        _letters_and_digits,
        words=("phone", "tel", "mobil", "cell", "fax", "hotline", "whatsapp", "call"),
        digits=7,
    ),
)
