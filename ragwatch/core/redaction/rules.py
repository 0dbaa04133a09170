"""All rules that detect PII and secrets, in the order in which they are tried.

Names of people are not detected: that takes a model, and a wrong one does harm.
"""

from __future__ import annotations

from ragwatch.core.redaction.addresses import ADDRESS_RULES
from ragwatch.core.redaction.credentials import (
    ASSIGNMENT_RULES,
    ASSIGNMENT_WORDS,
    LOOSE_RULES,
    LOOSE_WORDS,
    is_secret_name,
)
from ragwatch.core.redaction.headers import BEARER_RULE
from ragwatch.core.redaction.numbers import MONEY_RULES
from ragwatch.core.redaction.obfuscated_emails import FOREIGN_EMAIL_RULES, OBFUSCATED_EMAIL_RULES
from ragwatch.core.redaction.oracle_logins import ORACLE_RULE
from ragwatch.core.redaction.passports import PASSPORT_RULES
from ragwatch.core.redaction.passwords import FOREIGN_PASSWORD_RULES, PASSWORD_RULES
from ragwatch.core.redaction.person_ids import PERSON_RULES, PersonIds
from ragwatch.core.redaction.phones import PHONE_RULES
from ragwatch.core.redaction.private_keys import KEY_RULES
from ragwatch.core.redaction.rule import Detector, NamedRule, NotAscii, RedactionRule, RuleGroup, SensitiveKind
from ragwatch.core.redaction.vendor_keys import VENDOR_RULES, VendorKeys

__all__ = ["DETECTORS", "RULES", "RedactionRule", "SensitiveKind", "is_secret_name"]

_EMAIL, *_IPS = ADDRESS_RULES

# Order matters: a kind that can contain another comes first (a PEM block contains keys, an IBAN the digits of a card).
RULES: tuple[NamedRule, ...] = (
    *KEY_RULES,
    *VENDOR_RULES,
    *ASSIGNMENT_RULES,
    BEARER_RULE,
    *LOOSE_RULES,
    *PASSWORD_RULES,
    *FOREIGN_PASSWORD_RULES,
    ORACLE_RULE,
    _EMAIL,
    *OBFUSCATED_EMAIL_RULES,
    *FOREIGN_EMAIL_RULES,
    *MONEY_RULES,
    *PASSPORT_RULES,
    *PERSON_RULES,
    *_IPS,
    *PHONE_RULES,
)
DETECTORS: tuple[Detector, ...] = (
    RuleGroup(KEY_RULES, ("-----begin", "putty-user-key-file-", "eyj")),
    VendorKeys(VENDOR_RULES),
    RuleGroup(ASSIGNMENT_RULES, ASSIGNMENT_WORDS, signs=(":", "=", "|")),
    BEARER_RULE,
    RuleGroup(LOOSE_RULES, LOOSE_WORDS),
    *PASSWORD_RULES,
    NotAscii(FOREIGN_PASSWORD_RULES),
    ORACLE_RULE,
    _EMAIL,
    *OBFUSCATED_EMAIL_RULES,
    NotAscii(FOREIGN_EMAIL_RULES),
    *MONEY_RULES,
    *PASSPORT_RULES,
    PersonIds(PERSON_RULES),
    *_IPS,
    *PHONE_RULES,
)
"""The same rules, those of vendors and of persons tried together."""
