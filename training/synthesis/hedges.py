"""Edits of how much a sentence claims: a possibility turned into a certainty, a part into the whole, many into few.

The edited claim says more than the text; a text that said so would have supported the hedged claim.
"""

from collections.abc import Callable
from typing import NamedTuple

from .inflect import like
from .lists import row
from .reading import Token
from .scene import Change, Scene
from .wording import denied

Fit = Callable[[Token | None, Token], bool]


class Ladder(NamedTuple):
    """Hedged words, what says more, and whether the words around are those of a hedge."""

    weak: tuple[str, ...]
    strong: tuple[str, ...]
    fits: Fit


def _before_count(_: Token | None, after: Token) -> bool:
    return after.tag == "CD" or after.text == "$"


def _before_many(_: Token | None, after: Token) -> bool:
    return after.tag == "NS" and after.sure > 0.6


def _before_verb(_: Token | None, after: Token) -> bool:
    return after.tag in ("V", "B", "H")


def _before_to(_: Token | None, after: Token) -> bool:
    return after.text == "to"


def _said_to(before: Token | None, after: Token) -> bool:
    return after.text == "to" and before is not None and before.tag == "B"


def _before_that(_: Token | None, after: Token) -> bool:
    return after.text == "that"


def _anywhere(_: Token | None, after: Token) -> bool:
    return after.tag != "X"


_LADDERS = (
    Ladder(row("may might could"), ("will", "must"), _before_verb),
    Ladder(row("some several many most"), ("all",), _before_many),
    Ladder(row("can should"), ("must",), _before_verb),
    Ladder(row("often usually sometimes generally typically"), ("always",), _anywhere),
    Ladder(row("almost nearly about approximately around"), ("exactly", "more than"), _before_count),
    Ladder(row("mainly mostly primarily largely partly"), ("entirely", "exclusively"), _anywhere),
    Ladder(("suggest",), ("prove",), _before_that),
    Ladder(("suggests",), ("proves",), _before_that),
    Ladder(("suggested",), ("proved",), _before_that),
    Ladder(row("believed thought reported alleged"), ("proven", "known", "confirmed"), _said_to),
    Ladder(row("planned expected intended scheduled"), ("guaranteed",), _said_to),
    Ladder(row("helped tried attempted sought agreed hoped wanted"), ("managed", "refused"), _before_to),
)


def stronger(scene: Scene) -> Change | None:
    """A hedge taken away; nothing is known of the hedged claim once the text is certain."""
    tokens = scene.sentence.tokens
    indices = [index for index, token in enumerate(tokens[:-1]) if token.text.islower()]
    scene.rng.shuffle(indices)
    for index in indices:
        token = tokens[index]
        before = tokens[index - 1] if index else None
        for ladder in _LADDERS:
            if (
                token.text in ladder.weak
                and ladder.fits(before, tokens[index + 1])
                and not denied(scene.sentence, index)
            ):
                piece = (token.start, token.end, scene.rng.choice(ladder.strong))
                return Change((piece,), "stronger", "not_in_context", None)
    return None


_SHARES = {
    "all": ("no",),
    "every": ("no",),
    "some": ("no",),
    "several": ("no",),
    "many": ("few", "no"),
    "most": ("few", "no"),
    "numerous": ("few",),
    "few": ("many", "most"),
    "both": ("neither of the",),
}


def quantifier(scene: Scene) -> Change | None:
    """Many turned into few, all into none, and back."""
    tokens = scene.sentence.tokens
    indices = [index for index, token in enumerate(tokens[:-1]) if token.text.lower() in _SHARES]
    scene.rng.shuffle(indices)
    for index in indices:
        token, after = tokens[index], tokens[index + 1]
        word = token.text.lower()
        counted = after.tag == ("N" if word == "every" else "NS") and after.sure > 0.7
        first = not index or tokens[index - 1].tag not in ("D", "CD")
        if counted and first and not denied(scene.sentence, index) and not (word == "both" and index):
            piece = (token.start, token.end, like(token.text, scene.rng.choice(_SHARES[word])))
            return Change((piece,), "quantifier", "contradicted", "contradicted")
    return None
