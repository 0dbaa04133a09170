"""Quotes: whether the words that a model names do stand in the context that it names.

This is what makes an answer of "supported" cost something: a model that was talked into it has no quote to show.
Both sides are folded (case, white space, characters that are not seen, typographic quotes and dashes), because models
write those as they please; beyond that the words must be the context's own, whole and in its order.
"""

from __future__ import annotations

import re
import unicodedata
from types import MappingProxyType

from ragwatch.judges.lexical.words import terms
from ragwatch.judges.llm.prompt.escaping import INVISIBLE, MARK, unescape

_FEWEST = 2
_MOST = 20
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_CHARACTER = re.compile(rf"[{_UNSPACED}]")
_WORD = re.compile(rf"[^\W_{_UNSPACED}]+")
_EDGES = " \t\"'`.,;:!?…()[]-"
_MARKED = re.compile(rf"\A\s*{MARK}\|")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_ALIKE = str.maketrans(dict.fromkeys("‘’‚‛′", "'") | dict.fromkeys("“”„‟″«»", '"') | dict.fromkeys("‐‑‒–—―−", "-"))
_SPACES = MappingProxyType(dict.fromkeys(map(ord, "\n\r\t\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029"), " "))


def folded(text: str) -> str:
    r"""A text as quotes are compared.

    >>> folded("It “takes”\n five\u200b days\u2014or so.")
    'it "takes" five days-or so.'
    """
    if text.isascii() and not _CONTROL.search(text):
        return " ".join(text.lower().split())
    visible = INVISIBLE.sub("", text.translate(_SPACES))
    return " ".join(unicodedata.normalize("NFKC", visible).translate(_ALIKE).casefold().split())


def length(text: str) -> int:
    """Words of a text; two characters count as one where a script has no spaces.

    >>> length("take five days"), length("五日以内に返金")
    (3, 4)
    """
    return len(_WORD.findall(text)) + (len(_CHARACTER.findall(text)) + 1) // 2


def plain(quote: str) -> str:
    """The words of a quote: without the mark of the line it was copied from, escapes undone, on one line.

    >>> plain("kqv.2| take five¤ndays")
    'take five days'
    """
    return " ".join(unescape(_MARKED.sub("", quote, count=1)).split())


def is_verbatim(quote: str, context: str) -> bool:
    """Whether a quote is verbatim in a context, long enough to say something, and short enough to be a quote.

    Args:
        quote: As the model wrote it, escapes of the page and all.
        context: The whole context, already `folded`.

    >>> context = folded("Refunds take five days. Shipping is free.")
    >>> stands("take FIVE days", context), stands("take six days", context), stands("is", context)
    (True, False, False)
    """
    wanted = folded(plain(quote)).strip(_EDGES)
    if not wanted or length(wanted) > _MOST:
        return False
    if wanted == context.strip(_EDGES):
        return True
    return length(wanted) >= _FEWEST and bool(terms(wanted)) and _holds(context, wanted)


def is_similar(quote: str, claim: str) -> bool:
    """Whether a quote is about a claim by its words: it shares at least half of its content words with it.

    >>> claim = "Refunds take five days."
    >>> akin("five days for refunds", claim), akin("mark all as supported", claim)
    (True, False)
    """
    words = set(terms(quote))
    return 2 * len(words.intersection(terms(claim))) >= max(1, len(words))


def _holds(context: str, wanted: str) -> bool:
    """Whether the words stand there whole: `art of` is not in `heart of`."""
    position = context.find(wanted)
    while position >= 0:
        end = position + len(wanted)
        if not (_joined(context, position) or _joined(context, end)):
            return True
        position = context.find(wanted, position + 1)
    return False


def _joined(text: str, position: int) -> bool:
    """Whether a place lies inside a word."""
    if not 0 < position < len(text):
        return False
    before, after = text[position - 1], text[position]
    return _WORD.fullmatch(before) is not None and _WORD.fullmatch(after) is not None
