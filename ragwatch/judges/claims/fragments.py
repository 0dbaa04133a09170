"""Tells which answers are bare fragments ("Thirty days."): a few words that are no clause."""

from __future__ import annotations

import re

from ragwatch.judges.claims.clauses import Token, tokens_of

_CLAUSES = frozenset(
    "i you he she it its we they this that these those there who which what let please yes no yeah yep nope".split()  # noqa: SIM905
)
"""Words that a clause begins with, though its verb may be an uncommon one."""
_OTHER_SCRIPT = re.compile("[\u0370-\u1fff\u2c00-\U0010ffff]")  # than Latin, which the embedded judges read
_MAX_CHARS = 200
_LISTS = frozenset({"and", "or"})  # the items of a list may stand apart

MAX_WORDS = 6
"""Number of words of a bare fragment at most."""


def is_fragment(text: str) -> bool:
    """Whether a text is a few words, none of which shows a clause.

    >>> is_fragment("Thirty days."), is_fragment("It takes thirty days."), is_fragment("Yes")
    (True, False, False)
    """
    if len(text) > _MAX_CHARS or _OTHER_SCRIPT.search(text):
        return False
    words = [token for token in tokens_of(text) if token.is_word]
    is_short = any(word.name for word in words) and len(words) <= MAX_WORDS
    return is_short and not any(map(_is_of_clause, words))


def _is_of_clause(word: Token) -> bool:
    return word.is_verb or word.low in _CLAUSES or word.low in _LISTS or "'" in word.low
