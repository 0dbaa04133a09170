"""From an edit to pairs: the claim and its edited twin, each read against the passage and its edited twin.

The four readings (claim, passage), (edited, edited), (edited, passage), (claim, edited) make every word stand as often
in a supported claim as in one that is not, so that no claim gives its label away.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from . import noise, phrasing, quantities
from .cores import core
from .facts import fact
from .marked import Marked, upper
from .rewriting import named, no_linking, rewritings
from .scene import Change, Scene, Verdict, World

_PRONOUN = re.compile(r"^(?:He|She|It|They|His|Her|Its|Their|This|These)\b")
_SPACES = re.compile(r" +(?=[ ,.;])|\.(?=\.$)")


@dataclass(frozen=True, slots=True)
class Pair:
    """A claim, what it is read against, and the verdict."""

    claim: str  # one sentence
    passages: tuple[str, ...]  # the passages, in rank order
    verdict: Verdict  # whether they say so, say otherwise, or say nothing of the kind
    # (start, end) of the claim's characters that are not supported; empty for a supported claim
    spans: tuple[tuple[int, int], ...]
    recipe: str  # how it was made
    group: str  # passage that it was made from (`source:number`); pairs of one group share text and are never split


@dataclass(frozen=True)
class Style:
    """How claims are worded: the chances of each step, and a seed that twins share."""

    seed: int
    verbatim: bool
    fact: bool
    steps: int
    phrase: bool
    numbers: bool
    synonyms: int
    wider: bool
    merged: bool

    @classmethod
    def drawn(cls, rng: random.Random) -> Style:
        """A style."""
        return cls(
            seed=rng.getrandbits(40),
            verbatim=rng.random() < 0.07,
            fact=rng.random() < 0.45,
            steps=rng.choice((1, 2, 2, 3, 4, 5, 6)),
            phrase=rng.random() < 0.6,
            numbers=rng.random() < 0.3,
            synonyms=rng.choice((0, 1, 1, 2, 2, 3, 4)),
            wider=rng.random() < 0.06,
            merged=rng.random() < 0.06,
        )


def title_of(scene: Scene) -> str:
    """The passage's subject, where its title is one that the passage speaks of."""
    title = re.sub(r" \([^)]*\)$", "", scene.passage.title)
    return title if title and title in scene.passage.text and len(title) < 50 else ""


def worded(text: Marked, scene: Scene, style: Style, passage: str) -> Marked:
    """A sentence as a claim in some style; `passage` is what it will be read against."""
    rng = random.Random(style.seed)
    title = title_of(scene)
    if title and (rng.random() < 0.7 or style.fact):
        text = named(title)(text, rng)
    if style.verbatim:
        return text
    opening = text
    text = no_linking(text, rng)
    short = (fact(text, rng) or core(text, rng, scene.world.lexicon)) if style.fact else None
    fits = short and (short.changed or not text.changed)
    text = short if short and fits else _rewritten(text, scene, style, rng, title)
    if style.merged:
        text = _merged(text, scene, passage)
    if style.numbers:
        text = quantities.rewritten(text, rng)
    if style.phrase:
        text = phrasing.phrases(text, rng)
    if style.wider:
        text = phrasing.wider(text, rng, scene.world.lexicon, passage)
    if style.synonyms:
        text = phrasing.synonyms(text, rng, scene.world.lexicon, passage, most=style.synonyms)
    if text.text == opening.text:
        text = _otherwise(text, scene, rng, title)
    return upper(text.sub(_SPACES, "", count=20).strip())


def _otherwise(text: Marked, scene: Scene, rng: random.Random, title: str) -> Marked:
    """A sentence that no step of its style fitted, by the first that does; a claim is seldom a copy."""
    steps = rewritings(title, person=scene.world.kind(title) == "person")
    for step in rng.sample(steps, len(steps)):
        new = step(text, rng)
        if new.text != text.text and len(new.text.split()) >= 4 and (new.changed or not text.changed):
            text = new
            break
    text = phrasing.phrases(quantities.rewritten(text, rng), rng)
    return phrasing.synonyms(text, rng, scene.world.lexicon, "", most=3)


def _rewritten(text: Marked, scene: Scene, style: Style, rng: random.Random, title: str) -> Marked:
    steps = rewritings(title, person=scene.world.kind(title) == "person")
    wanted = max(style.steps, 3) if len(text.text.split()) > 25 else style.steps
    for step in rng.sample(steps, min(2 * wanted, len(steps))):
        new = step(text, rng)
        if len(new.text.split()) >= 4 and (new.changed or not text.changed):
            text = new
    return text


def _merged(text: Marked, scene: Scene, passage: str) -> Marked:
    """With the next sentence behind it, where that goes on about the same subject."""
    after = next((span for span in scene.passage.sentences if span[0] > scene.start), None)
    if not after or len(text.text) > 140:
        return text
    second = scene.passage.text[after[0] : after[1]]
    match = re.match(r"(?:He|She|It|They) ((?:is|was|were|are|has|had|[a-z]+ed) .*)", second)
    if not match or second not in passage or len(second) > 140:
        return text
    return Marked.join((text.cut(0, len(text.text.rstrip(" ."))), " and ", match.group(1)))


