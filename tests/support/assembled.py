"""What is assembled of spans, and small changes of spans, for the tests of the assembly."""

from __future__ import annotations

from typing import Any

from ragwatch.formats.traces.assemble import Assembled
from ragwatch.formats.traces.span import Span
from support.spans import a_span, said
from support.traces import ANSWER, OI


def only(result: Assembled) -> dict[str, Any]:
    """The one record."""
    assert (len(result.records), result.refused) == (1, [])
    return result.records[0]


def texts(result: Assembled) -> list[str]:
    """Texts of the contexts of the one record."""
    return [context["text"] for context in only(result)["contexts"]]


def replaced(spans: list[Span], name: str, **parts: Any) -> list[Span]:
    """Spans, one of them changed."""
    return [span._replace(**parts) if span.name == name else span for span in spans]


def model(name: str = "model", parent: str = "", **parts: Any) -> Span:
    """A call of a model that answers."""
    attributes = {OI: "LLM"} | said("llm.output_messages", ("assistant", ANSWER)) | parts.pop("attributes", {})
    return a_span(name, parent, parts.pop("at", 50), attributes=attributes, **parts)
