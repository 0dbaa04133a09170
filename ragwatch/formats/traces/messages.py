"""Messages to and from a language model, in the spellings of several conventions.

| convention                      | where                                                                             |
|---------------------------------|-----------------------------------------------------------------------------------|
| OpenInference                   | `llm.input_messages.N.message.*`, `llm.prompts`, `llm.output_messages.N.message.*`|
| OTel GenAI                      | `gen_ai.input.messages`, `gen_ai.output.messages`, `gen_ai.system_instructions`   |
| OTel GenAI before, Traceloop    | `gen_ai.prompt.N.*`, `gen_ai.completion.N.*`, `gen_ai.prompt`, `gen_ai.completion`|
| OTel GenAI events               | `gen_ai.user.message`, `gen_ai.choice`, `gen_ai.content.prompt` ...               |
| Vercel AI SDK, Pydantic AI ...  | `ai.prompt.messages`, `ai.response.text`, `events`, input and output of the span  |
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ragwatch.formats.messages import NO_SPEAKERS, content_text
from ragwatch.formats.messages import ROLES as SPEAKERS
from ragwatch.formats.traces.span import Span, by_index, decoded, first, inside, is_torn, plain_text, stripped

SYSTEM, USER, ASSISTANT, TOOL = "system", "user", "assistant", "tool"
_ROLES: Mapping[str, str] = {name: str(role) for name, role in SPEAKERS.items()} | {
    name: TOOL if "tool" in name or name == "function" else SYSTEM for name in NO_SPEAKERS
}
INPUT_KEYS = (
    "gen_ai.input.messages", "ai.prompt.messages", "llm.input_messages", "gen_ai.prompt", "ai.prompt",
    "llm.prompts", "gcp.vertex.agent.llm_request",
)  # fmt: skip
OUTPUT_KEYS = (
    "gen_ai.output.messages", "llm.output_messages", "ai.response.text", "ai.result.text", "gen_ai.completion",
    "llm.completions", "gcp.vertex.agent.llm_response",
)  # fmt: skip
VALUE_INPUTS = ("input.value", "traceloop.entity.input", "gen_ai.task.input", "langfuse.observation.input",
                "mlflow.spanInputs", "haystack.component.input", "haystack.component.input_data",
                "haystack.pipeline.input_data", "haystack.pipeline.input", "ai.prompt", "gen_ai.tool.call.arguments",
                "ai.toolCall.args", "tool_arguments", "braintrust.input", "lmnr.span.input",
                "gcp.vertex.agent.tool_call_args", "langfuse.trace.input", "pydantic_ai.all_messages",
                "all_messages_events", "gen_ai.prompt")  # fmt: skip
VALUE_OUTPUTS = ("output.value", "traceloop.entity.output", "gen_ai.task.output", "langfuse.observation.output",
                 "mlflow.spanOutputs", "haystack.component.output", "haystack.component.output_data",
                 "haystack.pipeline.output_data", "haystack.pipeline.output", "final_result", "ai.response.text",
                 "ai.response.object",
                 "gen_ai.tool.call.result", "ai.toolCall.result", "tool_response", "braintrust.output",
                 "lmnr.span.output", "gcp.vertex.agent.tool_response", "langfuse.trace.output",
                 "gen_ai.completion")  # fmt: skip
SYSTEM_KEYS = ("gen_ai.system_instructions", "gen_ai.system.instructions", "system_prompt")
_EVENT_ROLES = {
    "gen_ai.system.message": SYSTEM,
    "gen_ai.user.message": USER,
    "gen_ai.assistant.message": ASSISTANT,
    "gen_ai.tool.message": TOOL,
}
_CALL_IDS = ("tool_call_id", "toolCallId", "tool_use_id", "id")
_RESPONSES = ("response", "server_tool_call_response", "result", "output", "content")
_MAX_DEPTH = 8


class Message(NamedTuple):
    """A message. `calls` says whether it calls tools."""

    role: str
    text: str
    calls: bool = False


def value_in(span: Span) -> object:
    """Return the input of a span, decoded; None if it has none."""
    return unwrapped(decoded(first(span.attributes, VALUE_INPUTS)))


def value_out(span: Span) -> object:
    """Return the output of a span, decoded; None if it has none."""
    return unwrapped(decoded(first(span.attributes, VALUE_OUTPUTS)))


def unwrapped(value: object) -> object:
    """Return what an instrumentation wraps: `{"inputs": ..., "kwargs": ...}`, `{"outputs": ...}` or arguments."""
    if isinstance(value, dict):
        for key in ("inputs", "outputs"):
            if key in value and value.keys() <= {key, "kwargs", "tags", "metadata", "args"}:
                return decoded(value[key])
        if "args" in value and value.keys() <= {"args", "kwargs"}:
            parts = value["args"] if isinstance(value["args"], list) else [value["args"]]
            named = value.get("kwargs")
            if len(parts) == 1 and not named:
                return decoded(parts[0])
            if not parts and isinstance(named, dict):
                return named
    return value


def messages_in(span: Span) -> list[Message]:
    """Return the messages that were sent to the model, oldest first, instructions of the system included."""
    attributes = span.attributes
    prompts = [content_text(decoded(attributes[key])) for key in SYSTEM_KEYS if key in attributes]
    system = [Message(SYSTEM, text) for text in prompts if text]
    messages = (
        _flattened(attributes, ("llm.input_messages", "gen_ai.prompt", "llm.prompts"), USER)
        or messages_of(decoded(first(attributes, INPUT_KEYS)), USER)
        or list(_of_events(span, sent=True))
        or messages_of(value_in(span), USER)
    )
    return messages if any(one.role == SYSTEM for one in messages) else system + messages


def messages_out(span: Span) -> list[Message]:
    """Return the messages that the model has sent."""
    attributes = span.attributes
    messages = (
        _flattened(
            attributes, ("llm.output_messages", "gen_ai.completion", "llm.choices", "llm.completions"), ASSISTANT
        )
        or messages_of(decoded(first(attributes, OUTPUT_KEYS)), ASSISTANT)
        or list(_of_events(span, sent=False))
    )
    calls = not messages and "ai.response.toolCalls" in attributes
    return [Message(ASSISTANT, "", calls=True)] if calls else messages


def _flattened(attributes: Mapping[str, object], prefixes: Iterable[str], role: str) -> list[Message]:
    for prefix in prefixes:
        if items := list(by_index(attributes, prefix).values()):
            if len(items) > 1 and all("finish_reason" in stripped(item, "message.") for item in items):
                items = items[:1]  # choices, of which the first is used
            return [one for item in items if (one := _flat_message(item, role)) is not None]
    return []


def _flat_message(item: dict[str, object], role: str) -> Message | None:
    fields = stripped(stripped(stripped(item, "message."), "prompt."), "completion.")
    content = first(fields, ("content", "text", "user", ""))
    if content is None:
        content = [stripped(part, "message_content.") for part in by_index(fields, "contents").values()]
    text = content_text(decoded(content)) or (content if isinstance(content, str) else "")
    calls = any(key.startswith(("tool_calls", "function_call")) for key in fields)
    known = _ROLES.get(str(fields.get("role", role)).lower(), role)
    return Message(known, text, calls) if text or calls else None


def _of_events(span: Span, *, sent: bool) -> Iterator[Message]:
    for name, fields in _events(span):
        body = decoded(fields.get("gen_ai.event.content"))
        body = body if isinstance(body, dict) else fields
        role = _EVENT_ROLES.get(name)
        if sent and role is not None:
            yield from messages_of({"role": role, **body}, role)
        elif sent and name in ("gen_ai.content.prompt", "gen_ai.client.inference.operation.details"):
            yield from messages_of(decoded(first(fields, INPUT_KEYS)), USER)
        elif not sent and name == "gen_ai.choice" and str(body.get("index", 0)) == "0":
            message = decoded(body.get("message"))
            yield from messages_of(message if message is not None else body, ASSISTANT)
        elif not sent and name in ("gen_ai.content.completion", "gen_ai.client.inference.operation.details"):
            yield from messages_of(decoded(first(fields, OUTPUT_KEYS)), ASSISTANT)


def _events(span: Span) -> Iterator[tuple[str, dict[str, object]]]:
    yield from span.events
    logged = decoded(first(span.attributes, ("events", "all_messages_events")))
    if isinstance(logged, list):
        for item in logged:
            if isinstance(item, dict):
                yield str(item.get("event.name", "")), item


def messages_of(value: object, role: str, depth: int = _MAX_DEPTH) -> list[Message]:  # noqa: PLR0911 - one return for each spelling
    """Return the messages in a JSON value: a list, an object with a list, one message, or a text of `role`."""
    if depth == 0:
        return []
    if isinstance(value, str):
        text = None if is_torn(value) else plain_text(value)
        return [Message(role, text)] if text else []
    if isinstance(value, list):
        if len(value) == 2 and isinstance(value[0], str) and value[0].lower() in _ROLES and isinstance(value[1], str):
            return [Message(_ROLES[value[0].lower()], value[1])]
        if len(value) > 1 and all(isinstance(item, dict) and "finish_reason" in item for item in value):
            value = value[:1]  # choices, of which the first is used
        return [message for item in value for message in messages_of(decoded(item), role, depth - 1)]
    if not isinstance(value, dict):
        return []
    nested = inside(value, ("messages", "contents", "choices", "generations", "replies", "events"))
    if isinstance(nested, list):
        system = content_text(inside(value, ("system", "system_instruction", "systemPrompt", "instructions")))
        return ([Message(SYSTEM, system)] if system else []) + messages_of(nested, role, depth - 1)
    inner = inside(value, ("message", "kwargs", "data"))
    if isinstance(inner, dict):
        name = _role(value) or _role(inner) or role
        return messages_of({"role": name, **inner}, role, depth - 1)
    return _one(value, role)


def _one(value: dict[str, object], role: str) -> list[Message]:
    """Return the message that an object is, if it is one; an object with a prompt holds one or two."""
    if "prompt" in value and _role(value) is None:
        system = content_text(inside(value, ("system", "instructions")))
        prompt = messages_of(decoded(value["prompt"]), role, 2)
        return ([Message(SYSTEM, system)] if system else []) + prompt
    content = inside(value, ("content", "parts", "text", "blocks", "_content"))
    text = content_text(content) or ""
    parts = content if isinstance(content, list) else []
    calls = bool(inside(value, ("tool_calls", "function_call", "toolCalls"))) or any(
        isinstance(part, dict)
        and str(part.get("type", "")).replace("-", "_") in ("tool_call", "tool_use", "function_call")
        for part in parts
    )
    results = any(isinstance(part, dict) and "tool_call_response" in str(part.get("type")) for part in parts)
    name = TOOL if results and not text else _role(value) or role
    return [Message(name, text, calls)] if text or calls else []


def _role(value: Mapping[str, object]) -> str | None:
    for key in ("role", "_role", "type"):
        name = value.get(key)
        if isinstance(name, str) and name.lower() in _ROLES:
            return _ROLES[name.lower()]
    identity = value.get("id")
    name = identity[-1] if isinstance(identity, list) and identity else None
    return _ROLES.get(name.lower()) if isinstance(name, str) else None


def tool_responses(span: Span) -> list[tuple[str, object]]:
    """Return name and value of what tools have returned since the last message of the user, as messages say it."""
    names: dict[object, str] = {}  # of the calls, by their id
    responses: list[tuple[str, object]] = []
    for keys in (INPUT_KEYS, OUTPUT_KEYS):
        value = decoded(first(span.attributes, keys))
        value = inside(value, ("messages", "contents")) if isinstance(value, dict) else value
        for item in value if isinstance(value, list) else ():
            message = decoded(item)
            if isinstance(message, dict):
                if _role(message) == USER and content_text(inside(message, ("content", "parts"))):
                    responses.clear()
                responses += _responses(message, names)
    return responses


def _responses(message: dict[str, object], names: dict[object, str]) -> Iterator[tuple[str, object]]:
    """Name and value of the responses in a message. The calls in it are added to the names, by their id."""
    content = inside(message, ("parts", "content"))
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    if _role(message) == TOOL and not any(map(_is_response, parts)):
        parts = [{**message, "type": "tool_result", "content": content_text(content)}]
    calls = message.get("tool_calls")
    for part in [*parts, *(calls if isinstance(calls, list) else ())]:
        called = first(part, _CALL_IDS) if isinstance(part, dict) else None
        name = str(inside(part, ("name", "toolName")) or inside(inside(part, ("function",)), ("name",)) or "")
        if isinstance(part, dict) and _is_response(part):
            value = decoded(inside(part, _RESPONSES))
            yield names.get(called) or name or str(inside(value, ("type",)) or ""), value
        elif called is not None and name:
            names[called] = name


def _is_response(part: Mapping[str, object]) -> bool:
    return str(part.get("type")).endswith(("response", "result"))


def last_text(messages: Iterable[Message], role: str) -> str | None:
    """Return the text of the last message of a role; None if there is none."""
    texts = [message.text for message in messages if message.role == role and message.text.strip()]
    return texts[-1] if texts else None
