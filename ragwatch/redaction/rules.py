"""All rules that detect PII and secrets, in the order in which they are tried.

Names of people are not detected: that takes a model, and a wrong one does harm.
"""

from __future__ import annotations

from ragwatch.redaction.addresses import EMAIL_RULE, FOREIGN_EMAIL_RULES, IP_RULES, OBFUSCATED_EMAIL_RULES
from ragwatch.redaction.credentials import (
    ASSIGNMENT_RULES,
    BEARER_RULE,
    LOOSE_RULES,
    ORACLE_RULE,
)
from ragwatch.redaction.keys import KEY_RULES, VENDOR_RULES, VendorKeys
from ragwatch.redaction.money import MONEY_RULES
from ragwatch.redaction.passwords import FOREIGN_PASSWORD_RULES, PASSWORD_RULES
from ragwatch.redaction.person_ids import PASSPORT_RULES, PERSON_RULES, PersonIds
from ragwatch.redaction.phones import PHONE_RULES
from ragwatch.redaction.rule import Detector, NamedRule, RuleGroup, TextView, contains_any, table

_WORDS = {group: tuple(words) for group, words in table("rules")["words_of_groups"].items()}


def _keyed(view: TextView) -> bool:
    return contains_any(view.folded, _WORDS["key"])


def _assigned(view: TextView) -> bool:
    return contains_any(view.text, (":", "=", "|")) and contains_any(view.folded, _WORDS["assignment"])


def _loosely_assigned(view: TextView) -> bool:
    return (view.digits > 0 or contains_any(view.text, (":", "="))) and contains_any(view.folded, _WORDS["loose"])


def _foreign(view: TextView) -> bool:
    """Whether a text has characters that are not ASCII."""
    return not view.text.isascii()


# Order matters: a kind that can contain another comes first (a PEM block contains keys, an IBAN the digits of a card).
_GROUPS: tuple[tuple[tuple[NamedRule, ...], tuple[Detector, ...]], ...] = (
    (KEY_RULES, (RuleGroup(KEY_RULES, _keyed),)),
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
