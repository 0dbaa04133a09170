"""Recall and false hits of redaction by class, on cases that name no rule. `-s` prints the figures."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import redaction_cases as cases
from support.national_id_cases import IDS
from support.technical_sentences import sentences
from support.vendor_examples import made

from ragwatch.redaction.national_numbers import NATIONAL
from ragwatch.redaction.numbers import letters_and_digits
from ragwatch.redaction.password_words import CODES, PARTS_OF_CODES, PARTS_OF_PASSWORDS, PASSWORDS
from ragwatch.redaction.person_ids import PERSON_RULES, PersonIdRule
from ragwatch.redaction.person_shapes import LETTERED_SHAPES, SHAPES
from ragwatch.redaction.redactor import Redactor

AROUND_KEYS = ("I tried {} and it failed.", "it says\n{}\nin the log", "({}) worked", "the value '{}' is in the file")
AROUND_PASSWORDS = ("{}", "Hi, {} thanks", "x\n{}.")
TAX_NUMBERS = {
    "it-iva": ("partita iva 04604040222", "partita iva 04604040223"),
    "ru-snils": ("СНИЛС 112-233-445 95", "СНИЛС 112-233-445 96"),
    "de-pension": ("RVNR 15 070649 C 103", "RVNR 15 070649 C 104"),
    "de-insured": ("KVNR A123456780", "KVNR A123456781"),
    "de-card": ("Personalausweis T220001293", "Personalausweis T220001294"),
    "in-gstin": ("GSTIN 27AAPFU0939F1ZV", "GSTIN 27AAPFU0939F1ZW"),
    "cn-credit-code": ("统一社会信用代码 91110000600037341L", "统一社会信用代码 91110000600037341M"),
    "bg-eik": ("ЕИК 131071587", "ЕИК 131071588"),
}


def lines(text: str) -> list[str]:
    """The cases of a class."""
    return [line for line in text.splitlines() if line.strip()]


def takes_key(row: str) -> bool:
    """The end of the key is gone, wherever it stands."""
    value = made(row)
    end = value.split()[0][-8:]
    return all(end not in Redactor().redact(around.format(value)) for around in AROUND_KEYS)


def takes_password(row: str) -> bool:
    """What stands between « and » is gone."""
    before, _, rest = row.partition("«")
    secret, _, behind = rest.partition("»")
    return all(
        secret not in Redactor().redact(around.format(f"{before}{secret}{behind}")) for around in AROUND_PASSWORDS
    )


def takes_id(row: str) -> bool:
    """The number is found, as one of a person, and nothing else."""
    return {one.kind.value for one in Redactor().findings(f"Hello, {row}, thanks")} == {"PERSON_ID"}


def takes_email(row: str) -> bool:
    """The whole address is one value."""
    return [one.kind.value for one in Redactor().findings(f"Write to {row} or call")] == ["EMAIL"]


@pytest.mark.parametrize(
    ("name", "rows", "takes", "least"),
    [
        ("keys of vendors", cases.KEYS, takes_key, 0.93),
        ("passwords and codes", cases.PASSWORDS, takes_password, 0.85),
        ("numbers of persons", IDS, takes_id, 0.95),
        ("obfuscated e-mail", cases.EMAILS, takes_email, 0.9),
    ],
)
def test_recall(name: str, rows: str, takes: Callable[[str], bool], least: float) -> None:
    """Of each class as much is taken as the bar asks for."""
    missed = [row for row in lines(rows) if not takes(row)]
    total = len(lines(rows))
    print(f"{name}: {total - len(missed)} of {total}")
    assert len(missed) <= (1 - least) * total, missed


@pytest.mark.parametrize("text", lines(cases.HARMLESS))
def test_leaves_what_only_looks_alike(text: str) -> None:
    """Seeds, sections, types, tokens of requests, ids of calls, prose about passwords and codes."""
    assert Redactor().findings(text) == []


@pytest.mark.costly
def test_three_false_in_twenty_six_thousand() -> None:
    """Technical sentences of another seed stay as they are, but for three."""
    redactor = Redactor()
    assert len([sentence for sentence in sentences(26_000, seed=5) if redactor.findings(sentence)]) <= 3


@pytest.mark.parametrize(("right", "wrong"), TAX_NUMBERS.values(), ids=TAX_NUMBERS)
def test_a_wrong_check_digit_is_no_number(right: str, wrong: str) -> None:
    """Beside its word a number is taken with the right check digit only."""
    assert takes_id(right)
    assert Redactor().findings(wrong) == []


def test_no_number_without_its_word() -> None:
    """Of all numbers only three shapes are taken without a word: those that hardly anything else has."""
    bare = [row.split(" ", 1)[1] for row in lines(IDS) if row.startswith(("ИНН", "NIP", "UTR", "UNP", "CVR"))]
    assert [value for value in bare if Redactor().findings(f"row {value} is new")] == []


def test_rows_name_shapes_and_words() -> None:
    """Each row has both; names are unique (`test_names_are_unique`)."""
    assert all(shapes and all(words.split(";")) for _, _, shapes, _, words in NATIONAL)


SHAPE_OF = {**dict(SHAPES), **dict(LETTERED_SHAPES)}


@pytest.mark.parametrize("rule", PERSON_RULES, ids=lambda rule: rule.name)
@given(data=st.data())
def test_checks_answer_for_every_value_of_their_shapes(data: st.DataObject, rule: PersonIdRule) -> None:
    """No value that a shape admits makes a check fail: what users write never stops redaction."""
    shape = data.draw(st.sampled_from(rule.shapes))
    length = shape.removeprefix("plain")
    pattern = rf"[0-9]{{{length}}}" if shape.startswith("plain") else SHAPE_OF[shape]
    value = data.draw(st.from_regex(rf"(?a:\A(?:{pattern})\Z)"))
    assert rule.check(letters_and_digits(value)) in {True, False}


def test_words_contain_their_parts() -> None:
    """A text that is not searched for the words has none of them."""
    assert [word for word in PASSWORDS if not any(part in word for part in PARTS_OF_PASSWORDS)] == []
    assert [word for word in CODES if not any(part in f"{word}:" for part in PARTS_OF_CODES)] == []


@pytest.mark.parametrize(
    ("one", "other"),
    [("jane [at] example [dot] com", "jane@example.com"), ("jane&#64;example.com", "Jane (at) Example (dot) com")],
)
def test_spellings_of_an_address_have_one_token(one: str, other: str) -> None:
    """A claim matches its context however each writes the address."""
    assert Redactor().redact(one) == Redactor().redact(other)
