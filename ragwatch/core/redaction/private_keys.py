"""Detects private keys and JSON web tokens."""

from __future__ import annotations

import re

from ragwatch.core.redaction.numbers import letters_and_digits
from ragwatch.core.redaction.rule import RedactionRule, SensitiveKind, Span

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
