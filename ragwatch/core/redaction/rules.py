"""Rules that detect PII and secrets in a text, in time linear in its length.

To keep patterns linear, a match can only start where a run of characters starts (enforced by a lookbehind), a
repetition is bounded or followed by a character that it cannot match (so that backtracking fails at once), and what a
pattern cannot decide (a checksum, a country) is decided by a function on the match. No pattern has possessive
quantifiers or atomic groups: Python before 3.11.5 reads them wrongly. Names of people are not detected: that takes a
model, and a wrong one does harm.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import AddressValueError, IPv6Address

from ragwatch.core.redaction import numbers

Span = tuple[int, int]


class SensitiveKind(StrEnum):
    """Kind of a redacted value. The values are label values of a series and part of the tokens: `[EMAIL:3f2a9c]`.

    No value may be a word that a rule matches (such as `api_key`), because the token would then be redacted again.
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
class RedactionRule:
    """Detects values of one kind.

    Attributes:
        kind: Kind of the values.
        hints: Strings of which every text with such a value contains at least one; empty if there are none.
        pattern: Finds candidates. The group `secret`, or the whole match if there is no such group, is redacted.
        accept: Returns the span of the value in the text; None if the match is a false positive.
        normalize: Removes formatting, so that two spellings of a value get the same token.
        folded_hints: Like `hints`, in lower case, for patterns that ignore case.
        min_digits: Minimum number of digits in a text with such a value.
    """

    kind: SensitiveKind
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    accept: Callable[[re.Match[str]], Span | None]
    normalize: Callable[[str], str]
    folded_hints: tuple[str, ...] = ()
    min_digits: int = 0

    def may_match(self, text: str, folded: str, digits: int) -> bool:
        """Returns whether the pattern can match. It costs about a hundredth of a search.

        Args:
            text: The text.
            folded: The text in lower case.
            digits: Number of digits in the text.
        """
        if digits < self.min_digits:
            return False
        return _contains_any(text, self.hints) and _contains_any(folded, self.folded_hints)


def _contains_any(text: str, hints: tuple[str, ...]) -> bool:
    """True if there are no hints. A loop, because `any` is slower than most searches."""
    for hint in hints:
        if hint in text:
            return True
    return not hints


def _whole_match(match: re.Match[str]) -> Span | None:
    return match.span("secret") if "secret" in match.re.groupindex else match.span()


def _unchanged(value: str) -> str:
    return value


# --- keys and passwords -------------------------------------------------------------------------------------------

_DASHES = "-----"
_PEM = re.compile(rf"{_DASHES}BEGIN (?:[A-Z0-9]{{1,12}} ){{0,4}}PRIVATE KEY(?: BLOCK)?{_DASHES}")
_PEM_END = re.compile(rf"{_DASHES}END [A-Z0-9 ]{{1,60}}{_DASHES}")
_PEM_BODY = re.compile(r"(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{16,})+")

_JWT = re.compile(r"(?<![\w-])eyJ[A-Za-z0-9_-]{8,}(?:\.{1,2}[A-Za-z0-9_-]{4,}){1,4}")

_KEY = re.compile(
    r"(?<![A-Za-z0-9_-])(?:"
    r"sk-[A-Za-z0-9_-]{16,}"  # OpenAI, Anthropic and those who copy them
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{10,}"  # Stripe
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"  # AWS
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"
    r"|xox[a-z]-[A-Za-z0-9-]{10,}"  # Slack
    r"|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}"  # Google
    r"|hf_[A-Za-z0-9]{20,}"
    r")"
)
_AUTHORIZATION = re.compile(r"(?i)\b(?:bearer|basic)[ \t]{1,4}(?P<secret>[A-Za-z0-9._~+/-]{12,}={0,2})")
_URL_PASSWORD = re.compile(r"://[^\s:/@\[\]]{0,64}:(?P<secret>[^\s/@\[\]]{1,128})@")
_ASSIGNMENT = re.compile(
    r"(?i)(?P<name>api[_-]?key|secret|access[_-]?key|passw(?:or)?d|passwd|pwd|(?:auth|access|refresh)[_-]?token)"
    r"[A-Za-z0-9_-]{0,24}\\?[\"']?[ \t]{0,4}(?P<sign>:|=|:=|=>)[ \t]{0,4}"
    r"(?P<quote>\\?[\"'])?(?P<secret>(?(quote)[^\"'\\\[\]\r\n]{4,256}(?=\\?[\"'])|(?!))|[^\s\"'\\,;<>\[\](){}]{4,256})"
)
_SECRET_NAMES = re.compile(
    r"(?i)api[_-]?key|secret(?!ar|ion)|(?:access|private|signing)[_-]?key|passw(?:or)?d|passphrase|pwd"
    r"|(?:auth|access|refresh|session|bearer|csrf|id)[_-]?token(?!s)|(?:authorization|cookies?)\Z"
)
_ATTRIBUTES_OF_SECRETS = re.compile(  # the id of a key or the age of a password is not a secret
    r"(?:[_.-]|(?<=[a-z])(?=[A-Z]))(?i:ids?|name|counts?|length|len|type|kind|status|state|policy|version|enabled"
    r"|required|valid|present|reset|attempts|strength|expir[a-z]{1,5}|age|ttl|at|in|ms|seconds)\Z"
)
_RANDOM_LOOKING = re.compile(r"[0-9=]|[a-z][A-Z]")
_PASSWORD_CHARS = re.compile(r"[0-9!@#$%^&*+=~|]")


