"""Private keys, web tokens, and secrets that are known by what stands before them.

These are values assigned to the name of a secret, headers of HTTP requests, passwords in addresses and on command
lines. Guards keep prose and code out: `password: must be long`, `api_key=os.environ[...]`, `token_count: 4096`.
"""

from __future__ import annotations

import math
import re
from collections import Counter

from ragwatch.redaction.headers import HEADER_RULES, REFERENCE, WORDY
from ragwatch.redaction.rule import RedactionRule, SensitiveKind, Span

_URL_PASSWORD = re.compile(r"://(?:[^\s:/@\[\]\"'<>]{0,64}:)(?P<secret>[^\s/\[\]\"'<>]{1,128})@(?=[\w.\[-])")
_URL_PASSWORD_WITH_SLASH = re.compile(
    r"://[^\s:/@\[\]\"'<>]{1,64}:(?P<secret>[^\s@\[\]\"'<>]{1,128})@(?=[\w.-]{1,253}[:/?])"
)
_URL_TOKEN = re.compile(r"://(?P<secret>[A-Za-z0-9_-]{16,255})@(?=\w)")
_DSN_PASSWORD = re.compile(r"@(?:tcp|udp|unix|ssh)\(")
_DSN_USER_END = re.compile(r"[\w.-]")
_DSN_NOT_IN_PASSWORD = re.compile(r"[\s:/@\"'\[\]]")
_ORACLE = re.compile(r"(?i)thin:[\w.$#-]{1,64}/(?P<secret>[^\s@/\"'\[\]]{1,128})@")
_DIGEST = re.compile(r"(?i)\bresponse=\"?(?P<secret>[0-9a-f]{32,128})(?![0-9a-z])")
_COMMAND_LINE = re.compile(
    r"(?:(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n|;]{0,120}?[ \t]-p(?P<mysql>[^\s\"'\[\]-][^\s\"'\[\]]{3,64})"
    r"|(?:curl|wget)\b[^\n|;]{0,160}?[ \t](?:-u|--user)[ =]?[\"']?[\w.@+-]{1,64}:(?P<curl>[^\s\"'\[\]]{3,128})"
    r"|sshpass[ \t]+-p[ \t]?[\"']?(?P<ssh>[^\s\"'\[\]]{3,128})"
    r"|redis-cli\b[^\n|;]{0,120}?[ \t]-a[ \t][\"']?(?P<redis>[^\s\"'\[\]]{4,128})"
    r"|(?:sqlcmd|ldapsearch|ldapmodify|docker login|az login|helm|svn)\b[^\n|;]{0,160}?[ \t](?:-P|-w|-p)[ \t]?[\"']?"
    r"(?P<other>[^\s\"'\[\]-][^\s\"'\[\]]{3,128}))"
)

