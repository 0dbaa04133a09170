"""Synthetic pairs (claim, passages) for the training of the embedded judge's reader, made from real passages.

`pairs(seed, count)` yields them, the same for the same seed. Training only: nothing of this is shipped.
Needs WordNet's files (Debian: `apt-get install wordnet-base`; see `synthesis/wordnet.py`).
"""

import random
from collections.abc import Iterator

from . import crossing, recipes
from .corpus import Corpus, shared
from .lexicon import Lexicon
from .making import Pair
from .scene import World
from .wordnet import WordNet

__all__ = ["Pair", "pairs"]

_MAKERS = (
    *((recipes.edited, 13.0), (recipes.true, 2.0), (recipes.elsewhere, 3.0), (crossing.moved, 0.7)),
    *((recipes.bounded, 1.2), (recipes.answered, 2.0), (crossing.crossed, 1.2)),
)


def pairs(seed: int, count: int, *, corpus: Corpus | None = None, lexicon: Lexicon | None = None) -> Iterator[Pair]:
    """`count` pairs; readings of one edit come one after the other, so shuffle before training.

    Raises:
        FileNotFoundError: WordNet or the data are not there; the text says what to install.
    """
    world = World(corpus or shared(), lexicon or Lexicon(WordNet()))
    rng = random.Random(seed)
    makers, weights = [maker for maker, _ in _MAKERS], [weight for _, weight in _MAKERS]
    made = 0
    while made < count:
        maker = rng.choices(makers, weights)[0]
        for found in _tried(maker, world, rng):
            if made < count:
                made += 1
                yield found


def _tried(maker: recipes.Maker, world: World, rng: random.Random) -> list[Pair]:
    """What a maker makes of the first sentence that suits it."""
    for _ in range(60):
        found = maker(world, rng)
        if found:
            return found
    return []
