"""Edits of what a sentence asserts: denial put in or taken out, cause and effect turned, something added."""

import re

from . import inflect
from .lists import row, words
from .quantities import MONTHS
from .reading import Token
from .scene import KINDS, Change, Scene
from .wording import denied

_SUBORDINATE = words("who which that when while because although if where whom whose as though since than")
_PARTLY = words("some many several few most only other another both either may can could might any")
_CAUSE = re.compile(
    r"^([^,;:()]{12,90}?)( because | caused | led to | leads to | causes | resulted in | results in | triggered )"
    r"([^,;:()]{8,90})\.$"
)
_PLACES = tuple(name for name in KINDS if name not in ("Philippines", "Scotland"))
_BEFORE = words("a an the his her its their two three several")
_ADJECTIVES = row(
    """
former annual first award-winning controversial private foreign temporary international young independent final
official famous local wealthy rare experimental small secret retired long-term unpublished popular
"""
)
_ADVERBS = row(
    """
only exclusively completely unanimously reluctantly briefly secretly repeatedly successfully publicly immediately
illegally accidentally deliberately temporarily quickly voluntarily privately
"""
)
_PURPOSES = (
    *("to reduce costs", "to raise money for charity", "to attract younger audiences", "to avoid further criticism"),
    *("because of financial problems", "because of health concerns", "because of bad weather", "due to popular demand"),
    *(
        "due to budget cuts",
        "with the help of volunteers",
        "with support from the government",
        "at the request of his family",
    ),
    *("for the first time", "for the second time", "against the advice of experts", "despite strong opposition"),
    *(
        "without any prior notice",
        "as part of a larger project",
        "on behalf of the government",
        "in front of a large crowd",
    ),
    *("according to official figures", "after months of negotiations", "after a public vote", "within two years"),
)


def deny(scene: Scene) -> Change | None:
    """The main verb denied, or its denial taken out."""
    tokens = scene.sentence.tokens
    for index, token in enumerate(tokens):
        if token.text.lower() in _SUBORDINATE or token.text in (";", ":", "—"):
            return None
        if token.text.lower() in _PARTLY:
            return None
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        if not following:
            return None
        if token.tag in ("B", "M", "H", "O") and token.text != "'s" and index > 0:
            return _at_auxiliary(scene, index, token, following)
        subject = tokens[index - 1].tag if index else ""
        if token.tag in ("VD", "VZ", "V") and token.sure >= 0.8 and subject in ("NAME", "PRP", "N", "NS"):
            plain = following.tag not in ("N", "NS", "W", "POS") and (token.tag != "V" or index < 4)
            return _at_verb(scene, token) if plain else None
    return None


def _at_auxiliary(scene: Scene, index: int, token: Token, following: Token) -> Change | None:
    if following.text in ("not", "never"):
        piece = (token.start, following.end, token.text)
        return Change((piece,), "deny-out", "contradicted", "contradicted")
    if (token.tag == "H" and following.tag not in ("VD", "R", "B")) or token.text in ("cannot", "being", "been", "be"):
        return None
    if denied(scene.sentence, index + 3):
        return None
    word = scene.rng.choice(("not", "not", "not", "never"))
    if word == "never" and token.text in ("is", "are"):
        word = "not"
    if token.tag == "B" and following.tag == "VD" and scene.rng.random() < 0.1:
        word = "no longer"
    return Change(((token.start, token.end, f"{token.text} {word}"),), "deny-in", "contradicted", "contradicted")


def _at_verb(scene: Scene, token: Token) -> Change | None:
    if denied(scene.sentence, scene.sentence.token_at(token.end) + 2):
        return None
    word = {"VD": "did not", "VZ": "does not", "V": "do not"}[token.tag]
    new = f"{word} {token.base}"
    roll = scene.rng.random()
    if token.tag == "VD" and roll < 0.3:
        new = f"never {token.text}" if roll < 0.15 else f"failed to {token.base}"
    elif token.tag == "VZ" and roll < 0.2:
        new = f"fails to {token.base}"
    return Change(((token.start, token.end, new),), "deny-in", "contradicted", "contradicted")


