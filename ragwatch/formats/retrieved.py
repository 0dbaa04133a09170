"""What a conversation with a model says of the passages, the question and the answer: functions of expressions.

Passages are looked for in this order: blocks of search results and documents, and what tools returned, since the last
question, else before it; what marks cut out of the prompt of the user, else out of that of the system. Instructions
without marked passages are no context.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import orjson

from ragwatch.formats import fields
from ragwatch.formats.messages import content_text, inner, last_asked, only_instructs, role_name, said, turns
from ragwatch.formats.traces.documents import Document, document, documents_in
from ragwatch.formats.traces.prompt_contexts import of_messages, question_in, question_without_label
from ragwatch.formats.traces.span import inside
from ragwatch.model.sample import Role, Turn

_PROMPTERS = ("system", "developer")
_QUESTIONS = ("input", "query", "question")
_CONTENTS = ("content", "response", "output", "result", "json", "text")


def documents(value: object) -> object:
    """Return a list of `{id, text, score}` from documents under any usual names; null if they are none."""
    if type(value) is list:  # the usual case, in two thirds of the time: objects with texts
        read = (document(item) for item in value if type(item) is dict)
        rows = [one.to_context() for one in read if one is not None and one.text]
        if len(rows) == len(value):
            return rows
    value = fields.embedded(value)
    if isinstance(value, str):
        return [{"id": None, "text": value, "score": None}] if value.strip() else []
    some = documents_in(value)
    if isinstance(value, list) and not (some and any(one.text for one in some)):
        some = documents_in([_uncapitalised(item) for item in value])
    if some is None or not isinstance(value, list) or len(value) != len(some) or all(one.text for one in some):
        return None if some is None else _rows(some)
    pairs = zip(some, value, strict=True)  # an empty passage is one all the same
    return _rows([one._replace(text="") if one.text is None and _is_blank(item) else one for one, item in pairs])


def _is_blank(item: object) -> bool:
    """Whether the text of a document is empty, in the document or in the object inside it."""
    held = [item, *item.values()] if isinstance(item, dict) else []
    return any(isinstance(one, dict) and fields.first(one, fields.TEXT_KEYS)[1] == "" for one in held)


def _uncapitalised(item: object) -> object:
    """An object of C#, whose keys begin with a capital letter, in camel case."""
    return {key[:1].lower() + key[1:]: part for key, part in item.items()} if isinstance(item, dict) else item


def distinct(value: object) -> object:
    """Return a list without items that are equal to an earlier one; null for what is no list."""
    if not isinstance(value, list):
        return None
    kept: dict[bytes, object] = {}
    for item in value:
        kept.setdefault(orjson.dumps(item, option=orjson.OPT_SORT_KEYS), item)
    return list(kept.values())


def filled(values: object) -> object:
    """Return the first item of a list that is neither null nor an empty text; an empty text if there is no other."""
    known = [value for value in values if value is not None] if isinstance(values, list) else []
    return next((value for value in known if value != ""), "" if known else None)


def with_ids(lists: object) -> object:
    """Return the passages of the first list with the ids of the second, if that has exactly one for each."""
    passages, ids = lists if isinstance(lists, list) and len(lists) == 2 else (None, None)
    texts = passages if isinstance(passages, list) and all(isinstance(one, str) for one in passages) else []
    if not texts or not isinstance(ids, list) or len(ids) != len(texts):
        return passages  # a wrong id is worse than none
    return [{"id": name, "text": text} for name, text in zip(ids, texts, strict=True)]


def chain_result(record: object) -> object:
    """Return the output of a chain of LangChain that was logged as an object; else the record itself."""
    if isinstance(record, dict):
        for key in ("output", "outputs"):
            output = fields.embedded(record.get(key))
            if isinstance(output, dict):
                return output
    return record


def chain_input(record: object) -> object:
    """Return the input of a chain of LangChain, decoded: a text, a conversation or an object; null without one."""
    logged = fields.first(record, ("inputs", *_QUESTIONS))[1] if isinstance(record, dict) else None
    return fields.embedded(logged)


def chain_question(record: object) -> object:
    """Return the question or the conversation in the input of a chain, which may be one of its fields."""
    value = chain_input(record)
    asked = fields.first(value, (*_QUESTIONS, "messages"))[1] if isinstance(value, dict) else value
    return value if asked is None else asked


