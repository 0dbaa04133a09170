"""Where personal data and secrets stand in a text: one Rule a kind, each linear in the length of the text.

Linear means: a run of characters is entered at its start only (a lookbehind forbids the rest), a repetition is bounded
or followed by what it cannot hold itself (so that giving characters back fails at once), and whatever a pattern cannot
decide (a checksum, a country) is decided by a function on the few characters it found. No pattern has possessive
quantifiers or atomic groups: Python reads them wrongly before 3.11.5. Names of people are not found: that takes a
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
class RedactionRule:
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

    kind: SensitiveKind
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
        return _holds(text, self.hints) and _holds(folded, self.words)


def _holds(text: str, any_of: tuple[str, ...]) -> bool:
    """Whether one of them stands in it, where there are any. A loop, because `any` takes longer than most searches."""
    for each in any_of:
        if each in text:
            return True
    return not any_of


def _whole(match: re.Match[str]) -> Span | None:
    return match.span("secret") if "secret" in match.re.groupindex else match.span()


def _as_written(value: str) -> str:
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
_NAMES = re.compile(
    r"(?i)api[_-]?key|secret(?!ar|ion)|(?:access|private|signing)[_-]?key|passw(?:or)?d|passphrase|pwd"
    r"|(?:auth|access|refresh|session|bearer|csrf|id)[_-]?token(?!s)|(?:authorization|cookies?)\Z"
)
_ABOUT = re.compile(  # an id of a key, the age of a password: nothing to hide
    r"(?:[_.-]|(?<=[a-z])(?=[A-Z]))(?i:ids?|name|counts?|length|len|type|kind|status|state|policy|version|enabled"
    r"|required|valid|present|reset|attempts|strength|expir[a-z]{1,5}|age|ttl|at|in|ms|seconds)\Z"
)
_RANDOM = re.compile(r"[0-9=]|[a-z][A-Z]")
_STRONG = re.compile(r"[0-9!@#$%^&*+=~|]")


def names_secret(key: str) -> bool:
    """Whether what stands under this key is a secret, whatever it looks like.

    >>> [names_secret(each) for each in ("password", "X-Api-Key", "db.client_secret", "apiKeyId", "max_tokens")]
    [True, True, True, False, False]
    """
    return _NAMES.search(key) is not None and _ABOUT.search(key) is None


def _private_key(match: re.Match[str]) -> Span | None:
    """The whole block, or the start of one that was cut off; the first line alone is no key.

    A block ends at the next five dashes, which have to be those of its last line: what stands between them is read
    once, however many first lines a text has.
    """
    start, begin = match.span()
    dashes = match.string.find(_DASHES, begin)
    last = _PEM_END.match(match.string, dashes) if dashes >= 0 else None
    body = last or _PEM_BODY.match(match.string, begin)
    return (start, body.end()) if body else None


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


# A secret that may hold another stands first: a block of PEM holds keys, an IBAN holds the digits of a card.
RULES: tuple[RedactionRule, ...] = (
    RedactionRule(SensitiveKind.PRIVATE_KEY, ("PRIVATE KEY",), _PEM, _private_key, numbers.letters_and_digits),
    RedactionRule(SensitiveKind.JWT, ("eyJ",), _JWT, _whole, _as_written),
    RedactionRule(
        SensitiveKind.KEY,
        ("sk-", "k_", "AKIA", "ASIA", "gh", "github_pat_", "glpat-", "xox", "AIza", "ya29", "hf_"),
        _KEY,
        _with_digit,
        _as_written,
        digits=1,
    ),
    RedactionRule(SensitiveKind.KEY, (), _AUTHORIZATION, _authorizing, _as_written, words=("bearer", "basic")),
    RedactionRule(SensitiveKind.CREDENTIAL, ("://",), _URL_PASSWORD, _whole, _as_written),
    RedactionRule(SensitiveKind.CREDENTIAL, (":", "="), _ASSIGNMENT, _assigned, _as_written),
    RedactionRule(SensitiveKind.EMAIL, ("@",), _EMAIL, _whole, str.lower),
    RedactionRule(
        SensitiveKind.IBAN, (), numbers.IBAN, numbers.iban, numbers.letters_and_digits, digits=6
    ),  # no bank's numbers are all letters
    RedactionRule(SensitiveKind.CARD, (), numbers.CARD, numbers.card, numbers.letters_and_digits, digits=13),
    RedactionRule(SensitiveKind.IP, (":",), _IPV6, _ipv6, str.lower),
    RedactionRule(SensitiveKind.IP, (".",), _IPV4, _ipv4, _as_written),
    RedactionRule(SensitiveKind.PHONE, (), numbers.PHONE, numbers.phone, numbers.letters_and_digits, digits=8),
    RedactionRule(
        SensitiveKind.PHONE,
        (),
        numbers.CALLED,
        numbers.called,
        numbers.letters_and_digits,
        words=("phone", "tel", "mobil", "cell", "fax", "hotline", "whatsapp", "call"),
        digits=7,
    ),
)
