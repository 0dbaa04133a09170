"""Builds rules of the configuration."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from ragwatch.redaction.checksums import CHECKSUMS, DIGITS_ONLY
from ragwatch.redaction.linear_time import check_linear_time
from ragwatch.redaction.numbers import letters_and_digits
from ragwatch.redaction.rule import RedactionRule, SensitiveKind, Span

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
    check = None if checksum is None else CHECKSUMS[checksum]
    accept = partial(_accept, check=check, digits_only=checksum in DIGITS_ONLY, context=tuple(map(str.lower, context)))
    return RedactionRule(
        name,
        SensitiveKind.CUSTOM,
        check_linear_time(pattern),
        "Rule of the configuration",
        accept,
        normalize=letters_and_digits,
        folded_hints=tuple(map(str.lower, context)),
    )


def _accept(
    match: re.Match[str], *, check: Callable[[str], bool] | None, digits_only: bool, context: tuple[str, ...]
) -> Span | None:
    start, end = span = match.span("secret") if "secret" in match.re.groupindex else match.span()
    if start < 0 or start == end:
        return None
    if check is not None:
        value = letters_and_digits(match.string[start:end])
        if not value.isascii() or (digits_only and not value.isdigit()) or not value or not check(value):
            return None
    if context:
        before = match.string[max(0, start - _CONTEXT_CHARS) : start].lower()
        near = f"{before} {match.string[end : end + _CONTEXT_CHARS].lower()}"
        return span if any(word in near for word in context) else None
    return span
