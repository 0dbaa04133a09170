"""Detects secrets in headers of HTTP requests."""

from __future__ import annotations

import re

from ragwatch.redaction.rule import RedactionRule, SensitiveKind, Span

RANDOM_LOOKING = re.compile(r"[0-9=]|[a-z][A-Z]")
REFERENCE = re.compile(
    r"\$[\w{(]|\{\{|%\w{1,40}%|%[sdr(]|\*{3,}|[xX.•_-]{4,}\Z|(?i:your|my|the|some|example|change[-_]?me|placeholder|todo|dummy"
    r"|insert|replace|redacted|masked|hidden|null|none|nil|true|false|undefined|optional|string|str|bytes|required|missing"
    r"|vault:|file:|env:|ssm:|op://|secretsmanager|arn:)(?![A-Za-z0-9])"
)
WORDY = re.compile(r"(?:[A-Za-z]{3,}|\d{1,4})(?:[_./=-](?:[A-Za-z]{2,}|v?\d{1,4})){1,12}\Z")
_SCHEMES = (
    r"(?:bearer|basic|token|apikey|api-key|digest|negotiate|ntlm|hawk|key|oauth|aws4-hmac-sha256|sso-key|bot|jwt)"
)
_AUTHORIZATION = re.compile(r"(?i)(?<!\w)(?:bearer|basic)(?:[ \t]|%20){1,4}(?P<secret>[A-Za-z0-9._~+/-]{8,}={0,2})")
_AUTHORIZATION_HEADER = re.compile(
    rf"(?i)authorization\\?[\"']?[ \t]{{0,4}}[:=,][ \t]{{0,4}}\\?[\"']?(?:{_SCHEMES}[ \t]{{1,4}})?"
    r"(?P<secret>[^\s\"'\\<>{}\[\](),;]{6,4096}(?:,[ \t]?[A-Za-z]{2,20}=\"?[^\s\"',\\<>\[\]]{1,512}\"?){0,12})"
)
_COOKIE = re.compile(
    r"(?i)cookie\\?[\"']?[ \t]{0,4}:[ \t]{0,4}\\?[\"']?"
    r"(?P<secret>[\w!#$&*+.^|~%-]{1,80}=[^\s;\"'\\,\[\]<>]{4,4096}"
    r"(?:;[ \t]{0,2}(?!(?i:path|domain|expires|max-age|samesite)=)"
    r"[\w!#$&*+.^|~%-]{1,80}=[^\s;\"'\\,\[\]<>]{0,4096}){0,50})"
)
_COOKIE_ATTRIBUTES = re.compile(r"(?i)(?:path|domain|expires|max-age|samesite)=")


def _authorization(match: re.Match[str]) -> Span | None:
    """Accepts a value that looks random, unlike `basic understanding` and `bearer instruments`."""
    value = match["secret"]
    if len(value) < 12 and not (any(map(str.isdigit, value)) and any(map(str.isalpha, value))):
        return None
    return match.span("secret") if RANDOM_LOOKING.search(value) and not value.isdigit() else None


def _authorization_header(match: re.Match[str]) -> Span | None:
    """Accepts what a header says, unless it is a word or stands for a value."""
    start, end = match.span("secret")
    value = match["secret"].rstrip(".:!?")
    if len(value) < 6 or REFERENCE.match(value) or not RANDOM_LOOKING.search(value) or WORDY.match(value):
        return None
    return start, start + len(value) if end - start > len(value) else end


def _cookie(match: re.Match[str]) -> Span | None:
    """Accepts the pairs of a cookie, but not the attributes of one."""
    return None if _COOKIE_ATTRIBUTES.match(match["secret"]) else match.span("secret")


BEARER_RULE = RedactionRule(
    "bearer-token",
    SensitiveKind.KEY,
    _AUTHORIZATION,
    "What follows `Bearer` or `Basic`",
    _authorization,
    anchors=("bearer", "basic"),
    folded_anchors=True,
    folded_hints=("bearer", "basic"),
)
HEADER_RULES: tuple[RedactionRule, ...] = (
    RedactionRule(
        "authorization-header",
        SensitiveKind.KEY,
        _AUTHORIZATION_HEADER,
        "Value of an Authorization header",
        _authorization_header,
        anchors=("authorization",),
        folded_anchors=True,
    ),
    RedactionRule(
        "cookie",
        SensitiveKind.CREDENTIAL,
        _COOKIE,
        "Pairs of a Cookie or Set-Cookie header",
        _cookie,
        anchors=("cookie",),
        folded_anchors=True,
    ),
)
