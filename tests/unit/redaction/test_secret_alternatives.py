"""Redaction, alternative by alternative: each one of each rule finds its secret, whatever stands around it."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from support.secret_examples import EXAMPLES

from ragwatch.redaction.redactor import Redactor
from ragwatch.redaction.rules import RULES

RULE_OF = {rule.name: rule for rule in RULES}
CASES = [(name, text, part) for name, examples in EXAMPLES.items() for text, part in examples]
AROUND = (
    ("", ""),
    ("before ", " behind."),
    ("", " behind"),
    ("before ", ""),
    ("before\n", "\nbehind"),
    ("<b>", "</b>"),
)
TOKEN = re.compile(r"\[[A-Z_]+:[0-9a-f]{6}\]")


@pytest.mark.costly
@pytest.mark.parametrize(("name", "text", "part"), CASES, ids=[f"{name}-{text[:24]}" for name, text, _ in CASES])
def test_is_taken_out(name: str, text: str, part: str) -> None:
    """Alone, in a text and at either end of it: one token of the rule's kind, and all else is as it was."""
    for before, behind in AROUND:
        clean, counts = Redactor().redact_counted(f"{before}{text}{behind}")
        assert TOKEN.sub("#", clean) == f"{before}{text.replace(part, '#')}{behind}"
        assert counts == Counter({RULE_OF[name].kind: 1})
