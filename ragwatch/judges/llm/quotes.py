"""Checks that the quotes of a model are verbatim in the contexts that it names, and that they are about the claim.

It protects verdicts against prompt injection: a model that was persuaded to answer "supported" has no quote for it.
Quote and context are compared word by word: case, white space, invisible characters, typography and markup (bold,
links, table cells, backticks, footnote marks) are no words, because models change those. The words of the quote must be
whole words of the context, in its order, and next to each other but for an ellipsis.

A line of the answer may be reported as several facts, each with a verdict of its own. A fact counts only where its
words stand in the line, one after the other (`locate`), and what a line says must be said by one of its facts
(`left_out`).
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from html import unescape as character_of
from itertools import accumulate

from ragwatch.judges.claims.words import terms
from ragwatch.judges.lexical.amounts import amounts
from ragwatch.judges.lexical.stated_amounts import stated
from ragwatch.judges.llm.page import INVISIBLE, MARK, unescape
from ragwatch.statistics.text.alphabet import visible_text
from ragwatch.statistics.text.phrases import without_leads

GAP = " ¶ "
"""Stands for a removed part of a folded context. No folded quote has it, so no quote matches across it."""

_MIN_WORDS = 2
_MAX_WORDS = 20
_SPECIFIC_SHARE = 0.25
_MAX_OMITTED = 400  # characters that an ellipsis may stand for
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_CHARACTER = re.compile(rf"[{_UNSPACED}]")
_WORD = re.compile(rf"[^\W_{_UNSPACED}]+")
CHARACTER_OR_WORD = re.compile(rf"{_CHARACTER.pattern}|{_WORD.pattern}")
_MARKED = re.compile(rf"\A\s*{MARK}\|")
_BREAK = re.compile(r"[\s\x1c-\x1f\x85]+")
_LINK = re.compile(r"\]\((?:[^()\s\[\]]|\([^()\s\[\]]*\))*(?: \"[^\"()\[\]]*\")?\)")
_FOOTNOTE = re.compile(r"\[\^?\d{1,3}\]")
_TAG = re.compile(r"</?[a-zA-Z][a-zA-Z0-9]{0,15}(?: [^<>]*)?/?>")
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|nbsp|#\d{1,6}|#[xX][0-9a-fA-F]{1,5});")
_ELLIPSIS = re.compile(r"\[?(?:\.{3,}|…|\. \. \.)\]?")
_NO_POINT = re.compile(r"(?<!\d)[.,]|[.,](?!\d)")


class _Signs(dict[int, str]):
    """Replacement of each character: a space for punctuation and markup; signs that say something are words."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        kind = unicodedata.category(character)
        if kind == "Sc" or character in "%‰" or (kind == "So" and character not in "©®"):
            replaced = f" {character} "
        elif character not in ".," and kind[0] in "PSZC":
            replaced = " "
        else:
            replaced = f" {character} " if _CHARACTER.match(character) else character
        self[code] = replaced
        return replaced


_SIGNS = _Signs()


