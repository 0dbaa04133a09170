"""Redaction of samples: every text of one, and of its metadata also what its keys name, keys and numbers."""

import re
from collections import Counter

import pytest

from ragwatch.model.sample import Context, RelevantContext, Role, Sample, Turn
from ragwatch.redaction.redactor import Redactor
from ragwatch.redaction.rule import SensitiveKind


def test_a_sample_keeps_its_ids() -> None:
    """Every text and nested metadata are redacted alike and counted; ids, numbers, roles and times stay."""
    mail = "ann@example.org"
    deep: object = mail
    for _ in range(70):
        deep = [deep]
    trace = {"trace_id": "4111111111111111", "user": {"mail": [mail, 3, None]}, "deep": deep}
    sample = Sample(mail, f"who is {mail}?", (Context("call +1-415-555-2671", mail, 0.5),), mail, 7.0, "search", trace)
    sample = sample._replace(
        history=(Turn(Role.USER, f"I am {mail}"), Turn(Role.ASSISTANT, f"Hello {mail}!")),
        relevant=(RelevantContext(mail), RelevantContext(None, f"ask {mail}", 2)),
    )
    clean, counts = Redactor().redact_sample(sample)
    token = Redactor().redact(mail)
    assert (clean.id, clean.at, clean.route, clean.trace_id) == (mail, 7.0, "search", "4111111111111111")
    assert (clean.question, clean.answer, clean.reference) == (f"who is {token}?", token, None)
    assert clean.contexts == (Context(Redactor().redact("call +1-415-555-2671"), mail, 0.5),)
    assert clean.history == (Turn(Role.USER, f"I am {token}"), Turn(Role.ASSISTANT, f"Hello {token}!"))
    assert clean.relevant == (RelevantContext(mail), RelevantContext(None, f"ask {token}", 2))
    assert clean.metadata["user"] == {"mail": [token, 3, None]}
    assert "ann" not in str(clean.metadata["deep"])
    assert counts == Counter({SensitiveKind.EMAIL: 6, SensitiveKind.PHONE: 1})
    by_path, counts = Redactor().redact_sample(Sample("1", None, (), "fine", route=f"/users/{mail}/ask"))
    assert (by_path.route, by_path.question, counts.total()) == (f"/users/{token}/ask", None, 1)


@pytest.mark.parametrize(
    ("metadata", "kind"),
    [
        ({"password": "hunter2"}, SensitiveKind.CREDENTIAL),
        ({"request": {"headers": {"X-Api-Key": "abcdefgh"}}}, SensitiveKind.CREDENTIAL),
        ({"cookie": ["session=abcdefgh"]}, SensitiveKind.CREDENTIAL),
        ({"Cookie": "session=abcdefgh; from=10.20.30.40"}, SensitiveKind.CREDENTIAL),
        ({"cookies": {"session_id": "abcdefgh"}}, SensitiveKind.CREDENTIAL),
        ({"db_password": 41114111}, SensitiveKind.CREDENTIAL),
        ({"authorization": "Basic dXNlcjpwYXNz"}, SensitiveKind.KEY),
        ({"opened": {"ann@example.org": 3}}, SensitiveKind.EMAIL),
        ({"paid_with": 4111111111111111}, SensitiveKind.CARD),
        ({"trace_id": {"user": "ann@example.org"}}, SensitiveKind.EMAIL),
    ],
)
def test_secrets_by_key_in_keys_and_in_numbers(metadata: dict[str, object], kind: SensitiveKind) -> None:
    """Metadata is logged as it is at hand: under its name, as a key or as a number a secret is one as well."""
    clean, counts = Redactor().redact_sample(Sample("1", None, (), "fine", metadata=metadata))
    assert counts == Counter({kind: 1})
    assert not re.search("hunter2|abcdefgh|dXNlcjpwYXNz|ann@|4111", str(clean.metadata))
    assert Redactor().redact_sample(clean) == (clean, Counter())


