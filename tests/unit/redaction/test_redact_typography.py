"""Redaction of values that are written with hyphens, dashes and spaces of typography, as language models write them."""

from __future__ import annotations

import re

import pytest
from support.redaction_cases import cases

from ragwatch.redaction.custom import custom_rule
from ragwatch.redaction.redactor import Redactor
from ragwatch.redaction.rule import TextView

SPACES = "\xa0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f"
HYPHENS = "\u2010\u2011"
DASHES = "\u2012\u2013\u2014\u2015\u2212"
OTHERS = (
    *("DE89 3704 0044 0532 0130 00", "GB29-NWBK-6016-1331-9268-19", "4111 1111 1111 1111", "4111-1111-1111-1111"),
    *("(555)-123-4567", "jane-doe@example.org", "password: hunter22", "sk-ant-api03-" + "abcdefghijklmnopqrstuvwxyz1"),
)
TEXTS = (*cases("telephones"), *cases("persons"), *OTHERS)


@pytest.mark.parametrize(
    ("sign", "typed"),
    [
        *((sign, re.compile(" ")) for sign in SPACES),
        *((sign, re.compile("-")) for sign in HYPHENS),
        *((sign, re.compile(r"(?<=\d)-(?=\d)|(?<=\))-(?=\d)")) for sign in DASHES),
    ],
    ids=lambda value: f"U+{ord(value):04X}" if isinstance(value, str) else "",
)
def test_a_sign_of_typography_is_the_one_that_is_typed(sign: str, typed: re.Pattern[str]) -> None:
    """Every example is taken, and its token is that of the other spelling.

    So are spaces and hyphens wherever they stand, also in an address, a key or a group of letters, and dashes between
    digits, and behind the area code of a telephone number.
    """
    texts = [text for text in TEXTS if typed.search(text) and (sign not in DASHES or not re.search("[A-Z]-", text))]
    assert len(texts) > 20
    for text in texts:
        redacted = Redactor().redact(text)
        assert sign in DASHES or "[" in redacted
        assert Redactor().redact(typed.sub(sign, text)) == typed.sub(sign, redacted)


def test_a_dash_between_words_joins_nothing() -> None:
    """What stands before or behind a dash of a sentence is no part of a value, and hides none."""
    text = "call us\u2014415-555-2671\u2014that's us, or write\u2014ann@example.org\u2013any day"
    assert [text[one.start : one.end] for one in Redactor().findings(text)] == ["415-555-2671", "ann@example.org"]
    ranges = "1990\u20131995, pages 100\u2013200, 10\u201320 \xb0C, 2019\u20142020 and 3 \u2212 4"
    assert Redactor().redact(ranges) == ranges


def test_places_are_those_of_the_text() -> None:
    """A finding stands where it stands in the text, whatever typography there is before it and in it."""
    text = "\u2009\u2009\u2014 SSN: 536\u201122\u20111234 \u2014 or 4111\u202f1111\u202f1111\u202f1111, \u20ac\u202f20"
    found = [text[one.start : one.end] for one in Redactor().findings(text)]
    assert found == ["536\u201122\u20111234", "4111\u202f1111\u202f1111\u202f1111"]
    assert (
        re.sub(r"\[\w+:\w{6}\]", "#", Redactor().redact(text))
        == "\u2009\u2009\u2014 SSN: # \u2014 or #, \u20ac\u202f20"
    )


def test_an_answer_in_typography_still_matches_its_context() -> None:
    """A correct answer has the tokens of its context."""
    context = "Reach us at 415-555-2671. Card 4111 1111 1111 1111 is on file."
    answer = "Reach us at 415\u2011555\u20112671. Card 4111\u202f1111\u202f1111\u202f1111 is on file."
    assert Redactor().redact(answer) == Redactor().redact(context)


@pytest.mark.parametrize(
    "text", ["plain 415-555-2671", "J\xfcrgen\u2019s \u201cquote\u201d \u2026 \u2022 \u6f22\u5b57"]
)
def test_other_texts_are_read_as_they_are(text: str) -> None:
    """ASCII, and what has other signs of typography."""
    assert TextView(text).text == text


def test_rules_of_the_configuration_read_both() -> None:
    """A pattern with a dash of typography finds it as before; one with a hyphen finds either."""
    written = Redactor(custom=(custom_rule("file", "Az [0-9]{4}\u2013[0-9]{3}"),))
    assert written.redact("Az 2024\u2013123") == written.redact("Az 2024\u2013123").replace("2024", "")
    assert written.redact("Az 2024-123") == "Az 2024-123"
    typed = Redactor(custom=(custom_rule("file", "Az [0-9]{4}-[0-9]{3}"),))
    assert typed.redact("Az\u202f2024\u2011123") == typed.redact("Az 2024-123") != "Az 2024-123"