def loosened(text: Marked, scene: Scene, rng: random.Random) -> str:
    """The sentence as its passage says it, now and then in other words: a claim ought not to be a copy."""
    if rng.random() > 0.6:
        return text.text
    for _ in range(rng.choice((1, 2))):
        text = phrasing.phrases(text, rng)
    return phrasing.synonyms(text, rng, scene.world.lexicon, "", most=rng.choice((1, 2, 3, 4))).text


def dressed(
    text: str,
    scene: Scene,
    rng: random.Random,
    *,
    against: Sequence[str] = (),
    decoys: Sequence[str] = (),
    alone: bool = False,
) -> tuple[str, ...]:
    """A passage among others, with page furniture now and then.

    No other passage holds a word of `against` but the `decoys`, which are there for the words they hold; with `alone`
    there is no other, since the claim does not name whom it speaks of.
    """
    roll = rng.random()
    main = noise.furnished(text, rng) if roll < 0.12 else noise.spoken(text, rng) if roll < 0.18 else text
    others = [noise.furnished(decoy, rng) if rng.random() < 0.08 else decoy for decoy in decoys]
    if alone or (not others and rng.random() > 0.3):
        return (main,)
    if others and rng.random() < 0.7:
        others.insert(rng.randint(0, len(others)), main)
        return tuple(others)
    near = [scene.world.by_id[key].text for key in scene.passage.near if key in scene.world.by_id]
    for _ in range(rng.randint(1, 3)):
        other = rng.choice(near) if near and rng.random() < 0.6 else rng.choice(scene.world.corpus.passages).text
        if other in others or other == scene.passage.text or any(word in other for word in against):
            continue
        others.append(noise.furnished(other, rng) if rng.random() < 0.08 else other)
    others.insert(rng.randint(0, len(others)), main)
    return tuple(others)


def pair(
    claim: Marked, passages: tuple[str, ...], verdict: Verdict, recipe: str, scene: Scene, *, rng: random.Random
) -> Pair:
    """A pair; the claim's marks become its unsupported span unless it is supported."""
    text = claim.text
    if rng.random() < 0.07:
        passages = tuple(noise.treebank(part) for part in passages)
    spans = () if verdict == "supported" else claim.spans() or ((0, len(text)),)
    return Pair(text, passages, verdict, spans, recipe, scene.passage.id)


def pronominal(claim: Marked) -> bool:
    """Whether a claim speaks of somebody it does not name."""
    return bool(_PRONOUN.match(claim.text))


def _decoys(scene: Scene, change: Change) -> tuple[str, ...]:
    """Other passages that hold the old and the new words, so that both twins find all their words somewhere."""
    found: list[str] = []
    for start, end, new in change.pieces[:1]:
        for words in (scene.text[start:end], new):
            bare = re.sub(r"^(?:an?|the) ", "", words.strip(), flags=re.IGNORECASE)
            decoy = scene.world.decoy(bare, scene) if bare else None
            if decoy and decoy not in found:
                found.append(decoy)
    scene.rng.shuffle(found)
    return tuple(found)


def of_change(scene: Scene, change: Change, rng: random.Random) -> list[Pair]:
    """The readings of a claim and its edited twin."""
    styles = (Style.drawn(rng), Style.drawn(rng))
    old, new = change.old(scene.text), change.new(scene.text)
    passage = scene.saying(loosened(old, scene, rng))
    edited = scene.saying(loosened(new, scene, rng), change.words)
    if rng.random() < 0.6:
        styles = (styles[0], styles[0])
    claims = []
    for text, style, context in ((old, styles[0], passage), (new, styles[1], edited)):
        made = worded(text, scene, style, context)
        if text.changed and not made.changed:
            made = text
        claims.append(made)
    claim, twin = claims
    if claim.text.lower() == twin.text.lower():
        return []
    fresh = [text for _, _, text in change.pieces if len(text) > 3]
    alone = pronominal(claim) or pronominal(twin)
    decoys = () if alone or rng.random() < 0.35 else _decoys(scene, change)
    recipe = change.recipe
    found: list[tuple[Marked, str, Verdict, str]] = [
        (twin, passage, change.verdict, recipe),
        (twin, edited, "supported", f"{recipe}+"),
    ]
    if change.back:
        found.append((claim, edited, change.back, f"{recipe}~"))
    if change.back != "supported":
        found.append((claim, passage, "supported", f"{recipe}="))
    if change.back is None:
        found = found[:2] if rng.random() < 0.7 else found
    readings = []
    for text, context, verdict, name in found:
        passages = dressed(context, scene, rng, against=fresh, decoys=decoys, alone=alone)
        readings.append(pair(text, passages, verdict, name, scene, rng=rng))
    return readings


def scene_of(world: World, rng: random.Random) -> Scene:
    """A sentence drawn at random."""
    passage, index = rng.choice(world.scenes)
    start, end = passage.sentences[index]
    return Scene(world, passage, start, end, rng)
