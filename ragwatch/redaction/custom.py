"""Builds rules of the configuration."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from ragwatch.redaction.linear_time import check_linear_time
from ragwatch.redaction.person_checks import luhn, mod97, stdnum
from ragwatch.redaction.rule import RedactionRule, SensitiveKind, Span, letters_and_digits, whole_match

CHECKSUMS: dict[str, Callable[[str], bool]] = {
    "luhn": luhn,
    "verhoeff": stdnum("verhoeff"),
    "mod97": mod97,
    # Weights fall to 1 from the left, as in an ISBN-10.
    "mod11": lambda digits: sum(int(digit) * weight for weight, digit in enumerate(reversed(digits), 1)) % 11 == 0,
    "mod11_10": stdnum("iso7064.mod_11_10"),
}
"""Checksums that a rule of the configuration may name; those of digits, but for `mod97`."""
_CONTEXT_CHARS = 60


def custom_rule(name: str, pattern: str, checksum: str | None = None, context: tuple[str, ...] = ()) -> RedactionRule:
    """Builds a rule whose values become tokens `[CUSTOM:3f2a9c]`.

    Args:
        name: Name of the rule.
        pattern: Regular expression; its group `secret`, or the whole match, is redacted.
        checksum: Name of a checksum in `CHECKSUMS` that the letters and digits of the value must have.
        context: Words of which one must stand in the 60 characters before the value, or behind it.

    Raises:
        ValueError: The pattern is not known to be matched in linear time.

    >>> rule = custom_rule("employee", r"EMP-[0-9]{6}")
    >>> [match.group() for match in rule.pattern.finditer("ask EMP-123456")]
    ['EMP-123456']
    """
    words = tuple(map(str.lower, context))
    return RedactionRule(
        name,
        SensitiveKind.CUSTOM,
        "Rule of the configuration",
        check_linear_time(pattern),
        partial(_accept, checksum=checksum, words=words),
        normalize=letters_and_digits,
        words=words,
    )


def _accept(match: re.Match[str], *, checksum: str | None, words: tuple[str, ...]) -> Span | None:
    start, end = span = whole_match(match) or (-1, -1)
    if start < 0 or start == end:
        return None
    if checksum is not None:
        value = letters_and_digits(match.string[start:end])
        read = value.isascii() and (value.isalnum() if checksum == "mod97" else value.isdigit())
        if not read or not CHECKSUMS[checksum](value):
            return None
    before = match.string[max(0, start - _CONTEXT_CHARS) : start].lower()
    near = f"{before} {match.string[end : end + _CONTEXT_CHARS].lower()}"
    return span if not words or any(word in near for word in words) else None
