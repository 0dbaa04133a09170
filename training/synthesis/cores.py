"""The core of a sentence: who did what, and at most one place, time or manner."""

import random

from .lexicon import Lexicon
from .marked import Marked
from .reading import Token, read

_NOUNS = ("J", "N", "NS", "NAME", "CD", "W", "POS")


def phrase(tokens: tuple[Token, ...], index: int) -> int:
    """Index behind a noun phrase that starts at `index` (with an `of` behind it), 0 when there is none."""
    start = index
    if index < len(tokens) and tokens[index].tag == "D":
        index += 1
    while index < len(tokens) and tokens[index].tag in _NOUNS:
        index += 1
    if index == start or tokens[index - 1].tag not in ("N", "NS", "NAME"):
        return 0
    if index < len(tokens) and tokens[index].text in ("of", "&"):
        return phrase(tokens, index + 1) or 0
    return index


def core(text: Marked, rng: random.Random, lexicon: Lexicon) -> Marked | None:
    """Subject, verb and object (or the one phrase behind a passive); None for a sentence that is not so plain."""
    tokens = read(text.text, lexicon).tokens
    verb = 1 if tokens and tokens[0].tag == "PRP" else phrase(tokens, 0)
    if not verb or verb + 2 >= len(tokens):
        return None
    index = verb
    if tokens[index].tag == "B":
        index += 1 + (tokens[index + 1].text in ("not", "never"))
        if index >= len(tokens) or tokens[index].tag != "VD" or tokens[index].sure < 0.8:
            return None
    elif tokens[index].tag not in ("VD", "VZ") or tokens[index].sure < 0.8:
        return None
    index += 1
    end = phrase(tokens, index)
    if not end and index < len(tokens) and tokens[index].tag == "P":
        end = phrase(tokens, index + 1)
    if not end or end >= len(tokens) or tokens[end].tag in ("POS", "VG", "VD") or tokens[end].text in ("-", "–", "to", "that", '"'):  # noqa: E501  # fmt: skip
        return None
    if rng.random() < 0.5 and tokens[end].tag == "P":
        more = phrase(tokens, end + 1)
        end = more if more and tokens[min(more, len(tokens) - 1)].text not in ("-", "–", "'") else end
    return Marked.join((text.cut(0, tokens[end - 1].end), ".")) if end > verb + 1 else None
