"""Tells which answers cannot be read as English: those in another language, or a bare yes or no.

A bare "yes" or "no" makes a statement of its question. Words show whether the contexts are about it; that they say
the same is only read where the sentence that is closest to it is affirmative for "yes", or negative for "no". Otherwise
the support of the answer is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragwatch.judges.claims.claims import AnswerClaims, ClaimText
from ragwatch.judges.claims.limits import Check, checked, unlimited
from ragwatch.judges.claims.sentences import spans
from ragwatch.judges.claims.words import terms
from ragwatch.judges.lexical.other_languages import language_of_sample
from ragwatch.model.evidence import UnreadReason
from ragwatch.model.sample import Sample

_YES = re.compile(r"\W{0,3}(?:yes|yeah|yep|true|correct|sure|right)\b", re.IGNORECASE)
_NEGATIVE = re.compile(
    r"\b(?:no|not|never|none|nor|neither|nothing|without|cannot|non|except|unless|excluded|false)\b|n['’]t\b",
    re.IGNORECASE,
)
_EVERY = re.compile(r"\b(?:every|all|each|any|always|everyone|anyone|everything|entire|whole)\b", re.IGNORECASE)
_RESTRICTED = re.compile(
    r"\b(?:only|above|over|under|below|between|except|unless|if|when|until|at least|at most|up to|more than|less than"
    r"|fewer than|starting|exclud\w+|selected|some|most|certain|eligible)\b",
    re.IGNORECASE,
)


def readable(
    answer: AnswerClaims, sample: Sample, check: Check = unlimited
) -> tuple[AnswerClaims, UnreadReason | None]:
    """The claims that can be read, and why there are none where that is not the answer's own doing.

    Of several bare answers none is read. `check` is called after each sentence that is compared.
    """
    if language_of_sample(sample) is not None:
        return AnswerClaims((), answer.abstained), UnreadReason.LANGUAGE
    short = [
        claim  # which has the words of the question
        for claim in answer.claims
        if claim.words == sample.question and not terms(sample.answer[claim.start : claim.end])
    ]
    undecided = {claim for claim in short if _is_undecided(claim, sample, check)} if len(short) == 1 else set(short)
    kept = tuple(claim for claim in answer.claims if claim not in undecided)
    reason = UnreadReason.SHORT_ANSWER if answer.claims and not kept else None
    return answer._replace(claims=kept), reason


def _is_undecided(claim: ClaimText, sample: Sample, check: Check) -> bool:
    """Whether no sentence of the contexts decides a bare yes or no."""
    text, question = sample.answer[claim.start : claim.end], claim.words
    sentence = _closest(question, [context.text for context in sample.contexts], check)
    if sentence is None:
        return False  # no sentence is about it: it is not in the contexts
    if _NEGATIVE.search(question) or _is_narrower(sentence, question):
        return True
    return (_NEGATIVE.search(sentence) is None) is not (_YES.match(text) is not None)


def _is_narrower(sentence: str, question: str) -> bool:
    """Whether a sentence is about some, where a question asks about all.

    >>> _is_narrower("Shipping is free for orders above 50 euros.", "Is shipping free for every order?")
    True
    """
    asked = _EVERY.search(question) is not None and _RESTRICTED.search(question) is None
    return asked and _EVERY.search(sentence) is None and _RESTRICTED.search(sentence) is not None


def _closest(question: str, contexts: Sequence[str], check: Check) -> str | None:
    """The sentence with the most words of a question; None without one."""
    asked = frozenset(terms(question))
    sentences = (text[span.start : span.end] for text in contexts for span in spans(text))
    shared = {one: len(asked.intersection(terms(one))) for one in checked(sentences, check)}
    best = max(shared, key=shared.__getitem__, default=None)
    return best if best is not None and shared[best] else None
