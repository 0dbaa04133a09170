"""Which words of a question another text says in words of its own.

An answer need not repeat its question: "Parcels may be sent back up to forty days after delivery" says what the return
policy is. A term of a question is covered by itself, or by a word that the shipped table has beside it. Words that only
say what kind of text is wanted ("policy", "details") weigh little.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from pathlib import Path

from ragwatch.judges.claims.words import fold, term

BY_CONTEXT, BY_ANSWER = 0.4, 0.6
"""What a synonym covers of a term: less in contexts, because those of another topic may hold a few by chance."""
FRAME = 0.3
"""Weight of a word that says what kind of text is wanted, beside its rarity."""

_TABLE = Path(__file__).parents[1] / "tables" / "synonyms.txt"
_FRAMES = frozenset(
    term(word)
    for word in (
        *("policy", "policies", "rule", "process", "procedure", "detail", "information", "info", "explain", "tell"),
        *("describe", "description", "overview", "summary", "summarize", "question", "answer", "example", "way"),
        *("possible", "know", "please", "help", "thing", "mean", "give", "list", "name", "type", "kind"),
    )
)


@cache
def _synonyms() -> Mapping[str, frozenset[str]]:
    text = _TABLE.read_text(encoding="utf-8")
    related: dict[str, set[str]] = {}
    for line in text.splitlines():
        words = {name for word in line.split() if (name := term(fold(word)))} if not line.startswith("#") else set()
        for word in words:
            related.setdefault(word, set()).update(words)
    return {word: frozenset(words - {word}) for word, words in related.items()}


def question_share(question: Mapping[str, float], words: AbstractSet[str], by_synonym: float) -> float:
    """Share of a question that a text covers, in its words or in others; 0.0 without a question.

    Args:
        question: Terms of the question, with their weight.
        words: Terms of the text.
        by_synonym: What a synonym covers of a term.

    >>> question_share({"return": 0.75, "tea": 0.25}, {"tea", "sent"}, BY_ANSWER)
    0.7
    >>> question_share({"policy": 1.0, "tea": 0.1}, {"tea"}, BY_ANSWER)
    0.25
    """
    weights = {name: weight * (FRAME if name in _FRAMES else 1.0) for name, weight in question.items()}
    total = math.fsum(weights.values())
    related = _synonyms()
    covers = (
        weight * (1.0 if name in words else by_synonym)
        for name, weight in weights.items()
        if name in words or not words.isdisjoint(related.get(name, ()))
    )
    return math.fsum(covers) / total if total else 0.0
