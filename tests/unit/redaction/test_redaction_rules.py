"""Rules of redaction: check digits and dates, rules of the configuration, overlaps, and linear time."""

import re
import time
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.patience import cpu_limit
from support.secret_examples import cases, kinds

from ragwatch.redaction.linear_time import check_linear_time
from ragwatch.redaction.passwords import WORDS
from ragwatch.redaction.person_checks import mrz
from ragwatch.redaction.person_ids import LETTERED_SHAPES, PERSON_RULES, SHAPES, PersonIdRule
from ragwatch.redaction.redactor import OriginalPlaces, Redactor
from ragwatch.redaction.rule import MAX_STARTS, RedactionRule, SensitiveKind, TextView, letters_and_digits
from ragwatch.redaction.rules import RULES, custom_rule

ONE, TWO = RULES[0], RULES[1]
SK, GH = "sk-" + "abcd1234" * 4, "ghp_" + "a1B2c3D4e5F6" * 3
MRZ = "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL898902C36UTO7408122F1204159ZE184226B<<<<<10"
SHAPE_OF = {**dict(SHAPES), **dict(LETTERED_SHAPES)}
CHECKED = {rule.name: rule.check for rule in PERSON_RULES}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("partita iva 04604040222", "partita iva 04604040223"),
        ("СНИЛС 112-233-445 95", "СНИЛС 112-233-445 96"),
        ("RVNR 15 070649 C 103", "RVNR 15 070649 C 104"),
        ("KVNR A123456780", "KVNR A123456781"),
        ("Personalausweis T220001293", "Personalausweis T220001294"),
        ("GSTIN 27AAPFU0939F1ZV", "GSTIN 27AAPFU0939F1ZW"),
        ("统一社会信用代码 91110000600037341L", "统一社会信用代码 91110000600037341M"),
        ("ЕИК 131071587", "ЕИК 131071588"),
        ("SIN 046454286", "SIN 046454287"),
        ("Medicare 2123 45670 1", "Medicare 2123 45671 1"),
        ("NRIC F1234567N", "NRIC F1234567M"),
        ("HKID A123456(3)", "HKID A123456(4)"),
        ("TFN 12345677", "TFN 12345678"),
        ("PIS 120.12345.67-2", "PIS 120.12345.67-5"),
        ("personnummer 811278-9873", "personnummer 811278-9874"),  # of coordination: 60 more than the day
        ("UBN 04595252", "UBN 04595253"),  # by 5
        ("rodné číslo 530101/123", "rodné číslo 540101/123"),  # nine digits until 1953, without a check digit
        ("NIR 185077512304531", "NIR 985077512304530"),  # the month and the first digit are possible
        ("RRN 900101-1234568", "RRN 901301-1234568"),
        ("身份证 11010519491231002X", "身份证 11010519491331002X"),
        ("IIN 940717300033", "IIN 940717300034"),
        ("TAJ 123456788", "TAJ 123456789"),
        ("sa id 8001015009087", "sa id 1712015009081"),  # a time in ms since 1970
        ("NSS 281234567840", "NSS 281234567841"),
        ("NPI 1234567893", "NPI 1234567894"),
        ("SSN 536-90-4399", "SSN 111-11-1111"),
    ],
)
def test_a_wrong_check_digit_is_no_number(right: str, wrong: str) -> None:
    """Beside its word a number is taken only if its check digit, its date and the digits that are in use are right."""
    assert set(kinds(right)) == {"PERSON_ID"}
    assert kinds(wrong) == []


def test_no_number_without_its_word() -> None:
    """Most numbers need one: hardly anything else has the shape of the few that do not."""
    rows = cases("numbers of persons")
    bare = [row.split(" ", 1)[1] for row in rows if row.startswith(("ИНН", "NIP", "UTR", "UNP", "CVR"))]
    assert [value for value in bare if kinds(f"row {value} is new")] == []


@pytest.mark.parametrize("rule", PERSON_RULES, ids=lambda rule: rule.name)
@given(data=st.data())
def test_checks_answer_for_every_value_of_their_shapes(data: st.DataObject, rule: PersonIdRule) -> None:
    """No value that a shape admits makes a check fail: what users write never stops redaction."""
    shape = data.draw(st.sampled_from(rule.shapes))
    length = shape.removeprefix("plain")
    pattern = rf"[0-9]{{{length}}}" if shape.startswith("plain") else SHAPE_OF[shape]
    value = data.draw(st.from_regex(rf"(?a:\A(?:{pattern})\Z)"))
    assert rule.check(letters_and_digits(value)) in {True, False}
    assert rule.words


