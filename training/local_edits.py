"""Edits: one small thing changed in a claim that its passage supports, so that overlap alone never decides.

`training/synthesis` makes claims out of passages; this module breaks claims that people wrote, which say things in
their own words. Every edit knows the characters it changed.
"""

import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ragwatch.judges.claims.words import fold, terms

_NUMBER = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)*(?![\w])")
_NAME = re.compile(r"(?<![\w'’-])(?:[A-Z][\w'’-]+)(?:\s+(?:of\s+|the\s+)?[A-Z][\w'’-]+){0,3}")
_AUXILIARY = re.compile(
    r"\b(?:is|are|was|were|can|could|will|would|should|has|have|had|may|must|does|do|did)\b(?! not\b)"
)
_NOT = re.compile(r"\b(?:not|never)\s+")
_OPENERS = frozenset({"The", "A", "An", "In", "It", "This", "That", "These", "He", "She", "They", "We", "You", "I", "If", "On", "At", "As", "For", "To", "Yes", "No", "However", "Some"})  # noqa: E501  # fmt: skip
_OPPOSITES = """
increase:decrease increased:decreased increases:decreases increasing:decreasing higher:lower high:low more:less
most:least larger:smaller large:small largest:smallest first:last before:after above:below over:under
always:never all:none many:few best:worst better:worse good:bad early:late earlier:later north:south
northern:southern east:west eastern:western male:female men:women man:woman father:mother brother:sister
son:daughter husband:wife boy:girl win:lose won:lost accept:reject accepted:rejected allow:prohibit
allowed:prohibited allows:prohibits include:exclude includes:excludes including:excluding with:without
positive:negative public:private old:new older:newer hot:cold warm:cool strong:weak begin:end began:ended
starts:ends started:finished open:closed rise:fall rose:fell possible:impossible common:rare easy:difficult
fast:slow long:short longer:shorter day:night summer:winter rich:poor safe:dangerous simple:complex
success:failure successful:unsuccessful support:oppose supported:opposed buy:sell bought:sold gain:loss
import:export internal:external minimum:maximum likely:unlikely agree:disagree agreed:disagreed true:false
major:minor only:also American:British Chinese:Japanese French:German English:Spanish Christian:Muslim
Democratic:Republican actor:singer actress:singer film:novel movie:album song:film band:film book:film
city:village country:city king:president director:producer writer:painter singer:dancer politician:athlete
football:basketball television:radio river:mountain January:June February:October March:September April:November
May:December July:August Monday:Thursday Tuesday:Friday million:billion hundred:thousand two:three four:six
five:eight seven:nine once:twice second:third daily:weekly monthly:yearly
"""
OPPOSITES = {
    one: other for pair in _OPPOSITES.split() for one, other in (pair.split(":"), pair.split(":")[::-1]) if one
}
_WORD = re.compile(r"[A-Za-z]+")


class Edit(NamedTuple):
    """A claim with one change, where it lies, and what kind it is."""

    text: str
    spans: tuple[tuple[int, int], ...]
    kind: str


def _put(claim: str, start: int, end: int, new: str, kind: str) -> Edit:
    return Edit(claim[:start] + new + claim[end:], ((start, start + max(1, len(new.rstrip()))),), kind)


def number(claim: str, passage: str, rng: random.Random) -> Edit | None:
    """Another number: one that the passage has elsewhere, or a near one."""
    found = list(_NUMBER.finditer(claim))
    if not found:
        return None
    one = rng.choice(found)
    rest = sorted(
        {other for other in _NUMBER.findall(passage) if other not in claim and len(other) == len(one.group())}
    )
    if rest and rng.random() < 0.6:
        return _put(claim, one.start(), one.end(), rng.choice(rest), "number")
    digits = list(one.group())
    place = rng.choice([index for index, digit in enumerate(digits) if digit.isdigit()])
    digits[place] = rng.choice([digit for digit in "123456789" if digit != digits[place]])
    return _put(claim, one.start(), one.end(), "".join(digits), "number")