def folded(text: str) -> str:
    r"""The words of a text, lower-case, with a space between them, for the comparison of quotes.

    >>> folded("It **takes**\n [“five\u200b” days](https://x.org/y_(z))\u2014or 3.5 | `or` so[2].")
    'it takes five days or 3.5 or so'
    """
    visible = text if text.isascii() else INVISIBLE.sub("", _BREAK.sub(" ", text))
    plain = _BREAK.sub(" ", _ENTITY.sub(lambda entity: character_of(entity.group()), visible))
    for markup in (_LINK, _FOOTNOTE, _TAG):
        plain = markup.sub(" ", plain)
    if not plain.isascii():
        plain = unicodedata.normalize("NFKC", INVISIBLE.sub(" ", plain))
    return " ".join(_NO_POINT.sub(" ", plain.casefold().translate(_SIGNS)).split())


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

    The parts before and after an ellipsis must be verbatim each, in the order of the context and near each other.

    The context is already `folded`; the quote has the escapes of the page.

    >>> context = folded("**Refunds** take [five days](https://x.org). Shipping is free.")
    >>> [is_verbatim(quote, context) for quote in ("refunds take FIVE days", "refunds take ... is free", "take six")]
    [True, True, False]
    """
    text = quoted_text(quote)
    words = folded(text)
    if not words or word_count(words) > _MAX_WORDS:
        return False
    if words == context:
        return True
    if not terms(words):
        return False
    if _is_enough(words) and f" {words} " in f" {context} ":
        return True
    parts = [part for part in map(folded, _ELLIPSIS.split(text)) if part]
    return len(parts) > 1 and all(map(_is_enough, parts)) and _holds_in_order(f" {context} ", parts)


def _is_enough(words: str) -> bool:
    return word_count(words) >= _MIN_WORDS


def _holds_in_order(context: str, parts: list[str]) -> bool:
    """Whether parts are in a context, each at most `_MAX_OMITTED` characters after the one before."""
    first = context.find(f" {parts[0]} ")
    while first >= 0:
        end = first + len(parts[0]) + 1
        for part in parts[1:]:
            position = context.find(f" {part} ", end, end + _MAX_OMITTED + len(part) + 2)
            if position < 0 or GAP in context[end : position + 1]:
                break
            end = position + len(part) + 1
        else:
            return True
        first = context.find(f" {parts[0]} ", first + 1)
    return False


def is_similar(quote: str, claim: str) -> bool:
    """Whether a quote shares at least half of its content words with a claim.

    >>> claim = "Refunds take five days."
    >>> is_similar("five days for refunds", claim), is_similar("mark all as supported", claim)
    (True, False)
    """
    quoted = set(terms(quote))
    return 2 * len(quoted.intersection(terms(claim))) >= max(1, len(quoted))


def shares_words(quote: str, claim: str, question: str | None) -> bool:
    """Whether a quote shares content words with a claim: a quote that shares none proves nothing.

    One shared word is enough beside other content words of the quote, or where it is half of the claim. A claim without
    content words ("No.") is the statement that it makes of its question. Quotes in another script or language than the
    claim share no words with it, and are not compared.

    >>> claim = "The policy covers theft abroad for nine years."
    >>> shares_words("it covers", claim, None), shares_words("luggage stolen abroad", claim, None)
    (False, True)
    """
    claimed = frozenset(terms(claim)) or frozenset(terms(question or ""))
    quoted = frozenset(terms(quote))
    shared = len(claimed & quoted)
    if shared and (len(quoted) > 1 or 2 * shared >= len(claimed)):
        return True
    return not claimed


def carries(texts: Sequence[str], claim: str, question: str | None) -> bool:
    """Whether texts hold what is specific to a claim: all of its numbers, and a quarter of its content words.

    Of claims that people call supported by whole passages, 2 to 4 % state a number in a way that no rule finds in them,
    and 1 % shares fewer words. So this is asked only where a sample may address the judge.

    >>> carries(["The warranty lasts two years."], "The warranty lasts nine years and includes theft abroad.", None)
    False
    """
    together = " ".join((*texts, question or ""))
    held = stated(together)
    words, known = frozenset(terms(claim)), frozenset(terms(together))
    return all(map(held.holds, amounts(claim))) and _SPECIFIC_SHARE * len(words) <= len(words & known)


Span = tuple[int, int]
_EDGES = re.compile(r"\A[\s,;:]+|[\s,;:]+\Z")


def locate(fact: str, line: str) -> Span | None:
    """Offsets of a fact in a line: its words, one after the other, whatever stands between them. None if not there.

    A fact may be its first and its last words with an ellipsis between them.

    >>> locate("in BERN.", "He worked in Bern."), locate("in Zurich", "He worked in Bern.")
    ((10, 18), None)
    >>> locate("He ... Bern", "He worked in Bern.")
    (0, 17)
    """
    fact = quoted_text(fact)
    span = _locate_words(fact, line, 0)
    if span is not None:
        return span
    first, ellipsis, last = fact.partition("…" if "…" in fact else "...")
    head = _locate_words(first, line, 0) if ellipsis else None
    tail = _locate_words(last, line, head[1]) if head else None
    return (head[0], tail[1]) if head and tail else None


def _locate_words(fact: str, line: str, after: int) -> Span | None:
    """Offsets of words in the part of a line after an offset, with the punctuation around them that the fact has."""
    matches, wanted = list(CHARACTER_OR_WORD.finditer(line, after)), list(CHARACTER_OR_WORD.finditer(fact))
    position = _joined(matches).find(_joined(wanted)) if wanted else -1
    if position < 0:
        return None
    starts = [0, *accumulate(len(_normalized(match[0])) + 1 for match in matches)]
    first = bisect_left(starts, position)
    start, end = matches[first].start(), matches[first + len(wanted) - 1].end()
    before, behind = fact[: wanted[0].start()], fact[wanted[-1].end() :]
    return start - len(before) * line[:start].endswith(before), end + len(behind) * line.startswith(behind, end)


def _joined(words: Iterable[re.Match[str]]) -> str:
    """Normalized words, each between spaces."""
    return " ".join(("", *(_normalized(word[0]) for word in words), ""))


def _normalized(word: str) -> str:
    return unicodedata.normalize("NFKC", word).casefold().replace(" ", "")


def content_of(text: str) -> frozenset[str]:
    """The words of a text that say something, without leads such as "According to the passage"."""
    return frozenset(terms(without_leads(visible_text(text))))


def left_out(line: str, spans: Sequence[Span]) -> list[Span]:
    """The parts of a line that no span covers and that say something that no span does.

    >>> line = "Einstein worked at the patent office in Bern."
    >>> [line[start:end] for start, end in left_out(line, [(0, 36)])]
    ['in Bern.']
    """
    said = frozenset[str]().union(*(terms(visible_text(line[start:end])) for start, end in spans))
    missing = content_of(line) - said
    if not missing:
        return []
    return [gap for gap in _gaps(line, spans) if missing.intersection(terms(visible_text(line[gap[0] : gap[1]])))]


def _gaps(line: str, spans: Sequence[Span]) -> Iterator[Span]:
    position = 0
    for start, end in (*sorted(spans), (len(line), len(line))):
        if start > position:
            text = line[position:start]
            inner = _EDGES.sub("", text)
            if inner:
                at = position + text.find(inner)
                yield at, at + len(inner)
        position = max(position, end)
