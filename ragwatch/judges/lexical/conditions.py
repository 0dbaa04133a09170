"""Tells where the words of a claim stand in a context, but not its condition or its scope.

"If it were a binary system, its zone could extend to 2.4 AU" does not say that it does; "free for orders above 50
euros" does not say whether every order is free.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_COUNTERFACTUAL = re.compile(
    r"\bif (?!(?:i|we|you)\b)[^.!?]{1,200}\b(?:were|had been)\b[^.!?]{1,300}\b(?:would|could|might)\b"
    r"|\b(?:would|could|might)\b[^.!?]{1,300}\bif (?!(?:i|we|you)\b)[^.!?]{1,200}\b(?:were|had been)\b",
    re.IGNORECASE | re.DOTALL,
)
_CONDITIONAL = re.compile(
    r"\b(?:if|unless|would|could|might|may|should|were|hypothetical\w*|suppos\w+|assume\w*|assuming|assumption\w*|theor\w+|possib\w+|potential\w*)\b",
    re.IGNORECASE,
)
_EVERY = re.compile(r"\b(?:every|all|each|any|always|everyone|anyone|everything|entire|whole)\b", re.IGNORECASE)
_RESTRICTED = re.compile(
    r"\b(?:only|above|over|under|below|between|except|unless|if|when|until|at least|at most|up to|more than|less than"
    r"|fewer than|starting|exclud\w+|selected|some|most|certain|eligible)\b",
    re.IGNORECASE,
)


def loses_condition(claim: str, sentences: Sequence[str]) -> bool:
    """Whether all sentences that a claim was taken from are conditional, and it is not.

    >>> loses_condition("It extends to 2.4 AU.", ["If it were binary, it could extend to 2.4 AU."])
    True
    >>> loses_condition("It could extend to 2.4 AU.", ["If it were binary, it could extend to 2.4 AU."])
    False
    """
    if not sentences or _CONDITIONAL.search(claim):
        return False
    return all(_COUNTERFACTUAL.search(sentence) for sentence in sentences)


def is_narrower(sentence: str, question: str) -> bool:
    """Whether a sentence is about some, where a question asks about all.

    >>> is_narrower("Shipping is free for orders above 50 euros.", "Is shipping free for every order?")
    True
    """
    asked = _EVERY.search(question) is not None and _RESTRICTED.search(question) is None
    return asked and _EVERY.search(sentence) is None and _RESTRICTED.search(sentence) is not None
