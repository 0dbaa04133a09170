"""Detects passwords in logins of Oracle's tools, `user/password@host`."""

from __future__ import annotations

import re

from ragwatch.core.redaction.headers import REFERENCE
from ragwatch.core.redaction.rule import RedactionRule, SensitiveKind, Span

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
