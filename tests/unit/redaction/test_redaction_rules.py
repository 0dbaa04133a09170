"""Rules of redaction, each alone: made-up values that it takes, near-misses that it leaves, and technical prose."""

from __future__ import annotations

import re
import time
from collections import Counter

import pytest
from support.introduced_examples import CREDENTIALS, PERSON_IDS, PHONES
from support.patience import cpu_limit
from support.technical_sentences import sentences
from support.vendor_examples import ROWS, examples, made

from ragwatch.core.sample import Context, Sample
from ragwatch.redaction.custom import custom_rule
from ragwatch.redaction.linear_time import check_linear_time
from ragwatch.redaction.redactor import Redactor
from ragwatch.redaction.rule import MAX_STARTS, RedactionRule, SensitiveKind, TextView
from ragwatch.redaction.rules import RULES
from ragwatch.redaction.vendor_keys import VENDOR_RULES

VENDORS = {rule.name: rule for rule in VENDOR_RULES}
MRZ = "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL898902C36UTO7408122F1204159ZE184226B<<<<<10"


def test_every_vendor_has_examples() -> None:
    """At least sixty vendors, and no rule without a row."""
    assert set(ROWS) == set(VENDORS)
    assert len({rule.about.partition(" (")[0] for rule in VENDOR_RULES}) >= 60


@pytest.mark.parametrize("name", ROWS)
def test_takes_the_keys_of_a_vendor(name: str) -> None:
    """The rule alone takes each example; in a sentence, in quotes and behind a name nothing of the key is left."""
    redactor = Redactor()
    for key in examples(name):
        assert VENDORS[name].taken(TextView(f" {key} "))
        for text in (f"use {key} here", f'"{key}",', f"KEY={key}"):
            assert key[-12:] not in redactor.redact(text)


