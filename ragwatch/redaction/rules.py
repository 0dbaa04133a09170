"""All rules that detect PII and secrets, in the order in which they are tried, and those of the configuration.

Names of people are not detected: that takes a model, and a wrong one does harm.
"""

import re
from collections.abc import Callable
from functools import partial

from ragwatch.redaction.addresses import EMAIL_RULE, FOREIGN_EMAIL_RULES, IP_RULES, OBFUSCATED_EMAIL_RULES
from ragwatch.redaction.credentials import ASSIGNMENT_RULES, BEARER_RULE, LOOSE_RULES, ORACLE_RULE
from ragwatch.redaction.keys import KEY_RULES, VENDOR_RULES, VendorKeys
from ragwatch.redaction.linear_time import check_linear_time
from ragwatch.redaction.numbers import MONEY_RULES, PHONE_RULES
from ragwatch.redaction.passwords import FOREIGN_PASSWORD_RULES, PASSWORD_RULES
from ragwatch.redaction.person_checks import luhn, mod97, stdnum
from ragwatch.redaction.person_ids import PASSPORT_RULES, PERSON_RULES, PersonIds
from ragwatch.redaction.rule import (
    Detector,
    NamedRule,
    RedactionRule,
    RuleGroup,
    SensitiveKind,
    Span,
    TextView,
    contains_any,
    letters_and_digits,
    table,
    whole_match,
)

_WORDS = {group: tuple(words) for group, words in table("rules")["words_of_groups"].items()}


def _assigned(view: TextView) -> bool:
    return contains_any(view.text, (":", "=", "|")) and contains_any(view.folded, _WORDS["assignment"])


def _loosely_assigned(view: TextView) -> bool:
    return (view.digits > 0 or contains_any(view.text, (":", "="))) and contains_any(view.folded, _WORDS["loose"])


def _foreign(view: TextView) -> bool:
    return not view.text.isascii()


# Order matters: a kind that can contain another comes first (a PEM block contains keys, an IBAN the digits of a card).
_GROUPS: tuple[tuple[tuple[NamedRule, ...], tuple[Detector, ...]], ...] = (
    (KEY_RULES, (RuleGroup(KEY_RULES, lambda view: contains_any(view.folded, _WORDS["key"])),)),
    (VENDOR_RULES, (VendorKeys(),)),
    (ASSIGNMENT_RULES, (RuleGroup(ASSIGNMENT_RULES, _assigned),)),
    ((BEARER_RULE,), (BEARER_RULE,)),
    (LOOSE_RULES, (RuleGroup(LOOSE_RULES, _loosely_assigned),)),
    (PASSWORD_RULES, PASSWORD_RULES),
    (FOREIGN_PASSWORD_RULES, (RuleGroup(FOREIGN_PASSWORD_RULES, _foreign),)),
    ((ORACLE_RULE, EMAIL_RULE), (ORACLE_RULE, EMAIL_RULE)),
    (OBFUSCATED_EMAIL_RULES, OBFUSCATED_EMAIL_RULES),
    (FOREIGN_EMAIL_RULES, (RuleGroup(FOREIGN_EMAIL_RULES, _foreign),)),
    (MONEY_RULES, MONEY_RULES),
    (PASSPORT_RULES, PASSPORT_RULES),
    (PERSON_RULES, (PersonIds(PERSON_RULES),)),
    (IP_RULES, IP_RULES),
    (PHONE_RULES, PHONE_RULES),
)
RULES: tuple[NamedRule, ...] = tuple(rule for rules, _ in _GROUPS for rule in rules)
DETECTORS: tuple[Detector, ...] = tuple(detector for _, detectors in _GROUPS for detector in detectors)
"""The same rules, some tried together."""

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
    """Builds a rule whose values become tokens `[CUSTOM:3f2a9c]`: the group `secret` of the pattern, or all of it.

    Letters and digits of the value must have the checksum (a name in `CHECKSUMS`), and one of the words of `context`
    must stand in the 60 characters before the value, or behind it. The pattern is as `check_linear_time` demands.
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
