"""All rules that detect PII and secrets, in the order in which they are tried.

Names of people are not detected: that takes a model, and a wrong one does harm.
"""

from __future__ import annotations

import re

from ragwatch.redaction.addresses import ADDRESS_RULES
from ragwatch.redaction.checksums import mrz
from ragwatch.redaction.credentials import (
    ASSIGNMENT_RULES,
    ASSIGNMENT_WORDS,
    LOOSE_RULES,
    LOOSE_WORDS,
    is_secret_name,
)
from ragwatch.redaction.headers import BEARER_RULE, REFERENCE
from ragwatch.redaction.numbers import MONEY_RULES, letters_and_digits
from ragwatch.redaction.obfuscated_emails import FOREIGN_EMAIL_RULES, OBFUSCATED_EMAIL_RULES
from ragwatch.redaction.passwords import FOREIGN_PASSWORD_RULES, PASSWORD_RULES
from ragwatch.redaction.person_ids import PERSON_RULES, PersonIds
from ragwatch.redaction.phones import PHONE_RULES
from ragwatch.redaction.rule import Detector, NamedRule, NotAscii, RedactionRule, RuleGroup, SensitiveKind, Span
from ragwatch.redaction.vendor_keys import VENDOR_RULES, VendorKeys

_DASHES = "-----"
_PEM = re.compile(rf"{_DASHES}BEGIN (?:[A-Z0-9]{{1,12}} ){{0,4}}PRIVATE KEY(?: BLOCK)?{_DASHES}")
_PEM_END = re.compile(rf"{_DASHES}END [A-Z0-9 ]{{1,60}}{_DASHES}")
_PEM_BODY = re.compile(r"(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{16,})+")
_PUTTY = re.compile(r"PuTTY-User-Key-File-\d:[^\r\n]{0,99}(?:\r?\n[^\r\n]{1,200}){1,300}")

_JWT = re.compile(r"(?<![\w-])eyJ[A-Za-z0-9_-]{8,}(?:\.{1,2}[A-Za-z0-9_-]{4,}){1,4}")


def _private_key(match: re.Match[str]) -> Span | None:
    """Accepts a whole PEM block, or the start of a truncated one; the first line alone is not a key.

    A block ends at the next five dashes, which must be those of its last line, so that the text is read once however
    many first lines it contains.
    """
    start, begin = match.span()
    dashes = match.string.find(_DASHES, begin)
    last = _PEM_END.match(match.string, dashes) if dashes >= 0 else None
    body = last or _PEM_BODY.match(match.string, begin)
    return (start, body.end()) if body else None


KEY_RULES: tuple[RedactionRule, ...] = (
    RedactionRule(
        "private-key",
        SensitiveKind.PRIVATE_KEY,
        _PEM,
        "Private key (PEM, OpenSSH, PGP), also cut off",
        _private_key,
        normalize=letters_and_digits,
        anchors=("-----BEGIN",),
    ),
    RedactionRule(
        "putty-key", SensitiveKind.PRIVATE_KEY, _PUTTY, "Private key of PuTTY", anchors=("PuTTY-User-Key-File-",)
    ),
    RedactionRule("json-web-token", SensitiveKind.JWT, _JWT, "JSON web token", anchors=("eyJ",)),
)


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


_PROGRAMS = ("sqlplus", "sqlldr", "expdp", "impdp", "userid=", "rman", "connect", "conn")
_ADDRESSES = ("@//", ":1521")  # of a host without a program: `scott/tiger@//host/service`
_LOGIN = re.compile(
    r"(?i)(?:(?:(?:sqlplus|sqlldr|expdp|impdp|rman)[ \t=][^\n|;@/]{0,40}?|userid=)|conn(?:ect)?[ \t]{1,4})"
    r"(?<![\w./-])\\?[\"']?[\w.$#-]{1,64}/(?:\\?\"(?P<quoted>[^\"\\\r\n\[\]]{1,128})\\?\"|(?P<plain>[^\s@/\"'\[\]:]{1,128}))"
    r"@(?P<host>[\w./(-]{1,253})"
    r"|(?<=[^\s:/@\"'\[\]])@//(?=\w)|(?<=[\w.-]):1521(?!\d)"
)
_USER_CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.$#-"
_JOINTS = frozenset("/:@")  # before a user: part of a path or of an address
_PASSWORD = re.compile(r"[^\s:/@\"'\[\]]{1,128}")
_HOST = re.compile(r"[\w.-]{1,253}")
_REVISION = re.compile(  # `connect org/repository@main`
    r"(?i)v?\d+(?:\.\d+){0,3}\Z|sha\d|(?:main|master|latest|head|next|dev)\Z"
)
_NAME = re.compile(r"(?i)<?(?:password|passwd|pwd|pass)>?\Z")
_MAX_HOST, _MAX_PASSWORD, _MAX_USER = 253, 128, 68


