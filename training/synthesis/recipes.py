"""The recipes: sentences edited, true claims, facts that stand elsewhere, counts bounded, answers."""

import random
import re
from collections.abc import Callable

from ragwatch.judges.claims.words import terms

from . import hedges, logic, naming, quantities, tenses, wording
from .corpus import Answer, Passage
from .making import Pair, Style, dressed, loosened, of_change, pair, pronominal, scene_of, worded
from .marked import Marked
from .scene import Scene, Verdict, World, replaced

_COUNT = re.compile(r"(?<![\w$.,-])(\d{1,3}(?:,\d{3})+|\d{2,})(?= [a-z]{3,})(?! (?:and|january|percent|per cent|million|billion|bc|ad)\b)")  # noqa: E501  # fmt: skip
_BOUNDED = re.compile(r"(?:than|about|over|under|nearly|almost|least|most|around|approximately|some|to|and|between|the|of|last|next|first|past|--|–|over|No\.|[A-Z]\w+) $")  # noqa: E501  # fmt: skip
_YEAR = re.compile(r"\bin ((?:1[5-9]|20)\d\d)\b")


def true(world: World, rng: random.Random) -> list[Pair]:
    """A claim that follows."""
    scene = scene_of(world, rng)
    claim = worded(Marked.of(scene.text), scene, Style.drawn(rng), scene.passage.text)
    passages = dressed(scene.saying(loosened(Marked.of(scene.text), scene, rng)), scene, rng, alone=pronominal(claim))
    return [pair(claim, passages, "supported", "true", scene, rng=rng)]


def elsewhere(world: World, rng: random.Random) -> list[Pair]:
    """A claim read against the passage without its sentence, or against a neighbouring passage; and against its own."""
    scene = scene_of(world, rng)
    claim = worded(Marked.of(scene.text), scene, Style.drawn(rng), scene.passage.text)
    wanted = set(terms(claim.text))
    near = [world.by_id[key].text for key in scene.passage.near if key in world.by_id]
    rest = scene.rest()
    if rng.random() < 0.6 and len(rest) > 120:
        text, recipe = rest, "elsewhere-cut"
    else:
        text, recipe = (rng.choice(near) if near else rng.choice(world.corpus.passages).text), "elsewhere-near"
    if not wanted or not 0.15 <= len(wanted & set(terms(text))) / len(wanted) <= 0.65:
        return []
    missing = Marked(claim.text, "1" * len(claim.text))
    texts = [text]
    for other in rng.sample(near, min(len(near), rng.choice((0, 0, 1, 2)))):
        if other != text and len(wanted & set(terms(" ".join([*texts, other])))) <= 0.7 * len(wanted):
            texts.append(other)
    return [
        pair(missing, tuple(texts), "not_in_context", recipe, scene, rng=rng),
        pair(
            claim,
            dressed(scene.passage.text, scene, rng, alone=pronominal(claim)),
            "supported",
            f"{recipe}+",
            scene,
            rng=rng,
        ),
    ]


def bounded(world: World, rng: random.Random) -> list[Pair]:
    """A count or a year held against a bound: more than, fewer than, before, after."""
    scene = scene_of(world, rng)
    counts = [match for match in _COUNT.finditer(scene.text) if not _BOUNDED.search(scene.text[: match.start()])]
    counts = [match for match in counts if not re.fullmatch(r"(?:1[5-9]|20)\d\d", match.group())]
    years = list(_YEAR.finditer(scene.text))
    if not counts and not years:
        return []
    if counts and (not years or rng.random() < 0.7):
        match = rng.choice(counts)
        value = int(match.group().replace(",", ""))
        options = _count_bounds(value, rng)
        place = match.span(1)
    else:
        match = rng.choice(years)
        value = int(match.group(1))
        low, high = value - rng.choice((1, 2, 3, 5, 8, 12)), value + rng.choice((1, 2, 3, 5, 8, 12))
        options = [(f"after {low}", True), (f"before {high}", True), (f"before {low}", False), (f"after {high}", False)]
        place = match.span()
    style = Style.drawn(rng)
    passage = scene.saying(loosened(Marked.of(scene.text), scene, rng))
    found = []
    for words, holds in rng.sample(options, 2):
        text = Marked.of(scene.text).put(*place, words, changed=True)
        claim = worded(text, scene, style, scene.passage.text)
        claim = claim if claim.changed else text
        verdict: Verdict = "supported" if holds else "contradicted"
        found.append(
            pair(
                claim,
                dressed(passage, scene, rng, alone=pronominal(claim)),
                verdict,
                f"bounded{'+' * holds}",
                scene,
                rng=rng,
            )
        )
    return found


