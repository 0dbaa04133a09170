"""Abstention: answers that say "I don't know" instead of answering. A class of its own, neither good nor bad."""

from __future__ import annotations

import re

_HEAD = 400  # an abstention says so at once; a long answer with a doubt at its end is an answer

# Each alternative starts with a literal word, so that a search costs one pass over the head of the answer.
_PHRASES = re.compile(
    r"""
    \bI(?:['’]m|\ am)\ (?:sorry|afraid|not\ (?:sure|able|aware)|unable)
    | \bI\ (?:do\ not|don['’]?t|cannot|can['’]?t|could\ not|couldn['’]?t|was\ (?:not\ able|unable))\ (?:actually\ )?
      (?:know|find|answer|locate|have|tell|determine|provide|see|to\ (?:find|answer|locate))
    | \b(?:unable|not\ able|not\ possible)\ to\ (?:answer|find|determine|locate|provide)
    | \b(?:cannot|can['’]?t|could\ not|couldn['’]?t)\ (?:be\ )?(?:answer(?:ed)?|determined?|find|found)
    | \b(?:no|not\ (?:any|enough|sufficient)|insufficient)\ (?:relevant\ |such\ |further\ |specific\ )?
      (?:information|answer|context|documents?|data|details|mention)
    | \b(?:does|do|did)(?:\ not|n['’]?t)\ (?:explicitly\ |specifically\ |directly\ )?
      (?:contain|mention|provide|include|specify|state|say|answer|discuss|cover|address|give|have)
    | \bnot\ (?:mentioned|provided|specified|stated|found|available|covered|included)\ in\ the\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_LEADS = (
    "i ",
    "i'",
    "i’",
    "no",
    "not",
    "unable",
    "cannot",
    "can't",
    "could",
    "does",
    "do ",
    "did",
    "don",
    "insuff",
    "sorry",
)
_WORDS_OF_A_SHORT_ANSWER = 40


def abstains(answer: str) -> bool:
    """Whether the answer as a whole abstains: it is short, and says that it does not know.

    >>> abstains("I could not find that in the documentation.")
    True
    >>> abstains("The passages do not mention his birthday.")
    True
    >>> abstains("It returns None. It does not contain a lock.")
    False
    """
    head = answer[:_HEAD]
    if len(answer) > _HEAD or not _PHRASES.search(head):
        return False
    return _first_sentence_abstains(head)


def _first_sentence_abstains(head: str) -> bool:
    first = re.split(r"(?<=[.!?])\s", head.strip(), maxsplit=1)[0]
    return bool(_PHRASES.search(first))
