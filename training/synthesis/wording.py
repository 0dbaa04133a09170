"""Edits of single words: opposites, other kinds of the same thing, comparatives, time order."""

import re

from . import inflect
from .lists import words
from .reading import Sentence, Token
from .scene import Change, Scene

_SURE = 0.72
CLASSES = {"N": "N", "NS": "N", "V": "V", "VZ": "V", "VG": "V", "VD": "V", "J": "J", "R": "R"}
_DENY = words("not no never without neither nor unlike n't none nobody nothing unless if whether rather")
_TURNED = (
    *(("before", "after"), ("more", "less"), ("fewer", "more"), ("most", "least"), ("over", "under")),
    *(("first", "last"), ("above", "below"), ("with", "without"), ("earlier", "later")),
)
_FLIPS = {new: old for old, new in _TURNED} | dict(_TURNED)
_FLIP = re.compile(
    r"\b(?:(before|after) (?=[\w'])|(more|less|fewer) (?=than\b|[a-z]+(?:ive|ous|ent|ant|al|ful|able|ible|ed)\b)"
    r"|(most|least) (?=[a-z]+(?:ive|ous|ent|ant|al|ful|able|ible|ed)\b)|(over|under) (?=[\d$]|half\b)"
    r"|(?<=the )(first|last) (?=[a-z])|(above|below) (?=the |\d|average)|(with|without) (?=an? |any )"
    r"|(earlier|later) (?=than))"
)


def denied(sentence: Sentence, index: int) -> bool:
    """Whether a denial or a condition stands before a token: an edit below it would not turn the sentence's sense."""
    return any(token.text.lower() in _DENY for token in sentence.tokens[:index])


def formed(sentence: Sentence, index: int, base: str, pos: str) -> str:
    """Another word in the form (plural, tense, capitals) of a token."""
    token = sentence.tokens[index]
    if pos == "N":
        word = inflect.plural(base) if token.tag == "NS" else base
    elif pos == "V":
        form = token.tag
        word = inflect.verb(base, "VN" if form == "VD" and _participle(sentence, index) else form)
    else:
        word = base
    return inflect.like(token.text, word)


def _participle(sentence: Sentence, index: int) -> bool:
    """Whether a past form is a participle: `was made`, `has made`, `made by`; not `he made`."""
    token, tokens = sentence.tokens[index], sentence.tokens
    if inflect.verb(token.base, "VN") != inflect.verb(token.base, "VD"):
        return token.text.lower() == inflect.verb(token.base, "VN")
    before = [other.tag for other in tokens[max(0, index - 2) : index]]
    after = tokens[index + 1].text if index + 1 < len(tokens) else ""
    return before[-1:] in (["B"], ["H"]) or (before[-1:] == ["R"] and before[0] in "BH") or after == "by"


def with_article(sentence: Sentence, index: int, new: str) -> tuple[int, int, str]:
    """The piece that puts `new` in the place of a token, its `a` or `an` put right."""
    token = sentence.tokens[index]
    before = sentence.tokens[index - 1] if index else None
    if before and before.text.lower() in ("a", "an") and sentence.text[before.end : token.start] == " ":
        return before.start, token.end, f"{inflect.like(before.text, inflect.article(new))} {new}"
    return token.start, token.end, new


def placed(scene: Scene, index: int, base: str, pos: str) -> tuple[tuple[int, int, str], str]:
    """The piece and the bare new word."""
    new = formed(scene.sentence, index, base, pos)
    start, end, text = with_article(scene.sentence, index, new)
    return (start, end, text), new


def sure_tokens(scene: Scene, tags: tuple[str, ...]) -> list[int]:
    """Indices of tokens that surely are one of some parts of speech."""
    tokens = scene.sentence.tokens
    return [
        index
        for index, token in enumerate(tokens)
        if token.tag in tags and token.sure >= _SURE and len(token.text) > 2
        and not (index + 1 < len(tokens) and tokens[index + 1].text == "-")
        and not (index and tokens[index - 1].text == "-")
    ]  # fmt: skip


def _absent(scene: Scene, base: str, pos: str) -> bool:
    forms = {base, inflect.plural(base) if pos == "N" else base}
    if pos == "V":
        forms |= {inflect.verb(base, form) for form in ("VZ", "VG", "VD", "VN")}
    return not forms & scene.words


def opposite(scene: Scene) -> Change | None:
    """A word turned into its opposite."""
    indices = sure_tokens(scene, ("N", "NS", "V", "VZ", "VG", "VD", "J", "R"))
    scene.rng.shuffle(indices)
    for index in indices:
        token = scene.sentence.tokens[index]
        pos = CLASSES[token.tag]
        fit = [word for word in scene.world.lexicon.opposites(token.base, pos) if _absent(scene, word, pos)]
        if not fit or denied(scene.sentence, index) or token.text[0].isupper():
            continue
        piece, _ = placed(scene, index, scene.rng.choice(fit).replace("_", " "), pos)
        return Change((piece,), f"opposite-{pos}", "contradicted", "contradicted")
    return None


def kind(scene: Scene) -> Change | None:
    """A noun, verb or adjective turned into another of its kind: a director into an actor, British into Irish."""
    indices = sure_tokens(scene, ("N", "NS", "J", "V", "VZ", "VD"))
    scene.rng.shuffle(indices)
    for index in indices:
        token = scene.sentence.tokens[index]
        pos = CLASSES[token.tag]
        if denied(scene.sentence, index) or (index and scene.sentence.tokens[index - 1].text in ("or", "than")):
            continue
        fit = [word for word in scene.world.lexicon.others(token.base, pos) if _absent(scene, word, pos)]
        near = [word for word in fit if not _means_one(scene, word, pos)]
        if not near:
            continue
        base = scene.rng.choice(near)
        piece, new = placed(scene, index, base, pos)
        words_too = ((token.text, new), *_other_number(token, base)) if pos != "V" else ()
        return Change((piece,), f"kind-{pos}", "contradicted", "contradicted", words_too)
    return None


def _means_one(scene: Scene, word: str, pos: str) -> bool:
    """Whether the passage says the word in other words."""
    return any(other in scene.words for other in scene.world.lexicon.synonyms(word, pos))


def _other_number(token: Token, base: str) -> tuple[tuple[str, str], ...]:
    if token.tag == "N":
        return ((inflect.plural(token.base), inflect.plural(base)),)
    return ((token.base, base),) if token.tag == "NS" else ()


def flip(scene: Scene) -> Change | None:
    """Before and after, more and less, first and last, over and under."""
    found = list(_FLIP.finditer(scene.text))
    scene.rng.shuffle(found)
    for match in found:
        word = next(group for group in match.groups() if group)
        start = match.start() + match.group().index(word)
        if denied(scene.sentence, scene.sentence.token_at(start)):
            continue
        new = _FLIPS[word]
        return Change(((start, start + len(word), new),), "flip", "contradicted", "contradicted")
    return None