def cause(scene: Scene) -> Change | None:
    """Cause and effect change places."""
    match = _CAUSE.match(scene.text)
    if not match or denied(scene.sentence, len(scene.sentence.tokens)):
        return None
    first, second = match.group(1), match.group(3)
    opening = scene.sentence.tokens[0]
    verb = scene.sentence.token_at(match.start(2) + 1)
    if "because" not in match.group(2) and scene.sentence.tokens[verb - 1].tag not in ("N", "NS", "NAME"):
        return None
    if opening.tag == "PRP" or re.match(r"(?:it|they|he|she|this|of|that)\b", second):
        return None
    lowered = first if opening.tag == "NAME" else first[:1].lower() + first[1:]
    raised = second[:1].upper() + second[1:]
    pieces = ((0, match.end(1), raised), (match.start(3), match.end(3), lowered))
    return Change(pieces, "cause", "contradicted", None)


def addition(scene: Scene) -> Change | None:
    """A place, time, reason, manner or quality that the text does not give."""
    makers = [_quality, _manner, _tail, _tail]
    scene.rng.shuffle(makers)
    for maker in makers:
        change = maker(scene)
        if change:
            return change
    return None


def _quality(scene: Scene) -> Change | None:
    tokens = scene.sentence.tokens
    spots = [
        index
        for index, token in enumerate(tokens)
        if token.tag in ("N", "NS") and token.sure > 0.8 and index and tokens[index - 1].text.lower() in _BEFORE
    ]
    if not spots:
        return None
    index = scene.rng.choice(spots)
    word = scene.rng.choice(_ADJECTIVES)
    if word in scene.words:
        return None
    before = tokens[index - 1]
    pieces = [(tokens[index].start, tokens[index].start, f"{word} ")]
    if before.text.lower() in ("a", "an"):
        pieces.insert(0, (before.start, before.end, inflect.like(before.text, inflect.article(word))))
    return Change(tuple(pieces), "added-quality", "not_in_context", "supported")


def _manner(scene: Scene) -> Change | None:
    tokens = scene.sentence.tokens
    spots = [i for i, t in enumerate(tokens) if t.tag == "VD" and t.sure > 0.85 and i and tokens[i - 1].tag in ("NAME", "PRP", "B", "N")]  # noqa: E501  # fmt: skip
    word = scene.rng.choice(_ADVERBS)
    if not spots or word in scene.words:
        return None
    start = tokens[scene.rng.choice(spots)].start
    return Change(((start, start, f"{word} "),), "added-manner", "not_in_context", "supported")


def _tail(scene: Scene) -> Change | None:
    roll = scene.rng.random()
    if roll < 0.5:
        tail = scene.rng.choice(_PURPOSES)
    elif roll < 0.75:
        tail = f"in {scene.rng.choice(_PLACES)}"
    else:
        tail = (
            f"in {scene.rng.randint(1880, 2022)}"
            if roll < 0.9
            else f"on {scene.rng.choice(MONTHS)} {scene.rng.randint(1, 28)}, {scene.rng.randint(1900, 2021)}"
        )
    last = scene.text.rstrip(".").split()[-6:]
    content = [word for word in tail.split() if len(word) > 3 or word[0].isdigit()]
    if {word.lower() for word in content} & scene.words or tail in scene.text or tail.split()[0] in last:
        return None
    if roll >= 0.5 and re.search(r"\b(?:1[5-9]|20)\d\d\b", scene.text) and roll >= 0.75:
        return None
    end = len(scene.text.rstrip('."'))
    return Change(((end, end, f" {tail}"),), "added-tail", "not_in_context", "supported")


def clause(scene: Scene) -> Change | None:
    """Half of another sentence, said of this one's subject."""
    if not scene.world.predicates:
        return None
    tail = scene.rng.choice(scene.world.predicates)
    end = len(scene.text.rstrip('."'))
    if len(scene.text) > 180 or any(word.lower() in scene.words for word in re.findall(r"\d+|[A-Z]\w+", tail)):
        return None
    link = scene.rng.choice(
        (" and ", ", and ", " and also " if tail.split()[0] not in ("is", "was", "has") else " and ")
    )
    return Change(((end, end, f"{link}{tail}"),), "added-clause", "not_in_context", "supported")
