"""Abstention: answers that say "I don't know" instead of answering. A class of its own, neither good nor bad."""

from __future__ import annotations

import re

from ragwatch.core import phrases

LONGEST = 400  # an abstention says so at once; a longer answer that doubts is still an answer
_CUES = re.compile(
    r"\bn(?:o|ot|one|or|othing|owhere|ever|either)\b|n[’']t\b|cannot|\bun|\bin?(?:m|rr|suff)|sorry|lack|beyond|outside|n/a|silent"
)
_STOP = re.compile(r"(?<=[.!?])\s")


def abstains(answer: str) -> bool:
    """Whether an answer as a whole abstains: it is short, and its first sentence says that it does not know.

    Cheap enough to be asked of every request: most answers are too long, or hold no word that could say so.

    >>> abstains("I could not find that in the documentation.")
    True
    >>> abstains("The passages do not mention his birthday.")
    True
    >>> abstains("It returns None. The documents do not say why.")
    False
    """
    if len(answer) > LONGEST or not _CUES.search(answer.lower()):
        return False
    return phrases.abstains(_STOP.split(answer.strip(), maxsplit=1)[0])
