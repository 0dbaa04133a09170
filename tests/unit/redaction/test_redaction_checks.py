"""Checks of single rules where examples of whole texts do not lead: check digits, dates, overlaps, places."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ragwatch.redaction.checksums import CHECKSUMS, mrz
from ragwatch.redaction.european_checks import isikukood, nir, rodne_cislo
from ragwatch.redaction.person_checks import ird, resident
from ragwatch.redaction.redactor import OriginalPlaces, Redactor
from ragwatch.redaction.rules import RULES
from ragwatch.redaction.vendor_keys import _first_of_overlapping

ONE, TWO = RULES[0], RULES[1]


def kinds(text: str) -> list[str]:
    """Kinds of what is taken from a text."""
    return [finding.kind.value for finding in Redactor().findings(text)]


def test_mod11_is_that_of_isbn() -> None:
    """0306406152 is the usual example of an ISBN-10, whose digits have weights that fall from 10 to 1."""
    assert CHECKSUMS["mod11"]("0306406152")
    assert not CHECKSUMS["mod11"]("0306406153")


def test_of_a_french_number_department_and_month_are_possible() -> None:
    """Digits alone do not make one: neither an impossible department nor an impossible month is taken."""

    def number(body: str) -> str:
        return f"{body}{97 - int(body) % 97:02}"

    assert nir(number("1850775123045"))
    assert not nir(number("9850775123045"))
    assert not nir(number("1851575123045"))


def test_czech_numbers_of_nine_digits_end_in_1953() -> None:
    """They have no check digit, so only the date can be wrong."""
    assert rodne_cislo("530101123")
    assert not rodne_cislo("540101123")


@pytest.mark.parametrize(("check", "body"), [(isikukood, "3760503{:03}"), (ird, "4909{:04}")])
def test_second_weights_are_used_where_the_first_give_ten(check: object, body: str) -> None:
    """Of every body at most one check digit is right, and nearly all bodies have one."""
    assert callable(check)
    right = [[digit for digit in range(10) if check(f"{body.format(number)}{digit}")] for number in range(300)]
    assert max(map(len, right)) == 1
    assert sum(map(len, right)) > 260


def test_a_chinese_number_has_a_date_of_birth() -> None:
    """The check digit alone is no evidence."""
    assert resident("11010519491231002X")
    assert not resident("11010519491331002X")


def test_machine_readable_zones_need_their_check_digits() -> None:
    """Of a card of three lines the dates, of a passport the number too."""

    def dated(text: str) -> str:
        return f"{text}{mrz(text)}"

    card = f"I<UTOD231458907<<<<<<<<<<<<<<<\n{dated('740812')}F{dated('120415')}UTO<<<<<<<<<<<6"
    assert kinds(card) == ["PERSON_ID"]
    number = "L898902C3"
    passport = f"{number}{{}}UTO{dated('740812')}F{dated('120415')}ZE184226B<<<<<10"
    assert kinds(passport.format(mrz(number))) == ["PERSON_ID"]
    assert kinds(passport.format((mrz(number) + 1) % 10)) == []


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("| `api_key` | `required` |", False),
        ("| `api_key` | `Zx9kd72mQ1` |", True),
        ("the api key is dGhpc2lzYXNlY3JldDEyMw=, keep it", True),
        ("api_key_id is AKZx9kd72mQ1aa", False),
        ("the key is abcdefghijklmn", False),
        ("the key is xQ/zWv+BnM~kLpT", False),
        ("the key is x7q/zwv+bnm~klpt", False),
        ("my passport is C01X00T47 and passport: C01X00T47", True),
        ("You reach us on 2024-11-05 or 11.22.3333.44", False),
    ],
)
def test_what_is_taken_and_what_is_left(text: str, taken: bool) -> None:  # noqa: FBT001
    """Values that look random are taken behind the name of a secret, descriptions and ids are left."""
    assert bool(kinds(text)) is taken


def test_the_same_number_is_checked_once_and_taken_twice() -> None:
    """The second time what the check said is remembered."""
    assert kinds("SSN 536-22-1234, again SSN 536-22-1234") == ["PERSON_ID", "PERSON_ID"]


def test_characters_that_grow_in_lower_case_move_nothing() -> None:
    """Two characters of the capital dotted I in lower case do not shift the value that is taken."""
    text = "\u0130\u0130 Password: hunter22"
    (finding,) = Redactor().findings(text)
    assert text[finding.start : finding.end] == "hunter22"


def test_of_names_that_overlap_one_value_is_taken() -> None:
    """`secret_password` is the name of a secret twice, and has one value."""
    assert kinds("secret_password=hunter22x") == ["CREDENTIAL"]


def test_of_keys_that_overlap_the_first_is_taken() -> None:
    """The longer one of two that start together."""
    assert _first_of_overlapping([(3, 9, TWO), (0, 5, ONE), (0, 3, TWO), (9, 12, ONE)]) == [(0, 5, ONE), (9, 12, ONE)]


def test_places_of_values_that_contain_tokens() -> None:
    """A value that is taken later and contains tokens stands where the first began and the last ended."""
    places = OriginalPlaces()
    places.replace([(2, 6, ONE, 10), (10, 14, ONE, 10)])
    assert places.values() == [(2, 6, ONE), (10, 14, ONE)]
    places.replace([(0, 13, TWO, 5)])
    assert places.values() == [(0, 7, TWO), (10, 14, ONE)]
    assert all(first[1] <= second[0] for first, second in pairwise(places.values()))
