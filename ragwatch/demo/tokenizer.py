"""Splits English text and identifiers into words, stems and sentences, and hashes texts, for the demo."""

import re
from functools import lru_cache
from hashlib import blake2b

_WORD = re.compile(r"[A-Za-z0-9]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_IDENTIFIER = re.compile(r"[A-Za-z]\w*(?:\.[A-Za-z]\w*)+|[A-Za-z]\w*(?=\(\))")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'`(*])")
_STOP = frozenset(
    """a about all am an and any are as at be been but by can could did do does doing for from get got had has have how
    i if in into is it its just let like make may me might mine must my need needs no not of on or our please shall
    should so some tell than that the their them then there these they this those to two us use used uses using want
    was we were what when where which while who whom why will with would you your python""".split()  # noqa: SIM905  a list to read
)
_ENDINGS = ("ations", "ation", "ings", "ing", "ied", "ies", "ed", "es", "s", "ly", "e")


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Removes a common English ending from a word, in lower case; keeps at least three letters.

    >>> [stem(word) for word in ("Removes", "removed", "removing", "remove", "is")]
    ['remov', 'remov', 'remov', 'remov', 'is']
    """
    low = word.lower()
    for ending in _ENDINGS:
        if low.endswith(ending) and len(low) - len(ending) >= 3:
            low = low.removesuffix(ending)
            break
    return low[:-1] if len(low) > 4 and low[-1] == low[-2] else low


def words(text: str) -> list[str]:
    """Splits text into runs of letters and digits; camel case yields the whole word and its parts.

    >>> words("collections.OrderedDict")
    ['collections', 'OrderedDict', 'Ordered', 'Dict']
    """
    result: list[str] = []
    for match in _WORD.finditer(text):
        whole = match.group()
        parts = _CAMEL.split(whole)
        result.append(whole)
        if len(parts) > 1:
            result.extend(parts)
    return result


def content(text: str) -> list[str]:
    """Stems of all words except stop words, without duplicates, in order of appearance.

    >>> content("How do I remove the leading whitespace?")
    ['remov', 'lead', 'whitespac']
    """
    return list(dict.fromkeys(stem(word) for word in words(text) if word.lower() not in _STOP))


def identifiers(text: str) -> list[str]:
    """Finds dotted names and names of calls.

    >>> identifiers("How do textwrap.dedent and len() differ?")
    ['textwrap.dedent', 'len']
    """
    return _IDENTIFIER.findall(text)


def sentences(text: str) -> list[str]:
    """Splits a paragraph into sentences; dots inside names and numbers do not end one.

    >>> sentences("See os.path. It joins 2.5 parts.")
    ['See os.path.', 'It joins 2.5 parts.']
    """
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


def stable_hash(text: str) -> int:
    """Hashes a text to a number below 2**64, the same in every process."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
