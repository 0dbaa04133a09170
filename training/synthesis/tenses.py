"""Edits of time: what will be said to have been, what has been said to be still to come."""

from . import inflect
from .scene import Change, Scene
from .wording import denied


def tense(scene: Scene) -> Change | None:
    """The main verb moved into the past or the future."""
    tokens = scene.sentence.tokens
    indices = [index for index in range(1, len(tokens) - 1) if not denied(scene.sentence, index)]
    scene.rng.shuffle(indices)
    for index in indices:
        token, before, after = tokens[index], tokens[index - 1], tokens[index + 1]
        single = before.tag in ("N", "NAME") or before.text.lower() in ("he", "she", "it")
        plural = before.tag == "NS" or before.text.lower() == "they"
        if not (single or plural):
            continue
        has, were = ("has", "was") if single else ("have", "were")
        if token.text == "will" and after.text == "be":
            return _change(token.start, after.end, scene.rng.choice((were, f"{has} already been")))
        if token.text == "will" and after.tag == "V" and after.sure > 0.7:
            return _change(token.start, after.end, f"{has} already {inflect.verb(after.base, 'VN')}")
        if token.text in ("was", "were") and after.tag == "VD" and after.sure > 0.8:
            return _change(token.start, token.end, "will be")
        if token.tag == "VD" and token.sure > 0.9 and after.tag in ("D", "P", "NAME") and before.tag in ("NAME", "PRP"):
            return _change(token.start, token.end, scene.rng.choice((f"will {token.base}", f"plans to {token.base}" if single else f"plan to {token.base}")))  # noqa: E501  # fmt: skip
    return None


def _change(start: int, end: int, new: str) -> Change:
    return Change(((start, end, new),), "tense", "contradicted", "contradicted")