def test_what_only_stands_beside_a_secret_stays() -> None:
    """Numbers that are no card, tokens that are counted, flags."""
    plain = {
        "prompt_tokens": 812,
        "at_ms": 1794010112345,
        "password": None,
        "pwd": "no",
        "secret": True,
        "private_key": "********",
        "accessToken": "[REDACTED]",
        "api_key_id": "production",
        "passwordExpiresAt": "2026-11-30",
        "access_tokens": 40960,
        "secretary": "Smith",
        "authorization_status": "granted",
        "author": "Smith",
        "max_tokens": 4096,
        "token_count": "4096",
        "session_id": "4f2a9c31",
        "ticks": 638000000000000007,
        "row": 4000000000000000006,
        "trace_id": 4111111111111111,
        "huge": 10**5000,
    }
    assert Redactor().redact_sample(Sample("1", None, (), "fine", metadata=plain))[0].metadata == plain


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ({"phone": "4155552671"}, "phone 4155552671"),
        ({"mobile": 4155552671}, "mobile 4155552671"),
        ({"user": {"homePhone": "4155552671"}}, "phone 4155552671"),
        ({"user.phone_number_2": "4155552671"}, "phone 4155552671"),
        ({"phone": {"work": ["4155552671"]}}, "phone 4155552671"),
        ({"phones": [4155552671]}, "phone 4155552671"),
        ({"ssn": "536221234"}, "SSN 536221234"),
        ({"customerSSN": 536221234}, "SSN 536221234"),
        ({"social-security-number": "536 22 1234"}, "SSN 536 22 1234"),
        ({"steuer_id_nr": 86095742719}, "Steuer-ID 86095742719"),
        ({"passport_no": "L898902C3"}, "passport L898902C3"),
    ],
)
def test_numbers_are_introduced_by_their_key(metadata: dict[str, object], text: str) -> None:
    """A number that is taken behind a word is taken under a key with that name, and becomes the same token."""
    clean, counts = Redactor().redact_sample(Sample("1", None, (), "fine", metadata=metadata))
    value: object = clean.metadata
    while isinstance(value, dict | list):
        (value,) = value.values() if isinstance(value, dict) else value
    token = re.search(r"\[.*\]", Redactor().redact(text))
    assert token
    assert value == token[0]
    assert counts.total() == 1
    assert Redactor().redact_sample(clean) == (clean, Counter())


def test_other_numbers_stay_numbers() -> None:
    """Keys that only begin with such a name, or name what stands near persons; values that are no such number."""
    plain = {
        "phone_verified_at": 1794010112,
        "phoneModel": "12345678",
        "phone": {"id": 12345678, "extension": 4711, "verified": True, "share": 0.5},
        "call_id": 4155552671,
        "text_bytes": 41555526,
        "fax": None,
        "mobile": 12,
        "handy": "12 345 678 EUR",
        "landline": "none",
        "patient_created": 1794010112,
        "id_number": 536221234,
        "ssn": 12345678,
        "tel": -4155552671,
    }
    clean, counts = Redactor().redact_sample(Sample("1", None, (), "fine", metadata=plain))
    assert (clean.metadata, counts) == (plain, Counter())


def test_text_under_such_a_key_keeps_what_is_no_number() -> None:
    """Only the numbers are replaced, and what else is personal."""
    metadata = {"phone": "4155552671 (Ann, ann@example.org)"}
    clean, counts = Redactor().redact_sample(Sample("1", None, (), "fine", metadata=metadata))
    assert re.sub(r"\[\w+:\w{6}\]", "#", clean.metadata["phone"]) == "# (Ann, #)"
    assert counts == Counter({SensitiveKind.PHONE: 1, SensitiveKind.EMAIL: 1})


def test_no_value_is_lost_behind_a_token() -> None:
    """Two keys that are the same secret stay two."""
    metadata = {"opened": {"ann@example.org": 3, "Ann@example.org": 4}}
    clean, _ = Redactor().redact_sample(Sample("1", None, (), "fine", metadata=metadata))
    assert sorted(clean.metadata["opened"].values()) == [3, 4]


def test_x23_long_keys_and_values_take_linear_time() -> None:
    """Whoever writes the log writes its keys: none may be able to hold intake up."""
    metadata = {"secret" * 20_000: 1, "_expires" * 20_000: 1, "password": "!" * 120_000 + "x", "api_" * 20_000: "x"}
    metadata |= {"phone" + "1" * 120_000: "4155552671", "phone no" * 20_000 + "!": 4155552671}
    clean, _ = Redactor().redact_sample(Sample("1", None, (), "fine", metadata=metadata))
    assert len(clean.metadata) == len(metadata)


@pytest.mark.parametrize("key", ["trace_id", "span_id", "answer_span_id"])
def test_ids_of_traces_stay(key: str) -> None:
    """An id that has digits only looks like the number of a card; scores are sent back to it. `ids` redacts it."""
    sample = Sample("r1", None, (), "fine", metadata={key: "4111111111111111"})
    assert Redactor().redact_sample(sample)[0].metadata[key] == "4111111111111111"
    assert "4111" not in Redactor(ids=True).redact_sample(sample)[0].metadata[key]
