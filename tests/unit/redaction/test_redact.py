"""Redaction: what is taken out, what is left alone, and what redacting never changes."""

from __future__ import annotations

import re
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.patience import cpu_limit
from support.secret_examples import EXAMPLES

from ragwatch.redaction.redactor import Redactor
from ragwatch.redaction.rule import SensitiveKind
from ragwatch.redaction.rules import RULES

TOKEN = re.compile(r"\[[A-Z_]+:[0-9a-f]{6}\]")
TOKENS = "[EMAIL:3f2a9c] [PHONE:123456] [KEY:aaaaaa] [IP:3f2a9c] [CARD:411111]"


def test_leaves_tokens_alone() -> None:
    """A text that was redacted stays as it is."""
    assert Redactor().redact(TOKENS) == TOKENS


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("password: hunter2.", "password: #."),
        ("password=correcthorse", "password=#"),
        ('{"password": "correct horse battery"}', '{"password": "#"}'),
        ('{\\"api_key\\": \\"abcd efgh\\"}', '{\\"api_key\\": \\"#\\"}'),
        ("OPENAI_API_KEY=abcdef", "OPENAI_API_KEY=#"),
        ("aws_secret_access_key = wJalrXU/K7MDENG+bPx", "aws_secret_access_key = #"),
        ("postgres://bob:s3cret@db.local/x", "postgres://bob:#@db.local/x"),
        ("Authorization: Bearer abc.def-ghi123456", "Authorization: Bearer #"),
        ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "Authorization: Basic #"),
        ("phone: 4155552671", "phone: #"),
        ("Ph: 408-555-7300Fax: 408-555-7328Web", "Ph: #Fax: #Web"),
        ("CA 95819(916) 555-3966", "CA 95819#"),
        ("Call us at 5550123, please", "Call us at #, please"),
        ("10.0.0.0/8 and 10.0.0.12:8080.", "#/8 and #:8080."),
        (
            "It listens on 127.0.0.1:80 and 0.0.0.0, mask 255.255.255.0.",
            "It listens on 127.0.0.1:80 and 0.0.0.0, mask 255.255.255.0.",
        ),
        (
            "3.2.4.1 Visual aspects of GCC 2.7.2.3, asked by IP 8.8.8.8.",
            "3.2.4.1 Visual aspects of GCC 2.7.2.3, asked by IP #.",
        ),
        ("| `app_tokens_redacted_total` | `redaction` |", "| `app_tokens_redacted_total` | `redaction` |"),
        ("[2001:db8::5]:443", "[#]:443"),
        ("2024 4111 1111 1111 1111 12/27", "2024 # 12/27"),
        ("4111 1111 1111 1111 123", "# 123"),
        ("card no.4111111111111111, not 3.4111111111111111", "card no.#, not 3.4111111111111111"),
        ("Card No.4111 1111 1111 1111.", "Card No.#."),
        ("SSN no.536-22-1234, Steuer-Nr.86 095 742 719, v.536-22-1234", "SSN no.#, Steuer-Nr.#, v.536-22-1234"),
        ("DE12 DE89 3704 0044 0532 0130 00 BIC", "DE12 # BIC"),
        ("DE89 3704 0044 0532 0130 00", "#"),
        ("0151 23456789 1234 5", "# 1234 5"),
        ("030 12345678 12345", "# 12345"),
        ("a@b.com_c@d.com", "##"),
    ],
)
def test_takes_out_the_secret_only(text: str, left: str) -> None:
    """What stands around a secret (a name, a port, a card's expiry) is kept, and hides none."""
    assert TOKEN.sub("#", Redactor().redact(text)) == left


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ann@example.org", "Ann@Example.org"),
        ("4111 1111 1111 1111", "4111-1111-1111-1111"),
        ("DE89 3704 0044 0532 0130 00", "DE89370400440532013000"),
        ("+1-415-555-2671", "+1 (415) 555 2671"),
        ("2001:DB8::1", "2001:db8::1"),
    ],
)
def test_same_value_same_token(one: str, other: str) -> None:
    """A claim of the answer still matches its context when both write a secret in their own way."""
    assert Redactor().redact(one) == Redactor().redact(other)


