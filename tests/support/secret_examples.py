"""Secrets to be taken out: examples for every alternative of every rule of `redaction`, and cases by class.

Each example is a text and the part of it that is the secret. Keys are joined from pieces, so that scanners of this
repository find none; numbers with a checksum get it here. In a row of tests/data/redaction_cases.txt and of the table
of vendors, a part `<an36>` stands for 36 characters of an alphabet: `an` letters and digits, `low` lower-case letters
and digits, `up` capitals and digits, `hex`, `b64`, `url` (with `_` and `-`), `dig`.
"""

import random
import re
import string
from pathlib import Path

from ragwatch.redaction.numbers import IBAN_LENGTHS
from ragwatch.redaction.redactor import Redactor
from ragwatch.redaction.rule import table

BODY = "MIIEpAIBAAKCAQEA7x"

Example = tuple[str, str]


def _alone(*texts: str) -> list[Example]:
    """Texts that are secrets from end to end."""
    return [(text, text) for text in texts]


def _after(secret_part: str, *introductions: str) -> list[Example]:
    """The same secret behind each introduction."""
    return [(f"{introduction}{secret_part}", secret_part) for introduction in introductions]


def _luhn(digits: str) -> str:
    """The number with its check digit behind it."""
    weighed = [int(digit) * (2 - index % 2) for index, digit in enumerate(reversed(digits))]
    return digits + str(-sum(number // 10 + number % 10 for number in weighed) % 10)


def _iban(country: str, length: int) -> str:
    """An account of a country: digits only, with the check digits that ISO 13616 asks for."""
    account = "".join(str((index * 7 + 3) % 10) for index in range(length - 4))
    number = int("".join(str(int(sign, 36)) for sign in f"{account}{country}00"))
    return f"{country}{98 - number % 97:02}{account}"


def _pem(label: str, body: str = BODY) -> str:
    return f"-----BEGIN {label}-----\n{body}\n-----END {label}-----"


_NAMES = (
    *("api_key", "api-key", "apikey", "secret", "access_key", "access-key", "accesskey"),
    *("password", "passwd", "pwd"),
)
_TOKENS = tuple(f"{kind}{sign}token" for kind in ("auth", "access", "refresh") for sign in ("_", "-", ""))
_CARDS = (
    *(_luhn("4" + "1234567890123456789"[: length - 2]) for length in (13, 16, 19)),
    *(_luhn(f"{first}12345678901234"[:15]) for first in ("51", "55", "22", "27")),
    *(_luhn(f"{first}1234567890123"[:14]) for first in ("34", "37")),
    *(_luhn(f"{first}1234567890123"[:13]) for first in ("300", "305", "36", "38", "39")),
    *(
        _luhn(f"{first}12345678901234567"[:15])
        for first in ("35", "6011", "644", "649", "65", "62", "50", "56", "59", "67")
    ),
)
_GROUPED = (
    "4111{0}1111{0}1111{0}1111",
    "3782{0}822463{0}10005",
    "6304{0}0000{0}0000{0}0000{0}000",
    "3056{0}930902{0}5904",
)
_WORLD = (
    *("+49 (0)30 1234567", "+1-415-555-2671", "+4915112345678"),
    *("0049 30 1234567", "0049(3(0(1(2(3", "001 415 555 2671"),
)
_DIALLED = ("phone", "tel", "telephone", "telefon", "mobile", "mobil", "cell", "fax", "hotline", "whatsapp", "call")
_LINKS = ("number", "no", "nr", "is", "us", "at", "me", "on")

EXAMPLES: dict[str, list[Example]] = {
    "private-key": _alone(
        *map(
            _pem, ("PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY")
        ),
        _pem("PGP PRIVATE KEY BLOCK"),
        _pem("RSA PRIVATE KEY", f"Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,0123\n\n{BODY}"),
        _pem("RSA PRIVATE KEY", "MII="),
        _pem("RSA PRIVATE KEY").replace("\n", "\\n"),
        f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n{BODY}",  # cut off
        f"-----BEGIN RSA PRIVATE KEY-----\\r\\n{BODY}",
        f"-----BEGIN RSA PRIVATE KEY-----\\r{BODY}",
    ),
    "json-web-token": _alone(
        "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl-_1",
        "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ",
        "eyJ" + "hbGciOiJub25lIn0..c2lnbmF0dXJl",
    ),
    "bearer-token": [
        *_after("abc.def-ghi123456", "Authorization: Bearer ", "bearer ", "BEARER\t"),
        *_after("dXNlcjpwYXNzd29yZA==", "Authorization: Basic ", "basic  "),
    ],
    "url-password": [("postgres://bob:s3cret@db.local/x", "s3cret"), ("redis://:s3cret@cache", "s3cret")],
    "assigned-secret": [
        *(pair for name in (*_NAMES, *_TOKENS) for pair in _after("hunter2", f"{name}=", f"{name.upper()}: ")),
        *_after("hunter2", *(f"password {sign} " for sign in (":", "=", ":=", "=>"))),
        *_after("hunter2", "secret_key_base=", "password=\\"[:-1], '"password"='),
        ('password="correct horse battery"', "correct horse battery"),
        ("password='correct horse battery'", "correct horse battery"),
        ('{"password": "correct horse battery"}', "correct horse battery"),
        ('{\\"api_key\\": \\"abcd efgh\\"}', "abcd efgh"),
    ],
    "email": _alone("ann@example.org", "ann.o'neil+news@mail.example.co.uk", "jürgen@bücher.example", "a@b.co"),
    "iban": _alone(
        *(_iban(country, length) for country, length in IBAN_LENGTHS.items()),
        *("DE89 3704 0044 0532 0130 00", "DE89-3704-0044-0532-0130-00", "AT61 1904 3002 3457 3201"),
        *("NO93 8601 1117 947", "GB29NWBK60161331926819", "de89370400440532013000"),
    ),
    "card": _alone(*_CARDS, *(card.format(sign) for card in _GROUPED for sign in (" ", "-", "\xa0"))),
    "ipv6": _alone("2001:db8::1", "fe80::1", "::ffff:192.0.2.1", "2001:0db8:85a3:0000:0000:8a2e:0370:7334"),
    "ipv4": _alone(
        *("10.0.0.12", "192.168.255.1", "250.255.253.254", "200.249.211.220", "100.199.111.120", "10.99.20.30"),
        "1.2.3.4",
    ),
    "telephone": _alone(
        *_WORLD,
        *("(415) 555-2671", "(415)-555-2671", "(415)555-2671", "1 (415) 555-2671", "1 (415)555-2671"),
        *("415-555-2671", "617/555-2671"),
        *("1-800-555-0199", "415.555.2671", "1.415.555.2671", "030 1234567", "(030) 1234567", "0151/23456789"),
        *("020 7946 0958", "030 12345 678", "06 12 34 56 78", "06.12.34.56.78", "06-12-34-56-78"),
    ),
    "announced-telephone": [
        *(pair for word in _DIALLED for pair in _after("4155552671", f"{word}: ", f"{word.title()} ")),
        *(pair for word in _LINKS for pair in _after("4155552671", f"Phone {word} ")),
        *_after("(555) 0123 45", "fax: "),
        *_after("5550123", 'call us at "'),
    ],
}
"""By name of the rule."""


TOKEN = re.compile(r"\[[A-Z_]+:[0-9a-f]{6}\]")
"""What takes the place of a secret."""

_ALPHABETS = {
    "an": string.ascii_letters + string.digits,
    "low": string.ascii_lowercase + string.digits,
    "up": string.ascii_uppercase + "234567",
    "hex": "0123456789abcdef",
    "b64": string.ascii_letters + string.digits + "+/",
    "url": string.ascii_letters + string.digits + "_-",
    "dig": "123456789",
}
_PART = re.compile(r"<(an|low|up|hex|b64|url|dig)(\d+)>")
_UUID = "<hex8>-<hex4>-4<hex3>-a<hex3>-<hex12>"
_FILE = Path(__file__).parents[1] / "data" / "redaction_cases.txt"
ROWS: dict[str, str] = {row["name"]: row["example"] for row in table("vendors")["keys"]}
"""Made-up keys by the name of the rule."""


def cases(name: str) -> list[str]:
    """The rows of a class."""
    classes = dict(part.split("\n", 1) for part in _FILE.read_text(encoding="utf-8").split("\n## ")[1:])
    rows = (row for row in classes[name].splitlines() if row and not row.startswith("#"))
    return [row.replace(r"\u200b", "\u200b").replace(r"\u00ad", "\u00ad") for row in rows]


def made(row: str, seed: str = "") -> str:
    """A row with a made-up body in place of each of its parts."""
    row = row.replace("<uuid>", _UUID)
    rng = random.Random(f"{row}{seed}")
    return _PART.sub(lambda part: "".join(rng.choices(_ALPHABETS[part[1]], k=int(part[2]))), row)


def examples(name: str) -> list[str]:
    """The keys in the row of a rule."""
    row = ROWS[name]
    return [made(row)] if " " in row and not row.split()[0].count("<") else made(row).split()


def marked(row: str) -> tuple[str, str, str]:
    """What stands before the secret between « and », the secret, and what stands behind it."""
    before, _, rest = made(row).partition("«")
    secret, _, behind = rest.partition("»")
    return before, secret, behind


def kinds(text: str) -> list[str]:
    """Kinds of what is taken from a text."""
    return [one.kind.value for one in Redactor().findings(text)]