_QUALIFIERS = tuple(  # of `key` and `token`, which alone may mean much else
    """
    access account admin api app application auth authentication aws azure bearer bot ci client consumer csrf
    dd deploy encryption function gcp github gitlab hf host id ingest integration license master npm oauth
    openai pat personal private private_key project read refresh registry routing sas secret security server
    service session shared signing slack storage subscription upload user vault webhook write x
    """.split()  # noqa: SIM905 - one word a line would fill a page
)
_VALUE = (
    r"(?P<quote>\\?[\"'`])?(?P<secret>(?(quote)[^\"'`\\\[\]\r\n]{4,512}(?=\\?[\"'`])|(?!))"
    r"|[^\s\"'`\\,;<>\[\](){}]{4,512})"
)
_ASSIGNMENT = re.compile(
    r"(?i)(?P<name>key|token|secret|passw(?:or)?d|passwd|passphrase|passwort|passcode|kennwort"
    r"|mot de passe|contrase(?:\xf1|n)a"
    r"|senha|pwd)(?P<rest>[A-Za-z0-9_-]{0,24}(?![A-Za-z0-9_-]))\\?[\"'`]?(?:\]|\))?"
    rf"[ \t]{{0,4}}(?P<sign>:=|=>|==?|:|\|)[ \t]{{0,4}}(?:@(?=[\"'])|\{{(?=[^{{}}\s]{{4,128}}\}}))?{_VALUE}"
)
_LOOSE = re.compile(
    r"(?i)(?:token|key|secret|password|passwd|pwd|credentials?|dsn|webhook|license)(?P<rest>[A-Za-z0-9_]{0,16}(?![A-Za-z0-9_]))"
    r"\\?[\"'`]?(?:(?:[ \t]+[a-z]{1,12}){0,3}[ \t]+(?:is|was|ist|es|est|to)(?:[ \t]+now)?[: \t]"
    r"|[ \t]{0,4}(?::=|=>|==?|:|[ \t]))"
    r"[ \t]{0,4}\\?[\"'`]?(?P<secret>[A-Za-z0-9_.=+/~!@#$%^&*-]{8,512})"
)
_PARAMETER = re.compile(
    r"(?i)(?:signature|auth|[?&](?:key|session|jwt|ticket|pass|pw))=(?P<secret>[A-Za-z0-9%._~+/-]{16,4096}={0,2})"
)
_XML = re.compile(
    r"(?i)(?:password|passwd|secret|token|api[_-]?key|access[_-]?key|connectionstring)[\w.-]{0,24}>(?P<secret>[^<>\s\[\]]{4,512})</"
)
_XML_ATTRIBUTE = re.compile(
    r"(?i)(?:key|name)=[\"'][\w.:-]{0,40}(?:password|passwd|secret|token|api[_-]?key)[\w.:-]{0,24}[\"']\s{1,4}value=[\"']"
    r"(?P<secret>[^\"'\[\]\r\n]{4,512})[\"']"
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
    """Returns whether the value of this key is a secret, whatever it looks like.

    >>> [is_secret_name(key) for key in ("password", "X-Api-Key", "db.client_secret", "apiKeyId", "max_tokens")]
    [True, True, True, False, False]
    """
    return _SECRET_NAMES.search(key) is not None and _ATTRIBUTES_OF_SECRETS.search(key) is None


def entropy(value: str) -> float:
    """Shannon entropy of the characters, in bits per character.

    >>> entropy("abab")
    1.0
    """
    total = len(value)
    return -sum(count / total * math.log2(count / total) for count in Counter(value).values())


def _url_password(match: re.Match[str]) -> Span | None:
    """Accepts a password in an address that is not a reference such as `${PASSWORD}`."""
    return (
        None
        if REFERENCE.match(match["secret"]) and not any(map(str.isdigit, match["secret"]))
        else match.span("secret")
    )


def _url_token(match: re.Match[str]) -> Span | None:
    """Accepts a user name that looks like a key."""
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
    value = match["secret"].rstrip(".:?,=") if not match["secret"].endswith("==") else match["secret"]
    if match["secret"].endswith("=") and not match["secret"].endswith("=="):
        value = match["secret"]
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


def _parameter(match: re.Match[str]) -> Span | None:
    """Accepts the parameter of an address that looks random."""
    return match.span("secret") if _looks_random(match["secret"], 16) else None


ASSIGNMENT_RULES: tuple[RedactionRule, ...] = (
    *HEADER_RULES,
    RedactionRule(
        "url-parameter",
        SensitiveKind.KEY,
        _PARAMETER,
        "Random-looking parameter of an address, such as `Signature=`",
        _parameter,
        anchors=(
            "signature=",
            "auth=",
            "?key=",
            "&key=",
            "?session=",
            "&session=",
            "?jwt=",
            "&jwt=",
            "?ticket=",
            "&ticket=",
            "?p",
            "&p",
        ),
        folded_anchors=True,
    ),
    RedactionRule(
        "url-password",
        SensitiveKind.CREDENTIAL,
        _URL_PASSWORD,
        "Password in an address, such as `redis://:password@host`",
        _url_password,
        hints=("@",),
        anchors=("://",),
    ),
    RedactionRule(
        "url-password-unescaped",
        SensitiveKind.CREDENTIAL,
        _URL_PASSWORD_WITH_SLASH,
        "Password with a slash in an address",
        _url_password,
        hints=("@",),
        anchors=("://",),
    ),
    RedactionRule(
        "url-token",
        SensitiveKind.KEY,
        _URL_TOKEN,
        "Key before the host of an address",
        _url_token,
        hints=("@",),
        anchors=("://",),
    ),
    RedactionRule(
        "dsn-password",
        SensitiveKind.CREDENTIAL,
        _DSN_PASSWORD,
        "Password in a data source name, `user:password@tcp(host)/db`",
        _dsn_password,
        hints=("@tcp(", "@udp(", "@unix(", "@ssh("),
    ),
    RedactionRule(
        "oracle-password",
        SensitiveKind.CREDENTIAL,
        _ORACLE,
        "Password in `jdbc:oracle:thin:user/password@host`",
        anchors=("thin:",),
        folded_anchors=True,
    ),
    RedactionRule(
        "assigned-secret",
        SensitiveKind.CREDENTIAL,
        _ASSIGNMENT,
        "Value assigned to the name of a secret",
        _assigned_value,
        anchors=("key", "token", "secret", "pass", "kennwort", "mot de passe", "contrase", "senha", "pwd"),
        folded_anchors=True,
        admits=_is_qualified,
    ),
    RedactionRule(
        "xml-attribute",
        SensitiveKind.CREDENTIAL,
        _XML_ATTRIBUTE,
        'Attribute of XML, such as `key="Password" value="..."`',
        hints=("value=",),
        anchors=("key=", "name="),
        folded_anchors=True,
    ),
)
"""Rules of what stands behind a colon or an equals sign."""
LOOSE_RULES: tuple[RedactionRule, ...] = (
    RedactionRule(
        "digest-response",
        SensitiveKind.CREDENTIAL,
        _DIGEST,
        "Response in a header `Authorization: Digest`",
        anchors=("response=",),
        folded_anchors=True,
    ),
    RedactionRule(
        "command-line-password",
        SensitiveKind.CREDENTIAL,
        _COMMAND_LINE,
        "Password behind an option of curl, mysql, sshpass ...",
        _command_line,
        hints=(" -",),
        anchors=(
            "mysql",
            "mariadb",
            "curl",
            "wget",
            "sshpass",
            "redis-cli",
            "sqlcmd",
            "ldap",
            "docker login",
            "az login",
            "helm",
            "svn",
        ),
    ),
    RedactionRule(
        "xml-secret",
        SensitiveKind.CREDENTIAL,
        _XML,
        "Element of XML with the name of a secret",
        anchors=("password", "passwd", "secret", "token", "api", "access", "connectionstring"),
        folded_anchors=True,
        hints=("</",),
    ),
    RedactionRule(
        "named-key",
        SensitiveKind.KEY,
        _LOOSE,
        "Random-looking value behind a word such as `token`, `key`, `secret`",
        _loose_value,
        min_digits=1,
        anchors=("token", "key", "secret", "passw", "pwd", "credential", "dsn", "webhook", "license"),
        folded_anchors=True,
    ),
)
"""Rules of what may stand behind a space."""
ASSIGNMENT_WORDS = (
    *("signature=", "session=", "jwt=", "ticket=", "pw=", "key", "token", "secret", "passw", "passphrase"),
    *("passcode", "pwd", "auth", "cookie", "://", "thin:", "kennwort", "mot de passe", "contrase", "senha"),
    *("@tcp(", "@unix(", "@udp(", "@ssh("),
)
"""Strings in lower case, of which every text with a value of `ASSIGNMENT_RULES` has one."""
LOOSE_WORDS = (
    *("key", "token", "secret", "passw", "pwd", "bearer", "basic", "credential", "webhook", "license", "dsn"),
    *("connectionstring", "sshpass", "mysql", "mariadb", "curl ", "wget ", "redis-cli", "sqlcmd", "ldap"),
    *("docker login", "az login", "helm ", "svn "),
)
"""The same for `LOOSE_RULES`."""
