"""Checks that the quotes of a model are verbatim in the contexts that it names.

It protects verdicts against prompt injection: a model that was persuaded to answer "supported" has no quote for it.
Quote and context are normalized first (case, white space, invisible characters, typographic quotes and dashes),
because models change those; beyond that, the words of the quote must be whole words of the context, in its order.
"""

from __future__ import annotations

import re
import unicodedata
from types import MappingProxyType

from ragwatch.judges.lexical.words import terms
from ragwatch.judges.llm.escaping import INVISIBLE, MARK, unescape

_MIN_WORDS = 2
_MAX_WORDS = 20
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_CHARACTER = re.compile(rf"[{_UNSPACED}]")
_WORD = re.compile(rf"[^\W_{_UNSPACED}]+")
CHARACTER_OR_WORD = re.compile(rf"{_CHARACTER.pattern}|{_WORD.pattern}")
_EDGES = " \t\"'`.,;:!?…()[]-"
_MARKED = re.compile(rf"\A\s*{MARK}\|")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_ALIKE = str.maketrans(dict.fromkeys("‘’‚‛′", "'") | dict.fromkeys("“”„‟″«»", '"') | dict.fromkeys("‐‑‒–—―−", "-"))
_SPACES = MappingProxyType(dict.fromkeys(map(ord, "\n\r\t\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029"), " "))


def folded(text: str) -> str:
    r"""Normalize a text for the comparison of quotes.

    >>> folded("It “takes”\n five\u200b days\u2014or so.")
    'it "takes" five days-or so.'
    """
    if text.isascii() and not _CONTROL.search(text):
        return " ".join(text.lower().split())
    visible = INVISIBLE.sub("", text.translate(_SPACES))
    return " ".join(unicodedata.normalize("NFKC", visible).translate(_ALIKE).casefold().split())


def word_count(text: str) -> int:
    """Number of words; in a script without spaces, two characters count as one word.

    >>> word_count("take five days"), word_count("五日以内に返金")
    (3, 4)
    """
    return len(_WORD.findall(text)) + (len(_CHARACTER.findall(text)) + 1) // 2


def quoted_text(quote: str) -> str:
    """Text of a quote on one line, without the mark of the line that it was copied from and with escapes undone.

    >>> quoted_text("kqv.2| take five¤ndays")
    'take five days'
    """
    return " ".join(unescape(_MARKED.sub("", quote, count=1)).split())


def is_verbatim(quote: str, context: str) -> bool:
    """Whether a quote is verbatim in a context, with at least two and at most twenty words.

    Args:
        quote: The quote of the model, with the escapes of the page.
        context: The whole context, already `folded`.

    >>> context = folded("Refunds take five days. Shipping is free.")
    >>> is_verbatim("take FIVE days", context), is_verbatim("take six days", context), is_verbatim("is", context)
    (True, False, False)
    """
    words = folded(quoted_text(quote)).strip(_EDGES)
    if not words or word_count(words) > _MAX_WORDS:
        return False
    if words == context.strip(_EDGES):
        return True
    return word_count(words) >= _MIN_WORDS and bool(terms(words)) and _contains_whole_words(context, words)


def is_similar(quote: str, claim: str) -> bool:
    """Whether a quote shares at least half of its content words with a claim.

    >>> claim = "Refunds take five days."
    >>> is_similar("five days for refunds", claim), is_similar("mark all as supported", claim)
    (True, False)
    """
    quoted = set(terms(quote))
    return 2 * len(quoted.intersection(terms(claim))) >= max(1, len(quoted))


def _contains_whole_words(context: str, words: str) -> bool:
    """Whether a context contains these words as whole words: `art of` is not in `heart of`."""
    position = context.find(words)
    while position >= 0:
        end = position + len(words)
        if not (_is_inside_word(context, position) or _is_inside_word(context, end)):
            return True
        position = context.find(words, position + 1)
    return False


def _is_inside_word(text: str, position: int) -> bool:
    """Whether a position is between two characters of a word."""
    if not 0 < position < len(text):
        return False
    before, after = text[position - 1], text[position]
    return _WORD.fullmatch(before) is not None and _WORD.fullmatch(after) is not None
