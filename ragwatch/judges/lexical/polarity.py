"""Tells where a sentence denies what a claim says, in the same words, or the other way round.

"The period is not 30 days" has every word of "The period is 30 days": function words, and so "not", are no terms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from ragwatch.judges.claims.words import TOKEN, fold, term

NEARLY = 0.6
"""Recall of a claim in a sentence from which the two are compared: below, they may be about different things."""
_REACH = 6
"""Tokens after a negation within which the terms that it denies stand."""
_TERMS = 2
"""Number of them that are compared."""
_NEGATIONS = frozenset({"not", "never", "cannot", "no", "neither", "nor"})
_CUE = re.compile(
    r"\b(?:not|never|cannot|no|none|neither|nor|nothing|nobody|nowhere|without|unable|lacks?|lacking|fail\w*"
    r"|free (?:from|of)|hardly|barely|rarely|seldom|few|unlike|refus\w+|rul\w+ out|declin\w+|avoid\w*|reject\w*"
    r"|den(?:y|ies|ied)|prevent\w*|prohibit\w*|forbid\w*|bann\w+|unless|except|instead|rather than)\b|n't\b",
)
_WEAKENED = frozenset(
    re.findall(
        r"\w+",
        "only just merely necessarily always all every longer more less least fewer earlier later until but matter sure"
        " doubt yet even mention exclusively solely",
    )
)
"""After a negation, these make a statement of its own: "not only" and "no later than" deny nothing that follows."""
_INDIRECT = frozenset({"or", "if", "unless", "whether", "although", "though", "why", "because", "when"})
"""Before a negation in the same clause: "guilty or not guilty", "even if it is not" deny nothing."""
_BEFORE = 6
_PAUSE = re.compile(r"[,;:.!?()]")


@lru_cache(maxsize=1 << 10)
def denied_terms(text: str) -> tuple[tuple[str, ...], ...]:
    """Returns the first terms after each negation of a text.

    >>> denied_terms("It isn't free, and it does not ship on Sundays. No, not only there.")
    (('free',), ('ship', 'sunday'))
    """
    return tuple(_denied(_plain(text)))


def _plain(text: str) -> str:
    return fold(text).replace("’", "'")


def _denied(text: str) -> Iterator[tuple[str, ...]]:
    tokens = list(TOKEN.finditer(text))
    for place, token in enumerate(tokens):
        if token.group() not in _NEGATIONS and not token.group().endswith("n't"):
            continue
        before = {one.group() for one in tokens[max(0, place - _BEFORE) : place]}
        if before & _INDIRECT or any(one.group() == "until" for one in tokens[place:]):
            continue
        end = token.end()
        names: list[str] = []
        for other in tokens[place + 1 : place + 1 + _REACH]:
            if other.group() in _WEAKENED or _PAUSE.search(text[end : other.start()]) or len(names) == _TERMS:
                break
            end = other.end()
            names += [name for name in (term(other.group()),) if name]
        if names:
            yield tuple(names)


def reverses(claim: str, sentence: str) -> bool:
    """Returns whether one of the two denies what the other says without a word of denial.

    >>> reverses("The period is not 30 days.", "The period is 30 days.")
    True
    >>> reverses("The period is 30 days.", "The period is 30 days, not 14.")
    False
    >>> reverses("It is free.", "It is not only free but fast.")
    False
    """
    return _denies(claim, sentence) or _denies(sentence, claim)


def _denies(one: str, other: str) -> bool:
    denied = denied_terms(one)
    if not denied or _CUE.search(_plain(other)):
        return False
    terms = frozenset(map(term, TOKEN.findall(fold(other))))
    return any(terms.issuperset(names) for names in denied)