def _password(match: re.Match[str]) -> Span | None:
    """Accepts a password before the host, unless it stands for one."""
    if match["host"] is None:
        return _before(match.string, match.start())
    group = "quoted" if match["quoted"] else "plain"
    return None if _stands_for_one(match[group]) or _REVISION.match(match["host"]) else match.span(group)


def _before(text: str, end: int) -> Span | None:
    """The password before `@//`, or before `@host:1521`."""
    at = end if text.startswith("@", end) else text.rfind("@", max(0, end - _MAX_HOST), end)
    if at < 0 or (at < end and not _HOST.fullmatch(text, at + 1, end)):
        return None
    slash = text.rfind("/", max(0, at - _MAX_PASSWORD - 1), at)
    window = text[max(0, slash - _MAX_USER) : max(0, slash)]
    before = window.rstrip(_USER_CHARS)
    if before == window or before[-1:] in _JOINTS:
        return None
    accepted = _PASSWORD.fullmatch(text, slash + 1, at) and not _stands_for_one(text[slash + 1 : at])
    return (slash + 1, at) if accepted else None


def _stands_for_one(password: str) -> bool:
    return REFERENCE.match(password) is not None or _NAME.match(password) is not None


ORACLE_RULE = RedactionRule(
    "oracle-login",
    SensitiveKind.CREDENTIAL,
    _LOGIN,
    "Password in `sqlplus user/password@host`, and before `@//host` and `@host:1521`",
    _password,
    hints=("@",),
    folded_hints=(*_PROGRAMS, *_ADDRESSES),
    anchors=(*_PROGRAMS[:-1], "conn ", "conn\t", *_ADDRESSES),
    folded_anchors=True,
)


__all__ = ["DETECTORS", "RULES", "RedactionRule", "SensitiveKind", "is_secret_name"]

_EMAIL, *_IPS = ADDRESS_RULES

# Order matters: a kind that can contain another comes first (a PEM block contains keys, an IBAN the digits of a card).
RULES: tuple[NamedRule, ...] = (
    *KEY_RULES,
    *VENDOR_RULES,
    *ASSIGNMENT_RULES,
    BEARER_RULE,
    *LOOSE_RULES,
    *PASSWORD_RULES,
    *FOREIGN_PASSWORD_RULES,
    ORACLE_RULE,
    _EMAIL,
    *OBFUSCATED_EMAIL_RULES,
    *FOREIGN_EMAIL_RULES,
    *MONEY_RULES,
    *PASSPORT_RULES,
    *PERSON_RULES,
    *_IPS,
    *PHONE_RULES,
)
DETECTORS: tuple[Detector, ...] = (
    RuleGroup(KEY_RULES, ("-----begin", "putty-user-key-file-", "eyj")),
    VendorKeys(VENDOR_RULES),
    RuleGroup(ASSIGNMENT_RULES, ASSIGNMENT_WORDS, signs=(":", "=", "|")),
    BEARER_RULE,
    RuleGroup(LOOSE_RULES, LOOSE_WORDS),
    *PASSWORD_RULES,
    NotAscii(FOREIGN_PASSWORD_RULES),
    ORACLE_RULE,
    _EMAIL,
    *OBFUSCATED_EMAIL_RULES,
    NotAscii(FOREIGN_EMAIL_RULES),
    *MONEY_RULES,
    *PASSPORT_RULES,
    PersonIds(PERSON_RULES),
    *_IPS,
    *PHONE_RULES,
)
"""The same rules, those of vendors and of persons tried together."""
