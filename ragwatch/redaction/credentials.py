"""Secrets that are known by what stands before them.

These are values assigned to the name of a secret, headers of HTTP requests, passwords in addresses and on command
lines. Guards keep prose and code out: `password: must be long`, `api_key=os.environ[...]`, `token_count: 4096`.
"""

import math
import re
from collections import Counter

from ragwatch.redaction.rule import Accept, Span, rules

_RANDOM_LOOKING = re.compile(r"[0-9=]|[a-z][A-Z]")
REFERENCE = re.compile(
    r"\$[\w{(]|\{\{|%\w{1,40}%|%[sdr(]|\*{3,}|[xX.•_-]{4,}\Z|(?i:your|my|the|some|example|change[-_]?me|placeholder|todo|dummy"
    r"|insert|replace|redacted|masked|hidden|null|none|nil|true|false|undefined|optional|string|str|bytes|required|missing"
    r"|vault:|file:|env:|ssm:|op://|secretsmanager|arn:)(?![A-Za-z0-9])"
)
WORDY = re.compile(r"(?:[A-Za-z]{3,}|\d{1,4})(?:[_./=-](?:[A-Za-z]{2,}|v?\d{1,4})){1,12}\Z")
_COOKIE_ATTRIBUTES = re.compile(r"(?i)(?:path|domain|expires|max-age|samesite)=")
_DSN_USER_END = re.compile(r"[\w.-]")
_DSN_NOT_IN_PASSWORD = re.compile(r"[\s:/@\"'\[\]]")
_USER_CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.$#-"
_JOINTS_OF_PATHS = frozenset("/:@")  # before a user: part of a path or of an address
_ORACLE_PASSWORD = re.compile(r"[^\s:/@\"'\[\]]{1,128}")
_HOST = re.compile(r"[\w.-]{1,253}")
_REVISION = re.compile(  # `connect org/repository@main`
    r"(?i)v?\d+(?:\.\d+){0,3}\Z|sha\d|(?:main|master|latest|head|next|dev)\Z"
)
_PLACEHOLDER = re.compile(r"(?i)<?(?:password|passwd|pwd|pass)>?\Z")
_MAX_HOST, _MAX_PASSWORD, _MAX_USER = 253, 128, 68
_QUALIFIERS = tuple(  # of `key` and `token`, which alone may mean much else
    """
    access account admin api app application auth authentication aws azure bearer bot ci client consumer csrf
    dd deploy encryption function gcp github gitlab hf host id ingest integration license master npm oauth
    openai pat personal private private_key project read refresh registry routing sas secret security server
    service session shared signing slack storage subscription upload user vault webhook write x
    """.split()  # noqa: SIM905 - one word a line would fill a page
)
_SECRET_NAMES = re.compile(
    r"(?i)api[_-]?key|secret(?!ar|ion)|(?:access|private|signing)[_-]?key|passw(?:or)?d|passphrase|pwd"
    r"|(?:auth|access|refresh|session|bearer|csrf|id)[_-]?token(?!s)|(?:authorization|cookies?)\Z"
)
_ATTRIBUTES_OF_SECRETS = re.compile(  # the id of a key or the age of a password is not a secret
    r"(?:[_.-]|(?<=[a-z])(?=[A-Z]))(?i:ids?|name|counts?|length|len|type|kind|status|state|policy|version|enabled"
    r"|required|valid|present|reset|attempts|strength|expir[a-z]{1,5}|age|ttl|at|in|ms|seconds)\Z"
)
_ATTRIBUTE_ENDINGS = re.compile(
    r"(?:\A|[_-]|(?<=[a-z])(?=[A-Z]))(?i:ids?|names?|counts?|totals?|length|len|size|type|kind|status|state|policy|version|enabled"
    r"|required|valid|reset|attempts|strength|expir[a-z]{1,5}|age|ttl|file|path|url|uri|ref|arn|algorithm|alg|format|prefix"
    r"|field|column|header|manager|store|rotation|limit|bits|min|max|usage|provider|endpoint|scope|hint|label|param|var|env"
    r"|index|at|in|ms|seconds|hash|iz[a-z]{1,6}|ed|word|words|board|s)\Z"
)
_PASSWORD_CHARS = re.compile(r"[0-9!@#$%^&*+=~|]")
_CODE = re.compile(
    r"[A-Za-z_][\w]*(?:(?:\.|->|::)[A-Za-z_][\w]*)+\Z|(?i:[a-z_]*(?:password|passwd|pwd|secret|token|api_?key)[a-z_]*)\Z"
)
_CALL = re.compile(r"[A-Za-z_][\w.]{0,200}\Z")
_END_OF_TOKEN = re.compile(r"[0-9a-f]{6}\]")
_PASSWORD_NAME = re.compile(r"(?i)passw|pwd")
_STRONG_PASSWORD = re.compile(
    r"(?=[^0-9]{0,63}[0-9])(?=[^A-Za-z]{0,63}[A-Za-z])(?=[^!@#$%^&*+=~]{0,63}[!@#$%^&*+=~]).{8,64}"
)
_PLAIN = re.compile(r"[\d.:TZ+/-]+\Z|[A-Za-z]+\Z|[a-z]+(?:[_./-][a-z]+){1,20}\Z|[A-Z]+(?:[_./-][A-Z]+){1,20}\Z")
_NEEDS_QUALIFIER = frozenset({"key", "token"})
_JOINTS = frozenset(" _.-")
_UUID = re.compile(r"(?i)[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_OF_REQUESTS = re.compile(
    r"(?i)(?:client|request|idempoten(?:t|cy)|next|page|continuation|sync|creation)[ _.-]?token\Z"
)
_TYPE_NAME = re.compile(r"(?:[A-Z][a-z]{2,15}\d{0,2}){3,6}|[A-Z][a-z]{1,3}\d(?:[A-Z][a-z]{3,15}){2,5}")
_HEX_DIGEST = re.compile(r"(?i)(?:sha\d{1,3}|md5|commit|digest|checksum|etag|fingerprint|public)\W{0,3}\Z")


