"""Reads the key of a value in metadata as the words that would introduce the value in a text."""

from __future__ import annotations

import re
from functools import lru_cache

from ragwatch.core.redaction.person_ids import NAMES_OF_NUMBERS

MAX_PATH_CHARS = 60
_BETWEEN_WORDS = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")
_PERSONS = "|".join(map(re.escape, sorted(NAMES_OF_NUMBERS)))
_NAMED = re.compile(  # at the end: `phone_verified_at` and `call_id` are no telephone numbers
    r" (?:(?P<phone>(?:tele|cell|mobile|home|work)?phones?|tel|telefono?|t[e\xe9]l[e\xe9]phone|tel[e\xe9]fono|t\xe9l"
    r"|mobiles?|mobil|m[o\xf3]vil|cell|cellular|cellulare|celular|fax|handy|hotline|landline|whatsapp|msisdn)"
    rf"|(?P<person>{_PERSONS})(?: ?id)?)"
    r"(?: ?(?:number|numero|nummer|num|no|nr|value|home|work|private|office|main|primary|raw)){0,3}(?: ?\d{1,2})?\Z"
)


@lru_cache(maxsize=1024)
def introduction(path: str) -> str:
    """Returns the words that introduce a number of a telephone or of a person; empty if the key names neither.

    Args:
        path: The last `MAX_PATH_CHARS` characters of the keys that lead to the value.

    >>> [introduction(path) for path in ("homePhone", "user.phone_number_2", "customer_ssn", "phone_model", "call_id")]
    ['phone', 'phone', 'ssn', '', '']
    """
    named = _NAMED.search(" " + " ".join(_BETWEEN_WORDS.split(path)).lower().strip())
    if named is None:
        return ""
    return named["person"] or "phone"