def _count_bounds(value: int, rng: random.Random) -> list[tuple[str, bool]]:
    digits = 10 ** max(0, len(str(value)) - 2)
    low = max(1, int(value * rng.choice((0.5, 0.7, 0.8, 0.9))) // digits * digits)
    high = (int(value * rng.choice((1.2, 1.4, 1.6, 2.0))) // digits + 1) * digits
    below, above = f"{low:,}", f"{high:,}"
    floors = ("more than", "over", "at least")
    held = [*((f"{floor} {below}", True) for floor in floors), (f"fewer than {above}", True)]
    return [*held, *((f"{floor} {above}", False) for floor in floors), (f"fewer than {below}", False)]


CHANGES = (
    *((wording.kind, 7.0), (wording.opposite, 4.5), (quantities.number, 4.5), (naming.name, 5.0), (naming.roles, 3.0)),
    *((naming.phrases, 1.0), (wording.flip, 2.0), (hedges.stronger, 2.5), (logic.deny, 3.0), (logic.cause, 0.5)),
    *((logic.addition, 4.5), (logic.clause, 1.0), (hedges.quantifier, 2.0), (tenses.tense, 1.5)),
)
"""Edits of one sentence and how often each is tried."""


def answered(world: World, rng: random.Random) -> list[Pair]:
    """A sentence that a person wrote over passages, as it is and edited, its passages edited likewise if possible."""
    answer = rng.choice(world.corpus.answers) if world.corpus.answers else None
    if not answer or not _carried(answer):
        return []
    whole = f"{answer.text}\n" + "\n".join(answer.passages)
    scene = Scene(world, Passage(answer.group, "", whole, ((0, len(answer.text)),)), 0, len(answer.text), rng)
    makers = (wording.kind, quantities.number, naming.name, wording.opposite, naming.roles)
    change = rng.choice(makers)(scene)
    if not change:
        return []
    style = Style.drawn(rng)
    old, new = change.old(answer.text), change.new(answer.text)
    claims = [worded(text, scene, style, whole) for text in (old, new)]
    claims = [made if made.changed or not text.changed else text for made, text in zip(claims, (old, new), strict=True)]
    found = [
        pair(claims[1], answer.passages, change.verdict, f"answered-{change.recipe}", scene, rng=rng),
        pair(claims[0], answer.passages, "supported", f"answered-{change.recipe}=", scene, rng=rng),
    ]
    moved_text = answer.passages
    for before, after in change.words:
        moved_text = tuple(replaced(text, before, after) for text in moved_text)
    if change.words and change.back and any(change.words[0][0] in text for text in answer.passages):
        found.append(pair(claims[1], moved_text, "supported", f"answered-{change.recipe}+", scene, rng=rng))
        found.append(pair(claims[0], moved_text, change.back, f"answered-{change.recipe}~", scene, rng=rng))
    return found


def _carried(answer: Answer) -> bool:
    """Whether the passages hold nearly every word of the answer; people answer from memory too."""
    wanted = set(terms(answer.text))
    held = set(terms(" ".join(answer.passages)))
    return len(wanted) > 3 and len(wanted & held) >= 0.9 * len(wanted)


def edited(world: World, rng: random.Random) -> list[Pair]:
    """One edit of one sentence, read all ways round."""
    maker = rng.choices([item for item, _ in CHANGES], [weight for _, weight in CHANGES])[0]
    for _ in range(40):
        scene = scene_of(world, rng)
        change = maker(scene)
        if change:
            return of_change(scene, change, rng)
    return []


Maker = Callable[[World, random.Random], list[Pair]]