def is_secret_name(key: str) -> bool:
    """Returns whether the value of this key is a secret, whatever it looks like."""
    return _SECRET_NAMES.search(key) is not None and _ATTRIBUTES_OF_SECRETS.search(key) is None


def entropy(value: str) -> float:
    """Shannon entropy of the characters, in bits per character."""
    total = len(value)
    return -sum(count / total * math.log2(count / total) for count in Counter(value).values())


def _is_qualified(text: str, start: int, anchor: str) -> bool:
    """Whether a name that may mean much else, such as `key`, has a word before it that makes it a secret's."""
    if anchor not in _NEEDS_QUALIFIER:
        return True
    before = text[max(0, start - 16) : start].lower()
    return (before[:-1] if before[-1:] in _JOINTS else before).endswith(_QUALIFIERS)


def _assigned_value(match: re.Match[str]) -> Span | None:
    """Accepts the value unless it is prose or code: `password: hunter2`, but not `password: must be long`."""
    start, end = match.span("secret")
    quoted, value = match["quote"], match["secret"]
    if not quoted:
        value = value.rstrip(".:!?").partition("&")[0]
        end = start + len(value)
    if len(value) < 4 or "://" in value or REFERENCE.match(value) or _END_OF_TOKEN.match(match.string, start):
        return None
    if (match["rest"] and _ATTRIBUTE_ENDINGS.search(match["rest"])) or _names_a_request(match, value):
        return None
    following = match.string[end : end + 1]
    if not quoted and (_CODE.match(value) or (following in ("(", "[", "{") and _CALL.match(value))):
        return None
    if match["sign"] in ("=", ":=", "=>", "==") and not quoted:
        return start, end
    if match["sign"] == "|":  # a cell of a table: mostly a description
        quoted = ""
    return (start, end) if quoted or _PASSWORD_CHARS.search(value) else None


def _names_a_request(match: re.Match[str], value: str) -> bool:
    """Whether a UUID is a `ClientToken`, which makes a request happen once."""
    before = match.string[max(0, match.start() - 16) : match.start() + 5]
    return _UUID.fullmatch(value) is not None and _OF_REQUESTS.search(before) is not None


def _loose_value(match: re.Match[str]) -> Span | None:
    """Accepts a value that looks random behind a word such as `token` or `key`."""
    start = match.start("secret")
    value = match["secret"] if match["secret"].endswith("=") else match["secret"].rstrip(".:?,=")
    if (match["rest"] and _ATTRIBUTE_ENDINGS.search(match["rest"])) or _names_a_request(match, value):
        return None
    before = match.string[max(0, match.start() - 16) : match.start()]
    if _PASSWORD_NAME.match(match[0]) and _STRONG_PASSWORD.fullmatch(value):
        return start, start + len(value)
    if _HEX_DIGEST.search(before) or _TYPE_NAME.fullmatch(value) or not _looks_random(value, 12):
        return None
    return start, start + len(value)


