"""Words an answer as a service does: with courtesy, citations and offers. The same question gets the same words."""

from __future__ import annotations

from collections.abc import Sequence

from ragwatch.demo.answerer import Quote
from ragwatch.demo.questions import ROUTES
from ragwatch.demo.stable_hash import stable_hash

ABSTENTION = "I could not find that in the documentation."
OPENINGS = (
    "Sure!",
    "Thanks for your question!",
    "Good question!",
    "Here is what I found in the documentation.",
    "Happy to help!",
)
CLOSINGS = (
    "I hope this helps!",
    "Would you like to see an example?",
    "Let me know if you need anything else.",
    "Shall I look up related functions?",
    "Feel free to ask if anything is unclear.",
)
OFFERS = (
    "Would you like me to search for something similar?",
    "Could you rephrase your question?",
    "Let me know if I can help with anything else.",
)
_MARKS = dict(zip(ROUTES, (" [{}]", " (source {})"), strict=True))  # each route cites in a style of its own
_SHARES = {"search": 3, "support": 6}  # of ten answers, those with an opening; as many have a closing


def spoken(question: str, quote: Quote, route: str) -> str:
    """Words an answer: each sentence cites its passage, and a share of the answers begins or ends with courtesy."""
    mark = _MARKS[route].format(quote.rank + 1)
    body = " ".join(f"{sentence.rstrip('.:')}{mark}." for sentence in quote.sentences)
    opening, closing = (_some(question, part, route) for part in (OPENINGS, CLOSINGS))
    return " ".join(filter(None, (opening, f"{quote.title}: {body}", closing)))


def declined(question: str) -> str:
    """Words an abstention: what was not there, and an offer."""
    return f"{ABSTENTION} {OFFERS[stable_hash(question) % len(OFFERS)]}"


def _some(question: str, phrases: Sequence[str], route: str) -> str:
    """One of the phrases, for a share of the questions; else nothing."""
    seed = stable_hash(f"{phrases[0]} {question}")
    return phrases[seed // 10 % len(phrases)] if seed % 10 < _SHARES[route] else ""
