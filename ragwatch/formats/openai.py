"""OpenAI requests with their responses: chat completions, and the Responses API with file search.

`{"request": {...}, "response": {...}}`, or both flat in one record. Contexts are searched in this order: a field
`documents`, `contexts`, `context` or `retrieved_contexts` of record or request; file search results; what `retrieved`
finds in the conversation; system messages that contain more than instructions. History: the messages of user and
assistant before the last one of the user.
"""

from __future__ import annotations

from types import MappingProxyType

from ragwatch.core.sample import Context, Sample
from ragwatch.formats import fields
from ragwatch.formats.history import before_question, logged
from ragwatch.formats.messages import content_text, only_instructs, with_role
from ragwatch.formats.retrieved import question_of, retrieved
from ragwatch.formats.shape import Record

NAME = "openai"
KNOWN_BIAS = ""
MAPPING = MappingProxyType(
    {
        "id": "id || request_id || response.id",
        "at": "at || timestamp || response.created || created || response.created_at || created_at",
        "question": "question_of(request.messages || messages)",
        "contexts": "documents || contexts || request.documents || request.contexts"
        " || retrieved(request.messages || messages) || (request.messages || messages)[?role=='system'].content",
        "answer": "message_text((response.choices || choices)[0].message)",
        "history": "turns_before(request.messages || messages)",
    }
)
CONTEXT_KEYS = ("documents", "contexts", "context", "retrieved_contexts")


def matches(record: Record) -> bool:
    """Return whether messages and choices are present, or the typed output items of the Responses API.

    Records of Azure on your data and of file search have formats of their own, with the same reader for the rest.
    """
    request, response = fields.part(record, "request"), fields.part(record, "response")
    if "messages" in request and "choices" in response:
        return True
    output = response.get("output")
    items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
    kinds = {item["type"] for item in items if isinstance(item.get("type"), str)}
    return bool(kinds) and "file_search_call" not in kinds


def read(record: Record, fallback_id: str) -> Sample:
    """Return the sample in a record of this format."""
    request, response = fields.part(record, "request"), fields.part(record, "response")
    if "choices" in response:
        conversation = fields.required(request, "messages")
        message = _message(response["choices"])
        answer = content_text(message.get("content"))
        answer = content_text(message.get("refusal")) if answer is None else answer
        path = "choices[0].message.content"
    else:
        conversation = request.get("input")
        answer = _output_text(fields.required(response, "output"))
        path = "output[].content[].text"
    if answer is None:
        raise fields.missing(path, "contains no text")
    question = question_of(conversation) if conversation is not None else fields.question(record)
    return fields.assemble(
        record,
        fallback_id,
        question=question,
        contexts=_contexts(record, request, response, conversation),
        answer=answer,
        reference=record.get("reference"),
        inner=response,
        history=before_question(conversation) or logged(record, request, question=question, answer=answer),
    )


def _message(choices: object) -> dict[str, object]:
    if not isinstance(choices, list):
        raise fields.wrong("choices", "a list", choices)
    choice = choices[0] if choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise fields.missing("choices[0].message")
    return message


def _items(output: object, kind: str) -> list[dict[str, object]]:
    items = output if isinstance(output, list) else []
    return [item for item in items if isinstance(item, dict) and item.get("type") == kind]


def _output_text(output: object) -> str | None:
    texts = [_message_text(item.get("content")) for item in _items(output, "message")]
    present = [text for text in texts if text is not None]
    return "\n".join(present) if present else None


def _message_text(content: object) -> str | None:
    """Return the text of an output message, or its refusal, which is an answer too."""
    text = content_text(content)
    if text is not None or not isinstance(content, list):
        return text
    return content_text([part.get("refusal") for part in content if isinstance(part, dict)])


def _contexts(record: Record, request: Record, response: Record, conversation: object) -> tuple[Context, ...]:
    for part in (record, request):
        key, passages = fields.first(part, CONTEXT_KEYS)
        if passages is not None:
            return (Context(passages),) if isinstance(passages, str) else fields.contexts(passages, key)
    searches = _items(response.get("output"), "file_search_call")
    if searches:
        return tuple(context for search in searches for context in _results(search))
    passages = retrieved(conversation, system=False)  # prompts of the system are whole, for `split`
    if passages is not None:
        return fields.contexts(passages, "messages[].content")
    for role in ("system", "developer"):
        texts = [content_text(turn.get("content")) for turn in with_role(conversation, role)]
        if contexts := tuple(Context(text) for text in texts if text and not only_instructs(text)):
            return contexts
    raise fields.missing(
        "contexts", "is missing: no documents, file search, citations, tool messages or passages in a prompt"
    )


def _results(search: dict[str, object]) -> tuple[Context, ...]:
    results = search.get("results")
    if results is None:
        raise fields.missing("output[].results", 'is missing: ask with include=["file_search_call.results"]')
    named = [
        {**item, "id": item.get("file_id", item.get("id"))} if isinstance(item, dict) else item
        for item in (results if isinstance(results, list) else [results])
    ]
    return fields.contexts(named, "output[].results")
