"""Tells sentences that are no claims about the subject: courtesy, offers, lead-ins, advice, disclaimers, questions.

A fitted classifier (`training/kinds.py`, `training/KINDS.md`) reads sentences of at most `MAX_WORDS` words; questions
are known by their mark. The classifier prefers a claim in doubt: what an answer invents must not pass for courtesy.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ragwatch.judges.text_classifier import shipped_classifier, words_of

MAX_WORDS = 30
"""A longer sentence states something."""

_END = re.compile(r"""[?!:,][\s"'”’»)\]*_`]{0,6}$""")
_QUESTION = re.compile(r"""[?？][!?]{0,3}[\s"'”’»)\]*_`]{0,6}$""")
_STATES = re.compile(
    r"\W*(?:did you know|(?:is|are|was|were|do|does|did|has|have|can|could|would|will)n['’]t\b"
    r"|(?:who|you) (?:would have )?(?:thought|knew|guessed))|[,;] (?:right|correct|no|yes"
    r"|(?:is|are|was|were|do|does|did|has|have|can|could|would|will)n['’]t (?:it|they|he|she|you))\?",
    re.IGNORECASE,
)
"""Questions that state what they ask ("Did you know that ...?", "It lasts two years, doesn't it?")."""


_TELLS = re.compile(
    r"\b(?:say|tell|inform|confirm|know|hear|add|mention|note|assure|remind|report|see|found)"
    r" (?:you |us |everyone )?that\b|[:–—]\W{0,3}\w+\W{1,3}\w+"
    r"|\b(?:within|after|for|until|by|every|per) (?:\w+ ){0,2}(?:second|minute|hour|day|week|month|year)s?\b",
    re.IGNORECASE,
)
"""What states something, whatever stands before it ("I'm happy to say that ...", "Short answer: up to 20 kilos")."""


_ASKING = re.compile(
    r"(?:,| [-–—])\s+(?:(?:and|so|but|now)\s+)?(?:what|which|who|how|where|when|why|do|does|did|is|are|have|has|would"
    r"|could|can|shall|should|may|any)\b",
    re.IGNORECASE,
)
_PART = re.compile(r"[,;!] |\b(?:and|but|so|(?<!hope )that) (?=\w)", re.IGNORECASE)
_MIN_PART = 3  # words
_LABEL = re.compile(
    r"\W{0,6}(?:(?:disclaimer|(?:please )?note|important|reminder|p\.?s\.?)\W{0,3}:"
    r"|(?:please )?(?:note|keep in mind) that)",
    re.IGNORECASE,
)


def asks(sentence: str) -> bool:
    """Whether a sentence is a question to the user, or an offer in the form of one.

    >>> [asks(text) for text in ("Which one do you mean?", "Did you know that it lasts nine years?", "It lasts.")]
    [True, False, False]
    """
    return _QUESTION.search(sentence) is not None and _STATES.search(sentence) is None


def stated_before(question: str) -> int:
    """Number of characters of a question that state something before it is asked; 0 if it only asks.

    >>> text = "Bowling is an old sport, what do you like?"
    >>> text[:stated_before(text)], stated_before("Well, which one do you mean?")
    ('Bowling is an old sport', 0)
    """
    asking = _ASKING.search(question)
    head = question[: asking.start()] if asking else ""
    return len(head) if len(words_of(head)) > _MIN_PART and not is_small_talk(head) else 0


@lru_cache(maxsize=1 << 10)
def is_small_talk(sentence: str) -> bool:
    """Whether a sentence states nothing about the subject, in none of its parts.

    >>> [is_small_talk(text) for text in ("Sure, here is what I found for you.", "Sure, the warranty lasts two years.")]
    [True, False]
    """
    sentence = _LABEL.sub("", sentence, count=1) if len(sentence) <= MAX_WORDS * 20 else sentence
    if len(sentence) > MAX_WORDS * 20 or _TELLS.search(sentence):
        return False
    if len(words_of(sentence)) > MAX_WORDS or not _is_unlike_claims(sentence):
        return False
    parts = _PART.split(sentence)
    return all(_is_unlike_claims(part) for part in parts[1:] if len(words_of(part)) >= _MIN_PART)


def _is_unlike_claims(text: str) -> bool:
    classifier = shipped_classifier("kinds")
    return classifier.logit(read_words(text)) > classifier.thresholds["least"]


def read_words(sentence: str) -> list[str]:
    """The words of a sentence between marks of its beginning and its end, as the classifier reads them."""
    end = _END.search(sentence)
    return ["<", *words_of(sentence), f"{end.group()[0]}>" if end else ">"]
