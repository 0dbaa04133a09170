"""LlamaIndex responses: `{"query","response","source_nodes":[{"node":{"id_","text"},"score"}]}`.

The history is `chat_history` or `history`; where the query is a conversation, its turns before the last question. The
response may be nested (`"response": {"response","source_nodes"}`), and a node may be JSON logged as text.
"""

from __future__ import annotations

from types import MappingProxyType

from ragwatch.core.sample import Context, Sample
from ragwatch.formats import fields
from ragwatch.formats.history import before_question, logged
from ragwatch.formats.messages import question_text
from ragwatch.formats.shape import Record

NAME = "llamaindex"
KNOWN_BIAS = ""
MAPPING = MappingProxyType(
    {
        "id": "id || request_id",
        "question": "query || query_str || question || input",
        "contexts": "(source_nodes || response.source_nodes)[]"
        ".{id: node.id_ || from_json(node).id_, text: node.text || from_json(node).text, score: score}",
        "answer": "response.response || response",
        "history": "chat_history || history",
    }
)
_QUESTION_KEYS = ("query", "query_str", "question", "input")


def matches(record: Record) -> bool:
    """Return whether the record has source nodes, next to the response or inside it."""
    response = record.get("response")
    return "source_nodes" in record or (isinstance(response, dict) and "source_nodes" in response)


def read(record: Record, fallback_id: str) -> Sample:
    """Return the sample in a record of this format."""
    nested = record.get("response")
    body, path = (nested, "response.") if isinstance(nested, dict) else (record, "")
    nodes = record["source_nodes"] if "source_nodes" in record else fields.required(body, "source_nodes")
    if not isinstance(nodes, list):
        raise fields.wrong(f"{path}source_nodes", "a list", nodes)
    conversation = fields.first(record, _QUESTION_KEYS)[1]
    if isinstance(conversation, dict):  # a QueryBundle
        conversation = fields.first(conversation, ("query_str", "messages"))[1] or conversation
    question = question_text(conversation)
    answer = fields.text(fields.required(body, "response"), f"{path}response")
    return fields.assemble(
        record,
        fallback_id,
        question=question,
        contexts=tuple(_context(item, f"{path}source_nodes", rank) for rank, item in enumerate(nodes)),
        answer=answer,
        reference=record.get("reference"),
        history=before_question(conversation) or logged(record, body, question=question, answer=answer),
    )


def _context(item: object, path: str, rank: int) -> Context:
    source_node = fields.embedded(item)
    if not isinstance(source_node, dict):
        return fields.context(item, path, rank)
    node = fields.embedded(source_node.get("node", source_node))
    if not isinstance(node, dict):
        raise fields.wrong(f"{path}[{rank}].node", "an object", node)
    resource = node.get("text_resource")
    inner = resource if isinstance(resource, dict) else node
    identity_and_score = {"id": node.get("id_", node.get("id")), "score": source_node.get("score")}
    return fields.context({**inner, **identity_and_score}, path, rank)