def test_other_digits_than_those_of_ascii_fail_no_check() -> None:
    """A number in two scripts is nobody's, and the text around it is redacted as ever."""
    text = "\u0660123 4567 8901, ann@example.org, BOXW31082\u0660HNERXN09 and PESEL 4405140135\u0669"
    assert "EMAIL" in kinds(text)


@pytest.mark.parametrize(("name", "body"), [("ee-isikukood", "3760503{:03}"), ("kz-iin", "94071730{:03}")])
def test_second_weights_are_used_where_the_first_give_ten(name: str, body: str) -> None:
    """Of every body at most one check digit is right, and nearly all bodies have one."""
    numbers = [[digit for digit in range(10) if CHECKED[name](f"{body.format(one)}{digit}")] for one in range(300)]
    assert max(map(len, numbers)) == 1
    assert sum(map(len, numbers)) > 260


def test_machine_readable_zones_need_their_check_digits() -> None:
    """Of a card of three lines the dates, of a passport the number too."""

    def dated(text: str) -> str:
        return f"{text}{mrz(text)}"

    card = f"I<UTOD231458907<<<<<<<<<<<<<<<\n{dated('740812')}F{dated('120415')}UTO<<<<<<<<<<<6"
    assert kinds(card) == kinds(MRZ) == ["PERSON_ID"]
    assert Redactor().redact(MRZ).count("<") == 0
    assert kinds(MRZ.replace("7408122", "7408123")) == kinds(MRZ.replace("L898902C36", "L898902C37")) == []


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("| `api_key` | `required` |", []),
        ("| `api_key` | `Zx9kd72mQ1` |", ["Zx9kd72mQ1"]),
        ("the api key is dGhpc2lzYXNlY3JldDEyMw=, keep it", ["dGhpc2lzYXNlY3JldDEyMw="]),
        ("api_key_id is AKZx9kd72mQ1aa", []),
        ("the key is abcdefghijklmn", []),
        ("the key is xQ/zWv+BnM~kLpT", []),
        ("the key is x7q/zwv+bnm~klpt", []),
        ("my passport is C01X00T47 and passport: C01X00T47", ["C01X00T47", "C01X00T47"]),
        ("You reach us on 2024-11-05 or 11.22.3333.44", []),
        ("SSN 536-22-1234, again SSN 536-22-1234", ["536-22-1234", "536-22-1234"]),
        ("\u0130\u0130 Password: hunter22", ["hunter22"]),  # two characters each in lower case
        ("secret_password=hunter22x", ["hunter22x"]),  # the name of a secret twice
        (f"{SK} and {GH}", [SK, GH]),
        (
            f"ann@example.org a@b.com_c@d.com\nphone 4155552671, key {SK} and 10.0.0.12; password=x9y8z7",
            ["ann@example.org", "a@b.com", "_c@d.com", "4155552671", SK, "10.0.0.12", "x9y8z7"],
        ),
    ],
)
def test_findings_are_places_in_the_original(text: str, taken: list[str]) -> None:
    """Whatever was replaced before, a finding names the place of the value in the text as it was."""
    findings = Redactor().findings(text)
    assert [text[one.start : one.end] for one in findings] == taken
    assert Counter(one.kind for one in findings) == Redactor().redact_counted(text)[1]


def test_places_of_values_that_contain_tokens() -> None:
    """A value that is taken later and contains tokens stands where the first began and the last ended."""
    places = OriginalPlaces()
    places.replace([(2, 6, ONE, 10), (10, 14, ONE, 10)])
    assert places.values() == [(2, 6, ONE), (10, 14, ONE)]
    places.replace([(0, 13, TWO, 5)])
    assert places.values() == [(0, 7, TWO), (10, 14, ONE)]
    assert all(first[1] <= second[0] for first, second in pairwise(places.values()))


def test_names_are_unique_and_words_contain_their_parts() -> None:
    """A name tells one rule; a text that is not searched for the words of passwords has none of them."""
    assert max(Counter(rule.name for rule in RULES).values()) == 1
    for words, parts in (("passwords", "parts_of_passwords"), ("codes", "parts_of_codes")):
        assert [word for word in WORDS[words] if not any(part in f"{word}:" for part in WORDS[parts])] == []


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [
        ("(a+)+b", "without a bound"),
        ("(?:a{1,9}){2,9}b", "inside a repetition"),
        (r"(a)\1bc", "backreference"),
        ("(?=a)abc", "lookahead"),
        ("(?<!a)bcd", "lookahead or lookbehind"),
        ("a{1,300}bcd", "above 256"),
        ("[a-z]{1,60}[a-z]{1,60}x", "combinations"),
        ("(abc", "is not a regular expression"),
        ("ab", "fewer than 3"),
        ("a" * 501, "more than 500"),
        ("(a)?b(?(1)cd|ef)", "condition"),
    ],
)
def test_refuses_patterns_that_may_backtrack(pattern: str, complaint: str) -> None:
    """The message says what is wrong and what to write instead."""
    with pytest.raises(ValueError, match=complaint):
        check_linear_time(pattern)