def turns_of(value: object) -> object:
    """Return the turns of a conversation as `{role, text}`, without what cannot be read."""
    return _as_rows(turns(value))


def _as_rows(said: Sequence[Turn]) -> list[dict[str, str]]:
    return [{"role": str(turn.role), "text": turn.text} for turn in said]


def message_text(value: object) -> str | None:
    """Return the text of a message or of its content; null if it has none."""
    if isinstance(value, dict):
        value = fields.first(inner(value), ("content", "_content", "text", "parts"))[1]
    return content_text(value)


def question_of(value: object) -> str | None:
    """Return the last question of a conversation; of a prompt with marked passages, the question in it."""
    asked = (0, value) if isinstance(value, str) else last_asked([value] if isinstance(value, dict) else value)
    if asked is None:
        return None
    text = asked[1]
    labelled = question_in(text) if "\n" in text else None
    if labelled or not (_may_hold_passages(text) and of_messages([text])):
        return labelled or text
    return question_without_label(text)


def answer_of(messages: object) -> str | None:
    """Return the last text of the assistant behind the last question of a conversation; null if there is none."""
    asked = last_asked(messages)
    behind = messages[asked[0] :] if asked is not None and isinstance(messages, list) else ()
    texts = [text for item in behind for role, text in said(item) or () if role is Role.ASSISTANT and text.strip()]
    return texts[-1] if texts else None


def retrieved(messages: object, *, system: bool = True) -> object:
    """Return a list of `{id, text, score}` with the passages in a conversation; null if it holds none.

    Without `system`, prompts of the system are left to the caller.
    """
    if isinstance(messages, (str, dict)):
        messages = [{"role": "user", "content": messages} if isinstance(messages, str) else messages]
    if not isinstance(messages, list):
        return None
    asked = last_asked(messages)
    start = 0 if asked is None else asked[0]
    for part in (messages[start:], messages[:start]):
        read = (block for message in part if isinstance(message, dict) for block in _of_message(message))
        blocks = [block for block in read if block is not None]
        if blocks:
            return _rows([document for block in blocks for document in block])
    prompts = [] if asked is None else [asked[1]]
    prompts += chain.from_iterable(_system_prompts(messages) if system else ())
    cut = of_messages([text for text in prompts if _may_hold_passages(text)])
    return None if cut is None else _rows(cut)


def turns_before(messages: object) -> object:
    """Return the turns of a conversation before its last question."""
    asked = last_asked(messages)
    return _as_rows(turns(messages[: asked[0]])) if asked is not None and isinstance(messages, list) else []


def chat_contexts(messages: object) -> object:
    """Return the passages in a conversation as `retrieved` does, but whole prompts of the system, for `split`."""
    passages = retrieved(messages, system=False)
    if passages is not None:
        return passages
    kept = ([{"text": text} for text in some if not only_instructs(text)] for some in _system_prompts(messages))
    return next(filter(None, kept), None)


def _system_prompts(messages: object) -> list[list[str]]:
    """The prompts of the system, then those of the developer."""
    listed = [one for one in messages if isinstance(one, dict)] if isinstance(messages, list) else []
    texts = ([content_text(one.get("content")) for one in listed if role_name(one) == role] for role in _PROMPTERS)
    return [[text for text in some if text] for some in texts]


def output_text(output: object) -> str | None:
    """Return the text of an answer of OpenAI's Responses API; of its refusal, which is an answer too."""
    texts: list[str] = []
    for content in (item.get("content") for item in _of_type(output, "message")):
        parts = content if isinstance(content, list) else []
        refusals = [part.get("refusal") for part in parts if isinstance(part, dict)]
        texts += filter(None, [content_text(content) or content_text(refusals)])
    return "\n".join(texts) or None


def _of_type(items: object, kind: str) -> list[dict[str, object]]:
    listed = items if isinstance(items, list) else ()
    return [item for item in listed if isinstance(item, dict) and item.get("type") == kind]


