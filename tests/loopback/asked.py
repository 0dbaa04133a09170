"""What tests of the server ask it: a page as our own judges write it, and the request around it."""

from typing import Any

from support.embedded import LEXICAL
from support.kit import a_sample

from ragwatch.judges.llm.reading import Reading
from ragwatch.model.evidence import Evidence
from ragwatch.model.quantity_row import Part
from ragwatch.model.sample import Sample

RUBRIC = "Read the page and reply. " * 100
SAMPLE = a_sample(
    question="How long are refunds, and what does shipping cost?",
    contexts=("Refunds take five days. Shipping is free for members.", "Cats purr when they are fed."),
    answer="Refunds take five days. The director was born in Lisbon.",
)
LIVE = frozenset({Part.CLAIMS, Part.CONTEXTS, Part.NEEDS, Part.ADDRESS})


def a_page(sample: Sample = SAMPLE, seed: str = "s") -> str:
    """The page that our own judges show of a sample."""
    (ask,) = Reading(sample, parts=LIVE, reading="joint", seed=seed).prompts()
    return ask.user


def an_object(**properties: Any) -> dict[str, Any]:
    """A strict object schema."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


CELL = an_object(context={"type": "string"}, quote={"type": "string"})
VERDICT = {"type": "string", "enum": ["supported", "contradicted", "not_in_context"]}
CLAIM = an_object(id={"type": "string"}, verdict=VERDICT, cells={"type": "array", "items": CELL})
SCHEMA = an_object(
    claims={"type": "array", "items": CLAIM},
    address={"type": "string", "enum": ["fully", "partially", "not_at_all", "abstained"]},
)


def a_request(**parts: Any) -> dict[str, Any]:
    """A request as a judge makes it."""
    return {
        "model": "claude-haiku-5-5",
        "max_tokens": 1000,
        "system": [{"type": "text", "text": RUBRIC, "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": a_page()}],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    } | parts


def embedded(sample: Sample = SAMPLE) -> Evidence:
    """What the embedded judge reads in a sample."""
    return LEXICAL.evidence(sample)
