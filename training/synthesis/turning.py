"""More rewritings that keep what is said: clauses and list items change places, relative clauses shrink and grow."""

import random
import re

from .marked import Marked, upper
from .reading import NAME

_LINKS = "although|while|because|when|if|after|before|since|once|until"
_CLAUSE_FIRST = re.compile(rf"^({_LINKS}) ([^,;:()]{{10,90}}) ?, ([^,;:()]{{10,110}}) ?\.$", re.IGNORECASE)
_CLAUSE_LAST = re.compile(
    r"^([^,;:()]{15,110}?) ?,? (although|because|when|after|before|if|once) ([^,;:()]{12,90}) ?\.$"
)
_BEHIND = r"(?=[.,;]| (?:in|of|for|at|to|on|with|from|is|are|was|were)\b)"
_NAMES = re.compile(rf"(?<=[a-z] )({NAME}) and ({NAME}){_BEHIND}")
_BEFORE_NAMES = re.compile(
    r"(?:^| )(?:of|by|in|for|with|to|at|on|are|were|includes?|including|starring|stars|featuring) $"
)
_NOUNS = re.compile(r"(?<=[a-z] )([a-z]{3,}s) and ([a-z]{3,}s)" + _BEHIND)
_LONG = re.compile(
    r"(?<=[a-z]),? (?:that|which|who) (?:is|was|are|were) (?=[a-z]+(?:ed|en|wn|lt) (?:by|in|on|at|for|with)\b)"
)
_SHORT = re.compile(
    r"(?<= )(film|book|song|game|city|town|album|novel|group|river|party|event|bridge|church|school|series|company) "
    r"(?=(?:directed|written|produced|founded|located|designed|released|published|built|based|developed|created)"
    r" (?:by|in|on)\b)"
)
_LOWERED = re.compile(
    r"^(?:The|A|An|He|She|It|They|His|Her|Its|Their|This|These|There|We|You|In|On|At|Some|Many|Most)\b"
)


def _low(text: Marked) -> Marked:
    return Marked(text.text[:1].lower() + text.text[1:], text.marks) if _LOWERED.match(text.text) else text


def _free(text: str) -> bool:
    """Whether a piece may stand in another place: it opens with a name or with a word that can lose its capital."""
    return bool(_LOWERED.match(text[:1].upper() + text[1:]) or re.match(NAME, text))


def clause_last(text: Marked, rng: random.Random) -> Marked:  # noqa: ARG001
    """The clause that opens the sentence put behind: `B because A`."""
    match = _CLAUSE_FIRST.match(text.text)
    if not match or match.group(1)[0].islower() or not _free(match.group(3)):
        return text
    link, first, second = (text.cut(*match.span(number)) for number in (1, 2, 3))
    return Marked.join((upper(second), " ", Marked(link.text.lower(), link.marks), " ", first, "."))


def clause_first(text: Marked, rng: random.Random) -> Marked:  # noqa: ARG001
    """The clause at the end put in front: `Because A, B`."""
    match = _CLAUSE_LAST.match(text.text)
    if not match or not _free(match.group(1)) or re.search(r"\b(?:that|which|who|whether|how|or|so)\b", match.group(1)):
        return text
    if not re.match(r"(?:the|a|an|he|she|it|they|his|her|its|their|[A-Z]\w+) ", match.group(3)):
        return text
    first, link, second = (text.cut(*match.span(number)) for number in (1, 2, 3))
    return Marked.join((upper(link), " ", second, ", ", _low(first), "."))


def items(text: Marked, rng: random.Random) -> Marked:
    """Two items of a pair change places: `A and B` as `B and A`."""
    patterns = [_NAMES, _NOUNS]
    rng.shuffle(patterns)
    for pattern in patterns:
        match = pattern.search(text.text)
        if match and (pattern is _NOUNS or _BEFORE_NAMES.search(text.text[: match.start()])):
            first, second = text.cut(*match.span(1)), text.cut(*match.span(2))
            return Marked.join((text.cut(0, match.start()), second, " and ", first, text.cut(match.end())))
    return text


def relative(text: Marked, rng: random.Random) -> Marked:
    """`a film that was directed by` as `a film directed by`, or the other way round."""
    if rng.random() < 0.5:
        return text.sub(_LONG, " ")
    link = "was" if re.search(r"\b(?:was|were|had)\b", text.text) else "is"
    match = _SHORT.search(text.text)
    return text.put(match.end(), match.end(), f"that {link} ") if match else text


TURNS = (clause_last, clause_first, items, items, relative)
"""Rewritings of this module, the commoner ones twice."""
