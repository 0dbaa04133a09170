"""What is said of one subject, said of another: every word of the claim is in the passages, and the claim is wrong."""

import random

from ragwatch.judges.claims.words import terms

from . import facts, phrasing
from .making import Pair, dressed, pair, scene_of
from .marked import Marked
from .scene import Scene, World

Half = tuple[str, str]


def moved(world: World, rng: random.Random) -> list[Pair]:
    """What one passage says of its subject, said of another passage's subject; true once the passages are exchanged."""
    first = scene_of(world, rng)
    near = [world.by_id[key] for key in first.passage.near if key in world.by_id]
    other = rng.choice(near) if near and rng.random() < 0.7 else rng.choice(world.corpus.passages)
    start, end = other.sentences[0]
    second = Scene(world, other, start, end, rng)
    first = Scene(world, first.passage, *first.passage.sentences[0], rng)
    halves = [_halves(scene) for scene in (first, second)]
    if first.passage.id == other.id or not halves[0] or not halves[1]:
        return []
    (subject, verb, what), (stranger, other_verb, other_what) = halves[0], halves[1]
    if verb != other_verb or set(terms(what)) & set(terms(other_what)) or subject in other.text or stranger in first.passage.text:  # noqa: E501  # fmt: skip
        return []
    texts = (first.passage.text, second.passage.text)
    exchanged = (texts[0].replace(what, other_what, 1), texts[1].replace(other_what, what, 1))
    claim = Marked.join((f"{subject} {verb} ", Marked.of(other_what, changed=True), "."))
    right = Marked.of(f"{subject} {verb} {what}.")
    wrong = Marked.join((f"{subject} {verb} ", Marked.of(what, changed=True), "."))
    return [
        pair(claim, texts, "contradicted", "moved", first, rng=rng),
        pair(claim, exchanged, "supported", "moved+", first, rng=rng),
        pair(right, texts, "supported", "moved=", first, rng=rng),
        pair(wrong, exchanged, "contradicted", "moved~", first, rng=rng),
    ]


def _halves(scene: Scene) -> tuple[str, str, str] | None:
    match = facts.is_a(scene.text)
    if not match or len(match[2].split()) < 2:
        return None
    return match


def crossed(world: World, rng: random.Random) -> list[Pair]:
    """The predicates of two sentences of a passage exchanged between their subjects; true of the exchanged passage."""
    scene = scene_of(world, rng)
    first = _named_half(scene)
    spans = [span for span in scene.passage.sentences if span[0] != scene.start]
    if not first or not spans:
        return []
    second_scene = Scene(world, scene.passage, *rng.choice(spans), rng)
    second = _named_half(second_scene)
    if not second or set(terms(first[0])) & set(terms(second[0])) or set(terms(first[1])) & set(terms(second[1])):
        return []
    if first[0] in second[1] or second[0] in first[1]:
        return []
    text = scene.passage.text
    exchanged = text.replace(scene.text, f"{first[0]} {second[1]}", 1)
    exchanged = exchanged.replace(second_scene.text, f"{second[0]} {first[1]}", 1)
    wrong = Marked.join((f"{first[0]} ", Marked.of(second[1], changed=True)))
    right = Marked.join((f"{first[0]} ", Marked.of(first[1], changed=True)))
    wrong, right = (
        phrasing.synonyms(claim, rng, world.lexicon, "", most=rng.randint(0, 2)) for claim in (wrong, right)
    )
    readings = (
        (wrong, text, "not_in_context", "crossed"),
        (wrong, exchanged, "supported", "crossed+"),
        (right, text, "supported", "crossed="),
        (right, exchanged, "not_in_context", "crossed~"),
    )
    return [pair(claim, dressed(where, scene, rng), verdict, name, scene, rng=rng) for claim, where, verdict, name in readings]  # type: ignore[arg-type]  # noqa: E501  # fmt: skip


def _named_half(scene: Scene) -> Half | None:
    """(name, what is said of it) of a sentence that opens with a name and goes on with a verb, all in one clause."""
    names = scene.sentence.names
    if not names or names[0].start or len(scene.text) > 160 or not scene.text.endswith("."):
        return None
    index = scene.sentence.token_at(names[0].end)
    tokens = scene.sentence.tokens
    if index >= len(tokens) or tokens[index].tag not in ("VD", "VZ", "B", "H") or tokens[index].sure < 0.8:
        return None
    return names[0].text, scene.text[tokens[index].start :]