def is_secret_name(key: str) -> bool:
    """Returns whether the value of this key is a secret, whatever it looks like.

    >>> [is_secret_name(key) for key in ("password", "X-Api-Key", "db.client_secret", "apiKeyId", "max_tokens")]
    [True, True, True, False, False]
    """
    return _SECRET_NAMES.search(key) is not None and _ATTRIBUTES_OF_SECRETS.search(key) is None


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


def _with_digit(match: re.Match[str]) -> Span | None:
    """Accepts a key that contains a digit; hyphenated words (`sk-learn-compatible-models`) contain none."""
    return match.span() if any(map(str.isdigit, match[0])) else None


def _authorization(match: re.Match[str]) -> Span | None:
    """Accepts a value that looks random, unlike `basic understanding` and `bearer instruments`."""
    return match.span("secret") if _RANDOM_LOOKING.search(match["secret"]) else None


def _assigned_value(match: re.Match[str]) -> Span | None:
    """Accepts the value unless it is prose: `password: hunter2`, but not `password: must be long`."""
    start, end = match.span("secret")
    if not match["quote"]:
        end = start + len(match["secret"].rstrip(".:!?"))
    value = match.string[start:end]
    prose = match["sign"] == ":" and not match["quote"] and not _PASSWORD_CHARS.search(value)
    return None if prose or len(value) < 4 or "://" in value else (start, end)


# --- addresses ----------------------------------------------------------------------------------------------------

_EMAIL = re.compile(
    r"(?<![\w.%+-])[\w.%+-]+(?:'[\w.%+-]+){0,2}@[^\W_](?:[\w-]{0,62}(?:\.[\w-]{1,63}){0,8})\.[^\W\d_]{2,24}"
)
_IPV4 = re.compile(
    r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?!\w|\.\d)"
)
_IPV6 = re.compile(
    r"(?<![\w:.])(?=[0-9A-Fa-f:]{2,})(?:[0-9A-Fa-f]{0,4}:){2,7}(?:(?:\d{1,3}\.){3}\d{1,3}|[0-9A-Fa-f]{0,4})(?![\w:])"
)
_VERSION = re.compile(r"(?i)\b(?:version|release|build|ver|rev)\b[.:=# ]{0,3}\Z")


def _ipv4(match: re.Match[str]) -> Span | None:
    """Accepts an IPv4 address, but no version (`version 1.2.3.4`, `v1.2.3.4`). A bare 1.2.3.4 is accepted."""
    before = match.string[max(0, match.start() - 12) : match.start()]
    return None if _VERSION.search(before) else match.span()


def _ipv6(match: re.Match[str]) -> Span | None:
    """Accepts an IPv6 address, but no slice (`x[1::2]`), scope (`a::b`) or time of day."""
    value = match[0]
    groups = [group for group in value.split(":") if group]
    plausible = len(groups) > 2 or any(len(group) > 2 and not group.isdigit() for group in groups)
    try:
        IPv6Address(value)
    except AddressValueError:
        return None
    return match.span() if plausible and len(groups) > 1 else None


# Order matters: a kind that can contain another comes first (a PEM block contains keys, an IBAN the digits of a card).
RULES: tuple[RedactionRule, ...] = (
    RedactionRule(SensitiveKind.PRIVATE_KEY, ("PRIVATE KEY",), _PEM, _private_key, numbers.letters_and_digits),
    RedactionRule(SensitiveKind.JWT, ("eyJ",), _JWT, _whole_match, _unchanged),
    RedactionRule(
        SensitiveKind.KEY,
        ("sk-", "k_", "AKIA", "ASIA", "gh", "github_pat_", "glpat-", "xox", "AIza", "ya29", "hf_"),
        _KEY,
        _with_digit,
        _unchanged,
        min_digits=1,
    ),
    RedactionRule(SensitiveKind.KEY, (), _AUTHORIZATION, _authorization, _unchanged, folded_hints=("bearer", "basic")),
    RedactionRule(SensitiveKind.CREDENTIAL, ("://",), _URL_PASSWORD, _whole_match, _unchanged),
    RedactionRule(SensitiveKind.CREDENTIAL, (":", "="), _ASSIGNMENT, _assigned_value, _unchanged),
    RedactionRule(SensitiveKind.EMAIL, ("@",), _EMAIL, _whole_match, str.lower),
    RedactionRule(
        SensitiveKind.IBAN, (), numbers.IBAN, numbers.iban, numbers.letters_and_digits, min_digits=6
    ),  # every IBAN has digits
    RedactionRule(SensitiveKind.CARD, (), numbers.CARD, numbers.card, numbers.letters_and_digits, min_digits=13),
    RedactionRule(SensitiveKind.IP, (":",), _IPV6, _ipv6, str.lower),
    RedactionRule(SensitiveKind.IP, (".",), _IPV4, _ipv4, _unchanged),
    RedactionRule(SensitiveKind.PHONE, (), numbers.PHONE, numbers.phone, numbers.letters_and_digits, min_digits=8),
    RedactionRule(
        SensitiveKind.PHONE,
        (),
        numbers.INTRODUCED_PHONE,
        numbers.introduced_phone,
        numbers.letters_and_digits,
        folded_hints=("phone", "tel", "mobil", "cell", "fax", "hotline", "whatsapp", "call"),
        min_digits=7,
    ),
)