@pytest.mark.parametrize("name", ROWS)
def test_leaves_what_is_too_short_or_inside_a_word(name: str) -> None:
    """The first characters of a key are no key; nor is a key with letters before it."""
    rule = VENDORS[name]
    for key in examples(name):
        known = [key.find(anchor) + len(anchor) for anchor in rule.anchors if anchor in key]
        short = key[len(key) // 4 :] if rule.back else key[: max(known, default=len(key) // 4) + 4]
        assert rule.taken(TextView(f" {short} ")) == []
        if key.startswith(rule.anchors) and not rule.back:
            assert rule.taken(TextView(f"xX9{key}")) == []


@pytest.mark.parametrize("line", CREDENTIALS)
def test_takes_introduced_secrets(line: str) -> None:
    """Passwords in addresses, connection strings, headers and command lines, and keys behind their name."""
    before, _, rest = made(line).partition("\xab")
    secret, _, behind = rest.partition("\xbb")
    assert secret not in Redactor().redact(before + secret + behind)


@pytest.mark.parametrize("text", PERSON_IDS)
def test_takes_numbers_of_persons(text: str) -> None:
    """Identity, tax and social security numbers, by checksum or by the word before them."""
    assert SensitiveKind.PERSON_ID in {one.kind for one in Redactor().findings(f"Hello, {text}, thanks")}


def test_takes_the_machine_readable_zone() -> None:
    """Both lines of a passport, with the name; not with a wrong check digit."""
    assert Redactor().redact(MRZ).count("<") == 0
    assert Redactor().redact(MRZ.replace("7408122", "7408123")).count("<") > 5


@pytest.mark.parametrize("text", PHONES)
def test_takes_telephone_numbers(text: str) -> None:
    """International and national formats of large countries."""
    assert SensitiveKind.PHONE in {one.kind for one in Redactor().findings(f"x {text} y")}


@pytest.mark.parametrize(
    "text",
    [
        *("api_key = os.environ['KEY']", "password=settings.password", "token = get_token(user)", "secret: ${SECRET}"),
        *(
            "Authorization: Bearer tokens are required",
            "Set-Cookie: Path=/; Secure",
            "token_count: 4096",
            "max_tokens=100",
        ),
        *("part 123-45-6789", "order 12345678Z", "Sizes 128 64 2048", "SSN 666-12-3456", "sku AB123456C"),
        *(
            "the password is case sensitive",
            "https://user:${PASSWORD}@host/",
            "basic understanding of keys",
            "key: value",
        ),
        *(
            "connect acme/parser@main",
            "sqlplus scott/$PW@db",
            "sqlplus user/password@//db",
            "the port a:1521 @b c:1521",
        ),
        *("@types//x and a@//b", "org/x/y@host:1521", "ftp /y@host:1521", "scott/a:b@host:1521", "org/my_x@host:1521"),
        *("sha512-" + "A1b2" * 21 + "Ab==", "commit token " + "ab12" * 10, "my number is up", "call 2024-01-15 10:30"),
    ],
)
def test_leaves_code_prose_and_other_numbers(text: str) -> None:
    """References, calls, attributes of secrets, parts and orders are no values of persons."""
    assert Redactor().findings(text) == []


@pytest.mark.costly
def test_two_false_in_five_thousand() -> None:
    """Technical sentences stay as they are, but for two in 5,000."""
    redactor = Redactor()
    assert len([sentence for sentence in sentences(5000) if redactor.findings(sentence)]) <= 2


def test_findings_are_places_in_the_original() -> None:
    """Whatever was replaced before, a finding names the place of the value in the text as it was."""
    text = (
        "ann@example.org a@b.com_c@d.com\nphone 4155552671, key sk-"
        + "abcd1234" * 4
        + " and 10.0.0.12; password=x9y8z7"
    )
    found = Redactor().findings(text)
    assert [text[one.start : one.end] for one in found] == [
        *("ann@example.org", "a@b.com", "_c@d.com", "4155552671", "sk-" + "abcd1234" * 4, "10.0.0.12", "x9y8z7")
    ]
    assert Counter(one.kind for one in found) == Redactor().redact_counted(text)[1]


def test_ids_on_request() -> None:
    """Ids of samples, contexts and traces are redacted only if the redactor is told to."""
    mail = "ann@example.org"
    sample = Sample(mail, None, (Context("text", mail), Context("text")), "fine", metadata={"trace_id": mail})
    assert Redactor().redact_sample(sample)[0] == sample
    clean, counts = Redactor(ids=True).redact_sample(sample)
    assert mail not in str(clean)
    assert (clean.contexts[1].id, counts[SensitiveKind.EMAIL]) == (None, 3)


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


def test_names_are_unique() -> None:
    """A name tells one rule."""
    assert max(Counter(rule.name for rule in RULES).values()) == 1


@pytest.mark.parametrize("anchors", [("k.",), ()], ids=["anchored", "searched"])
def test_false_positives_within_each_other_cost_linear_time(anchors: tuple[str, ...]) -> None:
    """What is rejected to the end of a long text is not tried at each of its places; after it the search goes on."""
    tried: list[int] = []

    def accept(match: re.Match[str]) -> tuple[int, int] | None:
        tried.append(match.start())
        return match.span() if "7" in match[0] else None

    rule = RedactionRule("x", SensitiveKind.KEY, re.compile(r"k\.[a-z0-9.]{4,}"), "a key", accept, anchors=anchors)
    text = "k." * 5000 + " k.k.7abc"
    assert rule.spans(TextView(text)) == [(10_001, len(text))]
    assert len(tried) <= MAX_STARTS + 1


def test_a_value_inside_of_a_false_positive_is_taken() -> None:
    """The beginning of a rejected match is no value, but what begins later in it is."""
    rule = RedactionRule(
        "x",
        SensitiveKind.KEY,
        re.compile(r"k\.[a-z0-9.]{4,}"),
        "a key",
        lambda match: match.span() if match[0].startswith("k.7") else None,
        anchors=("k.",),
    )
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


@pytest.mark.parametrize(
    "text",
    [
        "a:: is a scope of b::c",
        "rows 10::20 and ::1234",
        "join chat @tcp(host)",
        "one:two three@tcp(db:3306)/app",
        ":secret@tcp(db:3306)/app",
        "user:@tcp(db:3306)/app",
    ],
)
def test_leaves_what_only_begins_like_an_address(text: str) -> None:
    """Colons of code are no IPv6 address, and `@tcp(` without a user and a password before it has no secret."""
    assert Redactor().redact(text) == text
