"""Words: how the demo's retriever and answerer cut text. English and identifiers, nothing clever."""

from __future__ import annotations

import re
from functools import lru_cache

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
    """The word without a common English ending, lower case; at least three letters stay.

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
    """Every run of letters and digits, camel case taken apart as well as whole.

    >>> words("collections.OrderedDict")
    ['collections', 'OrderedDict', 'Ordered', 'Dict']
    """
    found: list[str] = []
    for match in _WORD.finditer(text):
        whole = match.group()
        parts = _CAMEL.split(whole)
        found.append(whole)
        if len(parts) > 1:
            found.extend(parts)
    return found


def content(text: str) -> list[str]:
    """Stems of the words that carry meaning, each once, in order of appearance.

    >>> content("How do I remove the leading whitespace?")
    ['remov', 'lead', 'whitespac']
    """
    return list(dict.fromkeys(stem(word) for word in words(text) if word.lower() not in _STOP))


def identifiers(text: str) -> list[str]:
    """Dotted and called names as they stand in the text.

    >>> identifiers("How do textwrap.dedent and len() differ?")
    ['textwrap.dedent', 'len']
    """
    return _IDENTIFIER.findall(text)


def sentences(text: str) -> list[str]:
    """Sentences of a paragraph; dots inside names and numbers end nothing.

    >>> sentences("See os.path. It joins 2.5 parts.")
    ['See os.path.', 'It joins 2.5 parts.']
    """
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]
