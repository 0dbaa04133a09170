"""What tests of the server ask it: a page as our own judges write it, and the request around it."""

from __future__ import annotations

import json
import time
from typing import Any

from anthropic.types import Message
from support.kit import a_sample

from ragwatch.judges.claims.claims import claims_of
from ragwatch.judges.claims.sentences import spans
from ragwatch.judges.lexical import judge as lexical
from ragwatch.judges.llm import page as pages
from ragwatch.judges.llm.page import RandomMarks
from ragwatch.model.evidence import Evidence
from ragwatch.model.sample import Sample
from ragwatch.pipeline.sampling_control import InMemoryBudget
from ragwatch.ports import JudgeContext
from ragwatch.telemetry import Telemetry

RUBRIC = "Read the page and reply. " * 100
SAMPLE = a_sample(
    question="How long are refunds, and what does shipping cost?",
    contexts=("Refunds take five days. Shipping is free for members.", "Cats purr when they are fed."),
    answer="Refunds take five days. The director was born in Lisbon.",
)


def an_object(**properties: Any) -> dict[str, Any]:
    """A strict object schema."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


SCHEMA = an_object(
    claims={
        "type": "array",
        "items": an_object(
            id={"type": "string"},
            verdict={"type": "string", "enum": ["supported", "contradicted", "not_in_context"]},
            cells={"type": "array", "items": an_object(context={"type": "string"}, quote={"type": "string"})},
        ),
    },
    address={"type": "string", "enum": ["fully", "partially", "not_at_all", "abstained"]},
)


def a_page(sample: Sample = SAMPLE, seed: str = "s") -> str:
    """The page that our own judges show of a sample."""
    marks = RandomMarks(seed)
    said = [(claim.start, claim.end) for claim in claims_of(sample.answer, sample.question).claims]
    return pages.PromptPage(
        fence=marks.fence,
        question=pages.numbered(marks, [sample.question or ""]),
        contexts=tuple(
            pages.sentences(marks, each.text, [(span.start, span.end) for span in spans(each.text)])
            for each in sample.contexts
        ),
        needs=None,
        history=tuple((str(turn.role), pages.unnumbered(marks, turn.text)) for turn in sample.history),
        answer=pages.claims(marks, sample.answer, said),
        reference=pages.numbered(marks, [sample.reference]) if sample.reference else None,
    ).render()


def a_request(**parts: Any) -> dict[str, Any]:
    """A request as a judge makes it."""
    return {
        "model": "claude-haiku-5-5",
        "max_tokens": 1000,
        "system": [{"type": "text", "text": RUBRIC, "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": a_page()}],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    } | parts


def words_of(message: Message) -> Any:
    """The JSON that a message says."""
    return json.loads(next(block.text for block in message.content if block.type == "text"))


def embedded(sample: Sample = SAMPLE) -> Evidence:
    """What the embedded judge reads in a sample."""
    context = JudgeContext(Telemetry(), InMemoryBudget(), time.time)
    return lexical.build(lexical.Options(), name="embedded", context=context).evidence(sample)
