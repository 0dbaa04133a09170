"""Prepares contexts for the comparison with claims."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from ragwatch.judges.claims.limits import Check, unlimited
from ragwatch.judges.claims.sentences import spans
from ragwatch.judges.claims.words import TOKEN, fold, identifiers, term
from ragwatch.judges.lexical.tables import Split
from ragwatch.statistics.text.alphabet import visible_text

GRAM = 4


@dataclass(frozen=True, slots=True)
class PreparedPassage:
    """Words of one context."""

    terms: frozenset[str]  # its content terms and whole identifiers
    pairs: frozenset[tuple[str, str]]  # adjacent content terms (function words between them do not count)
    grams: frozenset[str]  # character 4-grams of its words, joined by single spaces
    sentences: tuple[frozenset[str], ...]  # content terms of each sentence
    offsets: tuple[tuple[int, int], ...]  # (start, end) of each sentence in the context


_LIST_MARK = re.compile(r"(?:^|(?<=[.!?;] ))[ \t]{0,16}\(?(\d{1,2})[.)](?=\s{1,4}[^\W\d])", re.MULTILINE)


def context_text(text: str) -> str:
    r"""Return a context as it is read, of the same length: as people see it, without the numbers of list items.

    That of the last item stays: it says how many there are.

    >>> context_text("1. Cut them.\n2. Plant them 12 inches apart.")
    '   Cut them.\n2. Plant them 12 inches apart.'
    """
    text = visible_text(text)
    parts, position = [], 0
    for mark, after in pairwise(_LIST_MARK.finditer(text)):
        if int(after[1]) == int(mark[1]) + 1:
            parts += [text[position : mark.start()], " " * len(mark.group())]
            position = mark.end()
    return "".join((*parts, text[position:]))


def passages_of(texts: Iterable[str], check: Check = unlimited, split: Split | None = None) -> list[PreparedPassage]:
    """Prepare contexts, in their order. Duplicates, which some retrievers return, are prepared once."""
    prepared: dict[str, PreparedPassage] = {}
    return [prepared.get(text) or prepared.setdefault(text, passage(text, check, split)) for text in texts]


def passage(text: str, check: Check = unlimited, split: Split | None = None) -> PreparedPassage:
    """Prepare one context; `check` is called before it and after each sentence, `split` for another language.

    >>> prepared = passage("Tea is green. It grows in the hills.")
    >>> sorted(prepared.terms), len(prepared.sentences)
    (['green', 'grow', 'hill', 'tea'], 2)
    """
    text = context_text(text)
    check()
    tokens = TOKEN.findall(fold(text))
    ordered = split(text) if split else [name for name in map(term, tokens) if name]
    offsets: list[tuple[int, int]] = []
    sentences: list[frozenset[str]] = []
    for span in spans(text):
        offsets.append((span.start, span.end))
        sentence = text[span.start : span.end]
        sentences.append(frozenset(split(sentence) if split else map(term, TOKEN.findall(fold(sentence)))) - {""})
        check()
    return PreparedPassage(
        terms=frozenset(ordered) | identifiers(text),
        pairs=frozenset(pairwise(ordered)),
        grams=grams(tokens),
        sentences=tuple(sentences),
        offsets=tuple(offsets),
    )


def grams(tokens: Iterable[str]) -> frozenset[str]:
    """Character n-grams of length `GRAM` of the words joined by single spaces, with spaces around.

    >>> sorted(grams(["tea", "is"]))
    ['  te', ' is ', ' tea', 'a is', 'ea i', 'tea ']
    """
    joined = " ".join(("", "", *tokens, ""))
    return frozenset(map("".join, zip(joined, joined[1:], joined[2:], joined[3:], strict=False)))
