"""Edits of names: another name in the place of one, two names that change places, two noun phrases that do."""

import re

from ragwatch.judges.claims.words import terms

from .cores import phrase
from .reading import Name
from .scene import Change, Scene, Verdict

_TYPED = ("person", "country", "city", "state", "place", "organisation")
_EVEN = re.compile(
    r"\b(?:and|or|with|between|met|married|among|versus|vs|sister|brother|co-\w+|together|both|joined|border\w*|cousins?"
    r"|known as|called|formerly)\b"
    r"|^,? ?$|^[ ,/–-]+$|^ \($"
)
_MONTH = re.compile(r"\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\b")
_ACTIVE = frozenset({"VD", "VZ", "B"})
_BY = re.compile(r"\b(?:by|than|of|to|from|after|before|over|against|in|under|behind|for)\b")


def name(scene: Scene) -> Change | None:
    """A name replaced by another of its type, from the same passage or from elsewhere."""
    rng, world = scene.rng, scene.world
    names = [item for item in scene.sentence.names if world.kind(item.text) in _TYPED]
    rng.shuffle(names)
    for item in names:
        kind = world.kind(item.text)
        if rng.random() < 0.5:
            new = _from_passage(scene, item, kind)
            if new:
                return Change(((item.start, item.end, new),), "name-near", _verdict(scene, item), None)
        new = rng.choice(world.names[kind])
        if new in scene.passage.text or len(new.split()) > 5 or set(new.lower().split()) & scene.words - _SMALL:
            continue
        verdict = _verdict(scene, item)
        words = [(item.text, new)]
        old_parts, new_parts = item.text.split(), new.split()
        if kind == "person" and len(old_parts) > 1:
            words.append((old_parts[-1], new_parts[-1]))
        return Change(((item.start, item.end, new),), "name-far", verdict, verdict, tuple(words))
    return None


_SMALL = frozenset({"of", "the", "and", "for", "de", "la"})


def _verdict(scene: Scene, item: Name) -> Verdict:
    """Another subject is not spoken of; another item of a list may be true as well; another attribute is not."""
    before, after = scene.text[: item.start], scene.text[item.end :]
    index = scene.sentence.token_at(item.end)
    tags = [token.tag for token in scene.sentence.tokens[index : index + 2]]
    listed = r"(?:,|and|or|including|&) $"
    place = scene.world.kind(item.text) in ("country", "city", "state", "place")
    following = r",? (?:and|or|&)\b" if place else r",? (?:and|or|&)\b|, [A-Z]"
    subject = item.start < 5 or (tags and tags[0] in ("VD", "VZ", "B", "H", "M"))
    if subject or re.search(listed, before) or re.match(following, after):
        return "not_in_context"
    return "contradicted"


def _from_passage(scene: Scene, item: Name, kind: str) -> str | None:
    """A name of the type that another sentence of the passage holds, where that sentence says something else of it."""
    around = set(terms(scene.text[max(0, item.start - 60) : item.end + 60])) - set(terms(item.text))
    found: list[str] = []
    for start, end in scene.passage.sentences:
        text = scene.passage.text[start:end]
        if start == scene.start or len(around & set(terms(text))) > 0:
            continue
        found += [other for other in scene.world.names_in(text) if scene.world.kind(other) == kind]
    found = [other for other in found if other not in scene.text and other not in item.text]
    found = [other for other in found if not set(other.split()) & set(scene.text.split())]
    return scene.rng.choice(found) if found else None


def roles(scene: Scene) -> Change | None:
    """Two names of one type, on two sides of a verb or a preposition, change places."""
    names, text = scene.sentence.names, scene.text
    pairs = [
        (first, second)
        for number, first in enumerate(names)
        for second in names[number + 1 : number + 3]
        if _swappable(scene, first, second, text[first.end : second.start])
    ]
    if not pairs:
        return None
    first, second = scene.rng.choice(pairs)
    pieces = ((first.start, first.end, second.text), (second.start, second.end, first.text))
    return Change(pieces, "roles", "contradicted", "contradicted")


def _swappable(scene: Scene, first: Name, second: Name, between: str) -> bool:
    world = scene.world
    kind = world.kind(first.text)
    if min(len(first.text), len(second.text)) < 3 or _MONTH.search(f"{first.text} {second.text}"):
        return False
    if kind != world.kind(second.text) or _EVEN.search(between) or set(first.text.split()) & set(second.text.split()):
        return False
    if (kind == "other" and " by " not in between) or len(between) > 70:
        return False
    start, end = scene.sentence.token_at(first.end), scene.sentence.token_at(second.start)
    verb = any(token.tag in _ACTIVE for token in scene.sentence.tokens[start:end])
    return (verb or bool(_BY.search(between))) and not re.search(r"[;:]", between)


def phrases(scene: Scene) -> Change | None:
    """Subject and object of a plain sentence change places."""
    tokens = scene.sentence.tokens
    subject = phrase(tokens, 0)
    if not subject or subject >= len(tokens) or tokens[subject].tag not in ("VD", "VZ") or tokens[subject].sure < 0.8:
        return None
    if tokens[subject].base in (
        "be",
        "have",
        "become",
        "meet",
        "marry",
        "join",
        "include",
        "contain",
        "remain",
        "say",
        "take",
        "give",
        "make",
        "begin",
        "start",
        "win",
    ):
        return None
    last = phrase(tokens, subject + 1)
    if (
        not last
        or last >= len(tokens)
        or tokens[last].text not in (".", "in", "on", "at", "after", "during", "with", ",")
    ):
        return None
    first_start, first_end = tokens[0].start, tokens[subject - 1].end
    second_start, second_end = tokens[subject + 1].start, tokens[last - 1].end
    first, second = scene.text[first_start:first_end], scene.text[second_start:second_end]
    if first.lower() in second.lower() or second.lower() in first.lower() or tokens[0].tag == "PRP":
        return None
    lowered = first[:1].lower() + first[1:] if tokens[0].tag == "D" else first
    raised = second[:1].upper() + second[1:]
    return Change(((first_start, first_end, raised), (second_start, second_end, lowered)), "phrases", "contradicted", "contradicted")  # noqa: E501  # fmt: skip