def file_search(output: object) -> object:
    """Return the results of all file searches in a response of OpenAI, which have to be logged; null without one."""
    searches = _of_type(output, "file_search_call")
    results: list[object] = []
    for search in searches:
        some = search.get("results")
        if some is None:
            raise fields.missing("output[].results", 'is missing: ask with include=["file_search_call.results"]')
        results += some if isinstance(some, list) else [some]
    named = [{**one, "id": one.get("file_id", one.get("id"))} if isinstance(one, dict) else one for one in results]
    return named if searches else None


def grounding(candidate: object) -> object:
    """Return the grounding chunks of an answer of Gemini, each once; null if none has a text, as of web search."""
    metadata = inside(candidate, ("groundingMetadata", "grounding_metadata"))
    chunks = inside(metadata, ("groundingChunks", "grounding_chunks"))
    passages = []
    for chunk in chunks if isinstance(chunks, list) else ():
        held = inside(chunk, ("retrievedContext", "retrieved_context"))
        text = inside(held, ("text",)) or fields.at(inside(held, ("ragChunk", "rag_chunk")), ("text",))
        if isinstance(text, str):
            passages.append({"text": text, "id": fields.at(held, ("uri",)) or fields.at(held, ("title",))})
    return distinct(passages) if passages or (isinstance(metadata, dict) and not chunks) else None


def _may_hold_passages(text: str) -> bool:
    """Whether a text may be a prompt: a message without these signs has no marks."""
    return "\n" in text or ":" in text or "</" in text


def _of_message(message: dict[str, object]) -> Iterator[Sequence[Document] | None]:
    held = inner(message)
    content = fields.first(held, ("content", "parts"))[1]
    if role_name(message) in ("tool", "function", "toolmessage"):
        artifact = _returned(held.get("artifact"))  # the documents, beside what the model was given of them
        yield artifact or _returned(content)
    elif isinstance(content, list):
        yield from (_block(part) for part in content if isinstance(part, dict) and _is_retrieved(part))


def _is_retrieved(part: dict[str, object]) -> bool:
    kind = str(part.get("type", ""))
    is_kind = kind in ("search_result", "document") or kind.endswith(("_result", "_response"))
    is_kind = is_kind or kind.startswith("tool-")  # of Vercel's AI SDK
    return is_kind or _converse(part) is not None


def _converse(part: dict[str, object]) -> object:
    """The result of a tool or the document in a block of Converse or Vercel, whose key is its type."""
    return fields.first(part, ("toolResult", "document", "toolInvocation"))[1]


def _block(part: dict[str, object]) -> Sequence[Document] | None:
    """The documents in a block of a message; None if it cannot be read."""
    block = _converse(part)
    block = block if isinstance(block, dict) else part
    source, kind = block.get("source"), part.get("type")
    if kind == "search_result":
        text = content_text(block.get("content"))
        return [Document(text, source if isinstance(source, str) else None)] if text else None
    if isinstance(source, dict):
        text = content_text(fields.first(source, ("data", "text", "content"))[1])
        name = fields.first(block, ("title", "name"))[1]
        named = Document(text, name if isinstance(name, str) else None)
        return [named] if text and source.get("type") != "base64" else []
    return _returned(fields.first(block, _CONTENTS)[1])


def _returned(value: object) -> Sequence[Document] | None:
    """What a tool returned: documents, blocks of them, or a text; None if it cannot be read."""
    if isinstance(value, list):
        parts = [part for part in value if isinstance(part, dict)]
        if any(map(_is_retrieved, parts)):
            blocks = [_block(part) for part in parts]
            return None if None in blocks else [one for block in blocks for one in block or ()]
        held = [part["json"] for part in parts if "json" in part]
        typed = all(part.get("type", "text") == "text" and part.keys() <= {"type", "text"} for part in parts)
        value = held[0] if held else content_text(value) if typed and parts else value
    value = fields.embedded(value)
    if isinstance(value, str):
        return [Document(value)] if value.strip() else []
    some = documents_in(value)
    return None if some is None or (some and not any(one.text for one in some)) else [one for one in some if one.text]


def _rows(some: Sequence[Document]) -> list[dict[str, object]]:
    return [one.to_context() for one in some]


FUNCTIONS: tuple[Callable[..., object], ...] = (
    *(answer_of, chain_input, chain_question, chain_result, chat_contexts, distinct, documents, file_search, filled),
    *(grounding, message_text, output_text, question_of, retrieved, turns_before, with_ids),
)
"""Functions of expressions, under their own names."""