def test_tokens_depend_on_salt_and_value() -> None:
    """Without the salt a token cannot be computed; different values have different tokens."""
    text = "ann@example.org bob@example.org"
    one, two = TOKEN.findall(Redactor(b"one").redact(text)), TOKEN.findall(Redactor(b"two").redact(text))
    assert len({*one, *two}) == 4


def test_long_salt_counts_in_full() -> None:
    """A salt longer than a hash key is not cut."""
    assert Redactor(b"x" * 100 + b"1").redact("a@b.org") != Redactor(b"x" * 100 + b"2").redact("a@b.org")


PIECES = [text for rows in EXAMPLES.values() for text, _ in rows[:6]] + [
    *("password=", 'secret: "', "Bearer ", "phone ", "://a:", "@", ".com", "sk-", "+", "0", "00", "(", ")", " ", "-"),
    *("[", "]", ":", "_", "/", "1", "0123 ", "4111 ", "DE89", "a", "x@y.com_", "-----", "'", '"', "\n", "::", "\\"),
    *TOKENS.split(),
    *("\u2011", "\u202f", "\u2013", "415\u2011555\u20112671", "4111\u202f1111\u202f1111\u202f1111"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_idempotent_on_secrets(text: str) -> None:
    """Redacting what is redacted changes nothing, however secrets are glued together."""
    once = Redactor().redact(text)
    assert Redactor().redact_counted(once) == (once, Counter())


@given(st.text())
def test_idempotent_on_any_text(text: str) -> None:
    """Redacting what is redacted changes nothing, for any text."""
    once = Redactor().redact(text)
    assert Redactor().redact(once) == once


@pytest.mark.parametrize(
    "unit",
    [
        *("a", "a@", "@", "a@a.", "a'", "eyJ", "eyJaaaaaaaaaa.aaaa.", "sk-", "-----BEGIN PRIVATE KEY-----", "1", "4 "),
        *("4111 ", "DE89 ", "a:", "1.", ":", "+1 ", "0123 ", "01 ", "(", "phone 1 ", "secret", 'secret="aaaa', "://a:"),
        *("bearer ", "a@b.com_", "0123 4567 8901 2", "-", " ", "[KEY:", "password: a1"),
        *(
            "-----BEGIN PRIVATE KEY-----" + " " * 99,
            "-----BEGIN PRIVATE KEY-----\\nAAAAAAAAAAAAAAAA",
            "-a",
            "\\n",
            "gh",
        ),
        *("sqlplus a/", "conn a/a", "@//", "a/b@c:1521", "a@:1521"),
        *("bearer aaaaaaaaaaaa=", "github_pat_", "eyJaaaaaaaa", "a'a", "%"),
        *("password is ", "pass: a1", "otp 1", "pin: 12-", "пароль ", "1234 is a ", "credentials: a/", "--password "),
        *("a at b dot ", "a [at] ", "@a [", "a @a.", "a dot ", "[at] b dot c", "@ a ", "a_at_b_dot_", "密码1"),
        *("acme_", "a_sk_", "0a1b2c3d-", "a_live_1", "1-", "123-", "DE1", "A1"),
        *("phone 10 000 000 a", "phone 600 123 456 ", "\u2011", "1\u20131", "4111\u202f"),
    ],
)
@pytest.mark.uncounted
def test_hostile_text_finishes(unit: str) -> None:
    """200 kB of what each pattern begins with is read in seconds: no pattern backtracks over all of it."""
    text = unit * (200_000 // len(unit))
    start = time.process_time()
    assert Redactor().redact(text)
    assert time.process_time() - start < cpu_limit(20.0)


def test_glued_secrets_come_off_one_a_round() -> None:
    """Secrets without a gap hide the next one's beginning: eight rounds take eight, and no text costs more."""
    glued = "+493012345678" * 20
    assert Redactor().redact_counted(glued)[1] == Counter({SensitiveKind.PHONE: 8})


def test_kinds_cannot_be_taken_for_secrets() -> None:
    """A token beside every sign that introduces a secret stays a token."""
    for kind in SensitiveKind:
        text = f"password=[{kind}:123456] Bearer [{kind}:abcdef] phone [{kind}:123456]: x {kind}:1"
        assert Redactor().redact(text) == text


def test_every_kind_has_a_rule() -> None:
    """Every label value can occur; rules of the configuration have a kind of their own."""
    assert {rule.kind for rule in RULES} == set(SensitiveKind) - {SensitiveKind.CUSTOM}