def _names(text: str) -> list[re.Match[str]]:
    return [one for one in _NAME.finditer(text) if one.group().split()[0] not in _OPENERS and one.start() > 0]


def name(claim: str, passage: str, rng: random.Random) -> Edit | None:
    """Another name: one that the passage holds and the claim does not."""
    found = _names(claim)
    held = fold(claim)
    rest = sorted({one.group() for one in _names(passage) if fold(one.group()) not in held})
    if not found or not rest:
        return None
    one = rng.choice(found)
    near = [other for other in rest if len(other.split()) == len(one.group().split())] or rest
    new = rng.choice(near)
    if set(terms(new)) & set(terms(one.group())):
        return None
    return _put(claim, one.start(), one.end(), new, "name")


def roles(claim: str, passage: str, rng: random.Random) -> Edit | None:  # noqa: ARG001  # one form for all edits
    """Two names change places."""
    found = _names(claim)
    if len(found) < 2:
        return None
    one, two = sorted(rng.sample(found, 2), key=lambda match: match.start())
    if re.search(r"^\W*(?:and|or|,|&)\W*$", claim[one.end() : two.start()]) or one.group() == two.group():
        return None
    text = claim[: one.start()] + two.group() + claim[one.end() : two.start()] + one.group() + claim[two.end() :]
    shift = len(two.group()) - len(one.group())
    return Edit(text, ((one.start(), one.end() + shift), (two.start() + shift, two.end())), "roles")


def negation(claim: str, passage: str, rng: random.Random) -> Edit | None:  # noqa: ARG001
    """A "not" put in, or taken out."""
    gone = _NOT.search(claim)
    if gone:
        text = claim[: gone.start()] + claim[gone.end() :]
        before = claim[: gone.start()].rstrip().rfind(" ") + 1
        return Edit(text, ((before, gone.start() + 1),), "negation")
    found = list(_AUXILIARY.finditer(claim))
    if not found:
        return None
    one = found[0] if rng.random() < 0.7 else rng.choice(found)
    return Edit(claim[: one.end()] + " not" + claim[one.end() :], ((one.start(), one.end() + 4),), "negation")


def opposite(claim: str, passage: str, rng: random.Random) -> Edit | None:  # noqa: ARG001
    """A word's opposite or sibling."""
    found = [one for one in _WORD.finditer(claim) if one.group() in OPPOSITES or one.group().lower() in OPPOSITES]
    if not found:
        return None
    one = rng.choice(found)
    new = OPPOSITES.get(one.group()) or OPPOSITES[one.group().lower()]
    return _put(claim, one.start(), one.end(), new, "opposite")


def word(claim: str, passage: str, rng: random.Random) -> Edit | None:
    """A long word of the claim gives way to a word of the passage with the same ending."""
    held = set(terms(claim))
    found = [one for one in _WORD.finditer(claim) if len(one.group()) >= 5 and one.group().islower()]
    rng.shuffle(found)
    rest = sorted({other for other in _WORD.findall(passage) if len(other) >= 5 and other.islower() and not held & set(terms(other))})  # noqa: E501  # fmt: skip
    for one in found[:4]:
        alike = [other for other in rest if other[-3:] == one.group()[-3:]]
        if alike:
            return _put(claim, one.start(), one.end(), rng.choice(alike), "word")
    return None


KINDS: Sequence[Callable[[str, str, random.Random], Edit | None]] = (number, name, roles, negation, opposite, word)
SWAPS = (name, roles, number)
"""Edits that put a name or a number where another belongs; words alone see little of them."""


def edits(
    claim: str,
    passage: str,
    rng: random.Random,
    most: int,
    among: Sequence[Callable[[str, str, random.Random], Edit | None]] = KINDS,
) -> list[Edit]:
    """Up to `most` edits of a claim, of different kinds."""
    kinds = rng.sample(among, len(among))
    made = [found for kind in kinds if (found := kind(claim, passage, rng)) and found.text != claim]
    return made[:most]
