"""Builds the Sample of a canary's answer, so that a judge can read what the whole service answered."""

from __future__ import annotations

from collections.abc import Sequence

from ragwatch.core.canary.definition import Canary, Retrieved
from ragwatch.core.sample import Context, Sample


def sample_of(
    canary: Canary, retrieved: Retrieved, *, suite: str, at: float, gold: Sequence[str] | None = None
) -> Sample | None:
    """Builds the sample of an answered canary, with its reference and the metadata keys `canary`, `suite` and `run`.

    The metadata keep it apart from live traffic.

    Args:
        canary: The canary whose query was sent.
        retrieved: The reply of the probe.
        suite: Name of the canary's suite.
        at: Time of the run, in seconds since the epoch.
        gold: In an oracle run, the contexts that the service was given; otherwise None, and the retrieved contexts are
            used.

    Returns:
        The sample, or None if the reply holds no answer or a context has no text: a judge would misread it.
    """
    if retrieved.answer is None:
        return None
    texts = [hit.text for hit in retrieved.hits] if gold is None else list(gold)
    complete = [text for text in texts if text is not None]
    if len(complete) < len(texts):
        return None
    if gold is None:
        contexts = tuple(Context(text, hit.id, hit.score) for text, hit in zip(complete, retrieved.hits, strict=True))
    else:
        contexts = tuple(map(Context, complete))
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
    """Returns the texts of the expected contexts for an oracle run.

    None if no context is expected, or one of them has an id but no text.

    >>> from ragwatch.core.canary.definition import Expected
    >>> gold_texts(Canary("c", "why?", (Expected("d1", "Because."),)))
    ('Because.',)
    """
    texts = tuple(context.text for context in canary.expected if context.text is not None)
    return texts if texts and len(texts) == len(canary.expected) else None
