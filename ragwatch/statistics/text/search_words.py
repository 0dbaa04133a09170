"""Words of texts as a search compares them, and the phrases that a search asks for.

Stored texts and searches are divided by the same rules, so that stores index words of letters and digits alone: what a
person types is never read as an expression of a search engine.
"""

import re
import unicodedata
from itertools import islice
from typing import Final

MAX_CHARS: Final = 32_000  # of a text; words beyond are not found
MAX_WORDS: Final = 4_000
MAX_WORD_CHARS: Final = 64
MAX_ASKED: Final = 16  # words and phrases of one search
MAX_EXAMINED: Final = 20_000  # newest answers that have the words, of which a store with such a limit compares the rest
# Scripts that are written without spaces are divided into characters: Thai to Khmer, kana, Chinese characters.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_QUOTED = re.compile(r'"([^"]*)"?|([^\s"]+)')


def words_of(text: str) -> list[str]:
    """Return the words of a text in order, without case and accents."""
    plain = text[:MAX_CHARS]
    if not plain.isascii():
        decomposed = unicodedata.normalize("NFKD", plain)
        plain = "".join(one for one in decomposed if not unicodedata.combining(one))
    matches = _WORD.findall(plain.casefold())  # the scripts without spaces have symbols, and vowel signs (M), too
    words = (match for match in matches if match.isalnum() or unicodedata.category(match[0]).startswith("M"))
    return [word[:MAX_WORD_CHARS] for word in islice(words, MAX_WORDS)]


def phrases_of(search: str) -> tuple[tuple[str, ...], ...]:
    """Return the phrases that a search asks for; a text must contain all of them, each as consecutive words.

    A quoted part is one phrase; so is a word that consists of several, such as `doc-42`.
    """
    parts = (match[1] if match[1] is not None else match[2] for match in _QUOTED.finditer(search[:MAX_CHARS]))
    phrases = (tuple(words_of(part)) for part in parts)
    return tuple(dict.fromkeys(phrase for phrase in phrases if phrase))
