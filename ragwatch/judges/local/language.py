"""Language: whether a text is one that the model was taught to read. Pure.

The model learned English prose. English gives itself away by its function words: of claims and their evidence in seven
labelled sets 99.5 % have a share of .19 or more, and sentences of a dozen other languages in Latin letters have .15 or
less, most of them none at all; other scripts are told by their letters. What is left out by mistake (a table, a list of
names) is read by words, as it would be without the model.
"""

from __future__ import annotations

import re

from ragwatch.judges.lexical.words import STOP_WORDS, TOKEN

_ENOUGH_WORDS = 10
"""A shorter text may well do without function words."""

_FUNCTION_WORDS = 0.17
_OTHER_LETTERS = 0.3
_LETTER = re.compile(r"[^\W\d_]")
_OTHER_LETTER = re.compile("[^\\W\\d_\u0000-\u024f\u1e00-\u1eff\uff21-\uff5a]")  # full-width Latin is Latin


def is_read(text: str) -> bool:
    """Whether the model can be asked about a text.

    >>> is_read("The lamp of the old mill burned out in May, so they put in a new one.")
    True
    >>> is_read("Die Lampe der alten Mühle ist im Mai ausgegangen und niemand hat sie bisher ersetzt.")
    False
    """
    letters = len(_LETTER.findall(text))
    if letters and len(_OTHER_LETTER.findall(text)) > _OTHER_LETTERS * letters:
        return False
    # Accents stay: `à` is no `a`.
    words = [word for word in TOKEN.findall(text.lower()) if word[0].isalpha()]
    known = sum([word in STOP_WORDS for word in words])
    return len(words) < _ENOUGH_WORDS or known >= _FUNCTION_WORDS * len(words)
