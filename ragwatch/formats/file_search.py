"""OpenAI's Responses API with file search (experimental): `{"input", "output": [{"type": "file_search_call"}]}`.

Results are in the log only if they were asked for, with `include=["file_search_call.results"]`.
"""

from __future__ import annotations

from types import MappingProxyType

from ragwatch.core.sample import Sample
from ragwatch.formats import fields, openai
from ragwatch.formats.shape import Record

NAME = "file_search"
KNOWN_BIAS = (
    "experimental: the results are those of all searches of a response in their order, at most max_num_results each;"
    " several searches for one question count as one retrieval"
)
MAPPING = MappingProxyType(
    {
        "id": "id || request_id || response.id",
        "at": openai.MAPPING["at"],
        "question": "question_of(request.input || input || question || query || user_question)",
        "contexts": "(response.output || output)[?type=='file_search_call'].results[]"
        ".{id: file_id, text: text, score: score}",
        "answer": "(response.output || output)[?type=='message'] | [0].content[0].text",
    }
)


def matches(record: Record) -> bool:
    """Return whether the output has a call of file search."""
    output = fields.part(record, "response").get("output")
    return isinstance(output, list) and any(
        isinstance(item, dict) and item.get("type") == "file_search_call" for item in output
    )


def read(record: Record, fallback_id: str) -> Sample:
    """Return the sample in a record of this format."""
    if not matches(record):
        raise fields.missing("output[].type", "names no call of file search")
    return openai.read(record, fallback_id)