@pytest.mark.parametrize("pattern", ["EMP-[0-9]{6}", r"(?:ACME|Acme)-(?P<secret>\d{4,8})", "[A-Z]{2}.{3}[^x]?$"])
def test_admits_bounded_patterns(pattern: str) -> None:
    """Literals, sets, groups, alternatives and bounded repetitions."""
    assert check_linear_time(pattern).pattern == pattern


def test_rules_of_the_configuration() -> None:
    """A rule of one's own needs its checksum and one of its words, and comes before the others."""
    rule = custom_rule("member", r"[0-9]{4}-[0-9]{4}", "luhn", ("Member",))
    redactor = Redactor(custom=(rule,))
    assert redactor.redact("member 4111-1113").startswith("member [CUSTOM:")
    assert redactor.redact("member 4111-1114") == "member 4111-1114"
    assert redactor.redact("room 4111-1113") == "room 4111-1113"
    assert redactor.redact("room 4111-1113" + " " * 99 + "member") == "room 4111-1113" + " " * 99 + "member"
    named = custom_rule("staff", r"(?:staff (?P<secret>[a-z0-9]{4,8}))?xyz")
    assert Redactor(custom=(named,)).redact("staff ann12xyz xyz").endswith("xyz xyz")
    assert Redactor(custom=(custom_rule("mod", "[a-z]{4}", "luhn"),)).redact("abcd") == "abcd"


@pytest.mark.parametrize(
    ("checksum", "right", "wrong"),
    [
        ("luhn", "4111111111111111", "4111111111111112"),
        ("verhoeff", "2363", "2364"),
        ("mod97", "370400440532013000DE89", "370400440532013000DE88"),
        ("mod11", "0306406152", "0306406153"),  # the usual example of an ISBN-10
        ("mod11_10", "86095742719", "86095742718"),
    ],
)
def test_checksums_of_the_configuration(checksum: str, right: str, wrong: str) -> None:
    """Each that a rule may name tells a right check digit from a wrong one."""
    redactor = Redactor(custom=(custom_rule("x", "no (?P<secret>[0-9A-Z]{4,30})", checksum),))
    assert [one.rule for one in redactor.findings(f"no {right}, b")] == ["x"]
    assert "x" not in {one.rule for one in redactor.findings(f"no {wrong}, b")}


@pytest.mark.parametrize("anchors", [("k.",), ()], ids=["anchored", "searched"])
def test_false_positives_within_each_other_cost_linear_time(anchors: tuple[str, ...]) -> None:
    """What is rejected to the end of a long text is not tried at each of its places; after it the search goes on."""
    tried: list[int] = []

    def accept(match: re.Match[str]) -> tuple[int, int] | None:
        tried.append(match.start())
        return match.span() if "7" in match[0] else None

    rule = RedactionRule("x", SensitiveKind.KEY, "a key", re.compile(r"k\.[a-z0-9.]{4,}"), accept, anchors=anchors)
    text = "k." * 5000 + " k.k.7abc"
    assert rule.spans(TextView(text)) == [(10_001, len(text))]
    assert len(tried) <= MAX_STARTS + 1


def test_a_value_inside_of_a_false_positive_is_taken() -> None:
    """The beginning of a rejected match is no value, but what begins later in it is."""

    def accept(match: re.Match[str]) -> tuple[int, int] | None:
        return match.span() if match[0].startswith("k.7") else None

    rule = RedactionRule("x", SensitiveKind.KEY, "a key", re.compile(r"k\.[a-z0-9.]{4,}"), accept, anchors=("k.",))
    assert rule.spans(TextView("k.abcdk.7abcd")) == [(6, 13)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule", [rule for rule in RULES if isinstance(rule, RedactionRule)], ids=lambda rule: rule.name
)
def test_x23_each_rule_is_linear(rule: RedactionRule) -> None:
    """A megabyte of what a rule begins with is read in a second."""
    for unit in (*rule.anchors, *(f"{anchor}." for anchor in rule.anchors), *rule.hints, "a", "1 "):
        view = TextView(unit * (1_000_000 // len(unit)))
        start = time.process_time()
        rule.spans(view)
        assert time.process_time() - start < cpu_limit(1.0)