def _looks_random(value: str, least: int) -> bool:
    """Whether a value has letters, digits and no words, as keys have."""
    if len(value) < least or _PLAIN.match(value) or WORDY.match(value) or REFERENCE.match(value) or "://" in value:
        return False
    digits = sum(map(str.isdigit, value))
    letters = sum(map(str.isalpha, value))
    if not digits or not letters or (digits < 2 and value.islower()):
        return False
    return entropy(value) >= (2.8 if len(value) < 20 else 3.0)


def _authorization(match: re.Match[str]) -> Span | None:
    """Accepts a value that looks random, unlike `basic understanding` and `bearer instruments`."""
    value = match["secret"]
    if len(value) < 12 and not (any(map(str.isdigit, value)) and any(map(str.isalpha, value))):
        return None
    return match.span("secret") if _RANDOM_LOOKING.search(value) and not value.isdigit() else None


def _authorization_header(match: re.Match[str]) -> Span | None:
    """Accepts what a header says, unless it is a word or stands for a value."""
    start, value = match.start("secret"), match["secret"].rstrip(".:!?")
    if len(value) < 6 or REFERENCE.match(value) or not _RANDOM_LOOKING.search(value) or WORDY.match(value):
        return None
    return start, start + len(value)


def _cookie(match: re.Match[str]) -> Span | None:
    """Accepts the pairs of a cookie, but not the attributes of one."""
    return None if _COOKIE_ATTRIBUTES.match(match["secret"]) else match.span("secret")


def _url_password(match: re.Match[str]) -> Span | None:
    """Accepts a password in an address that is not a reference such as `${PASSWORD}`."""
    value = match["secret"]
    return None if REFERENCE.match(value) and not any(map(str.isdigit, value)) else match.span("secret")


def _random(match: re.Match[str]) -> Span | None:
    """Accepts a user name or the parameter of an address that looks random."""
    return match.span("secret") if _looks_random(match["secret"], 16) else None


def _dsn_password(match: re.Match[str]) -> Span | None:
    """Accepts the password before `@tcp(` in a data source name of Go."""
    text, end = match.string, match.start()
    colon = text.rfind(":", max(0, end - 129), end)  # a password of 128 characters
    if colon < 1 or colon + 1 == end or not _DSN_USER_END.match(text, colon - 1):
        return None
    return None if _DSN_NOT_IN_PASSWORD.search(text, colon + 1, end) else (colon + 1, end)


def _command_line(match: re.Match[str]) -> Span | None:
    """Accepts a password behind an option of a program that takes one there."""
    group = match.lastgroup or ""
    return None if REFERENCE.match(match[group]) else match.span(group)


def _oracle_login(match: re.Match[str]) -> Span | None:
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
    if before == window or before[-1:] in _JOINTS_OF_PATHS:
        return None
    accepted = _ORACLE_PASSWORD.fullmatch(text, slash + 1, at) and not _stands_for_one(text[slash + 1 : at])
    return (slash + 1, at) if accepted else None


def _stands_for_one(password: str) -> bool:
    return REFERENCE.match(password) is not None or _PLACEHOLDER.match(password) is not None


_CHECKS: dict[str, Accept] = {
    "authorization": _authorization,
    "authorization header": _authorization_header,
    "cookie": _cookie,
    "random": _random,
    "url password": _url_password,
    "dsn password": _dsn_password,
    "command line": _command_line,
    "oracle login": _oracle_login,
    "assigned value": _assigned_value,
    "loose value": _loose_value,
}
ASSIGNMENT_RULES = rules("assignment", _CHECKS, {"assigned-secret": {"admits": _is_qualified}})
"""Rules of what stands behind a colon, an equals sign or a bar."""
(BEARER_RULE,) = rules("bearer", _CHECKS)
LOOSE_RULES = rules("loose", _CHECKS)
"""Rules of what may stand behind a space."""
(ORACLE_RULE,) = rules("oracle", _CHECKS)
