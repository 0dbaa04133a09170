"""Recall and false hits of redaction by class, and each alternative of each rule. `-s` prints the figures."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

import pytest
from support.redaction_cases import ROWS, TOKEN, cases, examples, kinds, made, marked
from support.secret_examples import EXAMPLES
from support.technical_sentences import sentences

from ragwatch.redaction.keys import VENDOR_RULES
from ragwatch.redaction.redactor import Redactor
from ragwatch.redaction.rule import TextView
from ragwatch.redaction.rules import RULES

AROUND_KEYS = ("I tried {} and it failed.", "it says\n{}\nin the log", "({}) worked", "the value '{}' is in the file")
AROUND_PASSWORDS = ("{}", "Hi, {} thanks", "x\n{}.")
AROUND = ("{}", "before {} behind.", "{} behind", "before {}", "before\n{}\nbehind", "<b>{}</b>")
RULE_OF = {rule.name: rule for rule in RULES}
VENDORS = {rule.name: rule for rule in VENDOR_RULES}


def takes_key(row: str) -> bool:
    """The end of the key is gone, wherever it stands."""
    value = made(row)
    end = value.split()[0][-8:]
    return all(end not in Redactor().redact(around.format(value)) for around in AROUND_KEYS)


def takes_secret(row: str) -> bool:
    """What stands between « and » is gone."""
    before, secret, behind = marked(row)
    texts = (around.replace("{}", f"{before}{secret}{behind}") for around in AROUND_PASSWORDS)
    return all(secret not in Redactor().redact(text) for text in texts)


def takes_only_ids(row: str) -> bool:
    """The number is taken as one of a person, and nothing else."""
    return set(kinds(f"Hello, {row}, thanks")) == {"PERSON_ID"}


def takes_id(row: str) -> bool:
    """A number is taken as one of a person."""
    return "PERSON_ID" in kinds(f"Hello, {row}, thanks")


def takes_email(row: str) -> bool:
    """The whole address is one value."""
    return kinds(f"Write to {row} or call") == ["EMAIL"]


def takes_phone(row: str) -> bool:
    """A telephone number is taken."""
    return "PHONE" in kinds(f"x {row} y")


@pytest.mark.parametrize(
    ("name", "takes", "least"),
    [
        ("keys", takes_key, 0.97),
        ("passwords", takes_secret, 0.97),
        ("credentials", takes_secret, 1),
        ("numbers of persons", takes_only_ids, 0.98),
        ("persons", takes_id, 1),
        ("obfuscated e-mail", takes_email, 0.98),
        ("telephones", takes_phone, 1),
    ],
)
def test_recall(name: str, takes: Callable[[str], bool], least: float) -> None:
    """Of each class as much is taken as before the rules became a table."""
    missed = [row for row in cases(name) if not takes(row)]
    total = len(cases(name))
    print(f"{name}: {total - len(missed)} of {total}")
    assert len(missed) <= (1 - least) * total, missed


def test_leaves_what_only_looks_alike() -> None:
    """Seeds, sections, types, ids, dates, versions, code, and prose about passwords and codes."""
    assert [text for text in cases("harmless") if Redactor().redact_counted(text) != (text, Counter())] == []


@pytest.mark.costly
def test_three_false_in_twenty_six_thousand() -> None:
    """Technical sentences stay as they are, but for three."""
    redactor = Redactor()
    assert len([sentence for sentence in sentences(26_000, seed=5) if redactor.findings(sentence)]) <= 3


def test_vendors_are_many() -> None:
    """At least sixty, and every row says where its form is published."""
    assert len({rule.about.partition(" (")[0] for rule in VENDOR_RULES}) >= 60
    assert set(ROWS) == set(VENDORS)


def test_takes_the_keys_of_a_vendor() -> None:
    """The rule alone takes its examples, none that is cut or inside a word; in a text nothing is left of the key."""
    redactor = Redactor()
    for rule, key in [(VENDORS[name], key) for name in ROWS for key in examples(name)]:
        assert rule.taken(TextView(f" {key} ")), rule.name
        for text in (f"use {key} here", f'"{key}",', f"KEY={key}"):
            assert key[-12:] not in redactor.redact(text), rule.name
        known = [key.find(anchor) + len(anchor) for anchor in rule.anchors if anchor in key]
        short = key[len(key) // 4 :] if rule.back else key[: max(known, default=len(key) // 4) + 4]
        assert rule.taken(TextView(f" {short} ")) == [], rule.name
        if key.startswith(rule.anchors) and not rule.back:
            assert rule.taken(TextView(f"xX9{key}")) == [], rule.name


@pytest.mark.costly
@pytest.mark.parametrize("name", EXAMPLES)
def test_takes_each_alternative_of_a_rule(name: str) -> None:
    """Alone, in a text and at either end of it: one token of the rule's kind, and all else is as it was."""
    for (text, part), around in itertools.product(EXAMPLES[name], AROUND):
        clean, counts = Redactor().redact_counted(around.replace("{}", text))
        assert TOKEN.sub("#", clean) == around.replace("{}", text.replace(part, "#"))
        assert counts == Counter({RULE_OF[name].kind: 1}), text
