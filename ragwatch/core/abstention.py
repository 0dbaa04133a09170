"""Detects abstentions: answers that decline to answer ("I don't know"), which are neither good nor bad."""

from __future__ import annotations

import re

from ragwatch.core import phrases

MAX_ABSTENTION_CHARS = 400  # a longer answer with doubts in it is still an answer
_CUES = re.compile(
    r"\bn(?:o|ot|one|or|othing|owhere|ever|either)\b|n[’']t\b|cannot|\bun|\bin?(?:m|rr|suff)|sorry|lack|beyond|outside|n/a|silent"
)
_STOP = re.compile(r"(?<=[.!?])\s")


def abstains(answer: str) -> bool:
    """Returns whether an answer abstains: it is short, and its first sentence declines to answer.

    Cheap enough for every request: most answers are too long, or contain no word of an abstention.

    >>> abstains("I could not find that in the documentation.")
    True
    >>> abstains("The passages do not mention his birthday.")
    True
    >>> abstains("It returns None. The documents do not say why.")
    False
    """
    if len(answer) > MAX_ABSTENTION_CHARS or not _CUES.search(answer.lower()):
        return False
    return phrases.abstains(_STOP.split(answer.strip(), maxsplit=1)[0])
