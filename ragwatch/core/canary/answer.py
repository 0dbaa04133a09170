"""Canary answers: what a whole service answered to a canary, as a Sample that a judge can read."""

from __future__ import annotations

from collections.abc import Sequence

from ragwatch.core.canary.definition import Canary, Retrieved
from ragwatch.core.sample import Context, Sample


def sample_of(
    canary: Canary, retrieved: Retrieved, *, suite: str, at: float, gold: Sequence[str] | None = None
) -> Sample | None:
    """The answered canary with its reference, tagged `canary` and `suite` so that it never passes for live traffic.

    Args:
        canary: What was asked.
        retrieved: What came back.
        suite: The canary's suite.
        at: When, in seconds since the epoch.
        gold: The contexts that were handed to the service, in an oracle run; else those that it retrieved.

    Returns:
        The sample; None when there is no answer, or a context came without its text: half a sample would be misread.
    """
    if retrieved.answer is None:
        return None
    texts = [hit.text for hit in retrieved.hits] if gold is None else list(gold)
    known = [text for text in texts if text is not None]
    if len(known) < len(texts):
        return None
    if gold is None:
        contexts = tuple(Context(text, hit.id, hit.score) for text, hit in zip(known, retrieved.hits, strict=True))
    else:
        contexts = tuple(map(Context, known))
    run = "canary" if gold is None else "oracle"
    return Sample(
        f"{run}/{suite}/{canary.name}/{at}",
        canary.query,
        contexts,
        retrieved.answer,
        at,
        metadata={"canary": canary.name, "suite": suite, "run": run},
        reference=canary.reference,
    )


def gold_texts(canary: Canary) -> tuple[str, ...] | None:
    """Texts of the expected contexts, for an oracle run; None when one is known by its id alone, or none is expected.

    >>> from ragwatch.core.canary.definition import Expected
    >>> gold_texts(Canary("c", "why?", (Expected("d1", "Because."),)))
    ('Because.',)
    """
    texts = tuple(each.text for each in canary.expected if each.text is not None)
    return texts if texts and len(texts) == len(canary.expected) else None
