"""Amounts, years and decimal numbers in groups are no telephone numbers, and numbers in such groups still are."""

from __future__ import annotations

import re

import pytest

from ragwatch.redaction.redactor import Redactor

TOKEN = re.compile(r"\[PHONE:[0-9a-f]{6}\]")


@pytest.mark.parametrize(
    "text",
    [
        "the call centres handled 120 000 000 requests",
        "Our office has 10 000 000 square feet",
        "Reach 10 000 000 users",
        "Reach 10\u202f000\u202f000 users",
        "Reach 12 345 678 readers",
        "Call volume: 120 000 000.",
        "Mobile revenue was 1 234 567 EUR",
        "Mobile revenue was 1.234.567 EUR",
        "Mobile revenue was 1 234 567.50, fax revenue was 1 234 567,50",
        "Contact fee: \u20ac 12 345 678",
        "Contact fee: 12 345 678 \u20ac",
        "Contact fee: EUR 123 456 789",
        "Mobile data: 123 456 789 MB",
        "Signal at 123 456 789 Hz",
        "The office covers 12 345 678 m2",
        "The office covers 123 456 789\xa0cm\xb2",
        "text of 120 000 000 words",
        "Die Hotline kostet 12 345 678 Euro",
        "mobile 2019-2020 2021",
        "cell 1.5-2.0 10-20 um",
        "signal 10.5-20.5 30-40 MHz",
    ],
)
def test_amounts_stay(text: str) -> None:
    """What counts, measures or costs something stays behind a word that often introduces a telephone number."""
    assert Redactor().redact(text) == text


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("llama al # para m\xe1s informaci\xf3n", "600 123 456"),
        ("call # whichever day you like", "600 123 456"),
        ("call # whichever day you like", "600.123.456"),
        ("tel. # lub 601 234 567", "602 345 678"),
        ("call # oder 12 345 679", "12 345 678"),
        ("call # from nine to five", "12 345 678"),
        ("call # Monday to Friday", "12 345 678"),
        ("call #, 24 hours a day", "12 345 678"),
        ("Tel. #,12 345 679", "12 345 678"),
        ("cell # h, 601 234 567 m", "600 123 456"),
        ("ring # and ask for Ann", "612 345 000"),
        ("reach me at # whenever", "12 345 678"),
        ("Mobile: #", "1 234 567"),
        ("phone # words", "12 34 56 78"),
        ("phone #", "2015 5551"),
        ("phone # now", "1.415.5552671"),
    ],
)
def test_numbers_in_groups_of_three_are_taken(text: str, number: str) -> None:
    """At the end, before a sign, a capital, a connective or a letter; in groups of 3, 3, 3 before any word."""
    assert TOKEN.sub("#", Redactor().redact(text.replace("#", number))) == text
