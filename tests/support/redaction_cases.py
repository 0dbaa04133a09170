"""Cases of redaction by class, and made-up keys of vendors: put together at run time, so that scanners find none.

A part `<an36>` of a row stands for 36 characters of an alphabet: `an` letters and digits, `low` lower-case letters and
digits, `up` capitals and digits, `hex`, `b64`, `url` (with `_` and `-`), `dig`.
"""

from __future__ import annotations

import random
import re
import string
from pathlib import Path

from ragwatch.redaction.redactor import Redactor
from ragwatch.redaction.rule import table

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
