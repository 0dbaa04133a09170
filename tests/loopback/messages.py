"""The Messages API of Anthropic, version 2026-10-21: what it refuses, and the message it answers with."""

from collections.abc import Mapping
from typing import Any

from loopback.faults import FLAWS, STOPS, Fault
from loopback.model import Speech, complaint, speak
from loopback.tokens import Prompt, count, of_content, prompt_tokens
from loopback.wire import Reply, invalid
from loopback.world import World

PATH = "/v1/messages"
_COUNTED = frozenset({"model", "messages", "system", "thinking", "tools", "tool_choice", "output_config"})
_KNOWN = _COUNTED | {"max_tokens", "metadata", "stop_sequences", "service_tier", "stream", "cache_control"}
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_ALWAYS_THINK = ("opus-5-5", "fable", "mythos")
_OFF = frozenset({"disabled", "between_tools"})


def objection(body: Any, *, known: frozenset[str] = _KNOWN) -> str | None:
    """Why the API takes no such request; None when it does."""
    if not isinstance(body, Mapping):
        return "Input should be an object"
    extra = sorted(body.keys() - known)  # temperature, top_p and top_k among them: gone with this version
    if extra:
        return f"{extra[0]}: Extra inputs are not permitted"
    for field in ("model", "messages", *(["max_tokens"] if "max_tokens" in known else [])):
        if not body.get(field):
            return f"{field}: Field required"
    if not isinstance(body.get("max_tokens", 1), int) or body.get("max_tokens", 1) < 1:
        return "max_tokens: Input should be greater than or equal to 1"
    if body.get("stream"):
        return "stream: this server does not stream"
    return _about_messages(body["messages"]) or _about_output(body)


def _about_messages(messages: Any) -> str | None:
    if not isinstance(messages, list) or not all(isinstance(message, Mapping) for message in messages):
        return "messages: Input should be a list of objects"
    for index, message in enumerate(messages):
        if message.get("role") not in ("user", "assistant"):
            return f"messages.{index}.role: Input should be 'user' or 'assistant'"
        if not of_content(message.get("content")).strip():
            return f"messages.{index}: text content blocks must contain non-whitespace text"
    if messages[0]["role"] != "user":
        return "messages.0: first message must use the 'user' role"
    if messages[-1]["role"] != "user":
        return "This model does not support assistant message prefill. The conversation must end with a user message."
    return None


def _about_output(body: Mapping[str, Any]) -> str | None:
    config, thinking = body.get("output_config") or {}, body.get("thinking") or {}
    if not isinstance(config, Mapping) or not isinstance(thinking, Mapping):
        return "output_config, thinking: Input should be an object"
    extra = sorted(config.keys() - {"effort", "format"})
    if extra:
        return f"output_config.{extra[0]}: Extra inputs are not permitted"
    why = _about_effort(body, config.get("effort")) or _about_thinking(str(body["model"]), thinking.get("type"))
    if why:
        return why
    form = config.get("format")
    if form is None:
        return None
    if not isinstance(form, Mapping) or form.get("type") != "json_schema":
        return "output_config.format.type: Input should be 'json_schema'"
    return complaint(form.get("schema"))


def _about_effort(body: Mapping[str, Any], effort: Any) -> str | None:
    if effort is None:
        return None
    if "haiku-4" in str(body["model"]):
        return "This model does not support the effort parameter."
    if effort not in _EFFORTS:
        return "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'"
    kind = (body.get("thinking") or {}).get("type")
    if kind in _OFF and effort in ("xhigh", "max"):
        return f"thinking.type: '{kind}' is not supported with effort '{effort}'"
    return None


def _about_thinking(model: str, kind: Any) -> str | None:
    """What a model says to a type of thinking that it has not; the models that always think take no way to stop it."""
    has_between_tools = "sonnet-5-5" in model
    always = any(name in model for name in _ALWAYS_THINK)
    if kind == "disabled" and (always or has_between_tools):
        instead = "between_tools" if has_between_tools else "adaptive"
        return (
            f'"thinking.type.disabled" is not supported for this model. Use "thinking.type.{instead}" and '
            '"output_config.effort" to control thinking behavior.'
        )
    if kind == "between_tools" and not has_between_tools:
        return '"thinking.type.between_tools" is not supported for this model.'
    return None


def counted(body: Any) -> Reply:
    """The reply of count_tokens."""
    why = objection(body, known=_COUNTED)
    return invalid(why, PATH) if why else Reply({"input_tokens": prompt_tokens(body)})


def answer(body: Any, world: World, fault: Fault | None = None, *, batch: bool = False) -> tuple[Reply, str | None]:
    """The message to a request, and a note when the model did not understand it. What is cached is not kept yet."""
    why = objection(body)
    if why:
        return invalid(why, PATH), None
    prompt = world.cache.prompt(body)
    speech = _speech(body, fault)
    thinking = 0 if (body.get("thinking") or {}).get("type") in _OFF else world.control.thinking
    message = _message(body, world, speech.text, thinking)
    if fault and fault.kind in STOPS:
        message |= _stopped(fault.kind, speech.text)
    message["usage"] = _usage(prompt, message, thinking, "batch" if batch else "standard")
    return Reply(message, usage=_tally(message["usage"]), batch=batch), speech.note


def _speech(body: Mapping[str, Any], fault: Fault | None) -> Speech:
    user = "\n".join(of_content(each["content"]) for each in body["messages"] if each["role"] == "user")
    form = (body.get("output_config") or {}).get("format")
    flaw = fault.kind if fault and fault.kind in FLAWS else None
    speech = speak(user, form["schema"] if form else None, flaw)
    if form or speech.note:
        return speech
    return Speech(f"Here is what I read:\n```json\n{speech.text}\n```", "asked without a schema")


def _message(body: Mapping[str, Any], world: World, text: str, thinking: int) -> dict[str, Any]:
    """A message that ends its turn, or that its `max_tokens` cut short."""
    room = body["max_tokens"] - thinking
    whole = count(text) <= room
    content: list[dict[str, Any]] = [{"type": "text", "text": text if whole else text[: max(0, room) * 4]}]
    if thinking:
        content.insert(0, {"type": "thinking", "thinking": "", "signature": "bG9vcGJhY2s="})
    if room <= 0:
        content.pop()
    return {
        "id": world.new_id("msg"),
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": "end_turn" if whole else "max_tokens",
        "stop_sequence": None,
        "stop_details": None,
    }


def _stopped(kind: str, text: str) -> dict[str, Any]:
    """What a scripted stop changes in a message."""
    if kind == "refusal":
        details = {"type": "refusal", "category": "bio", "explanation": None}
        return {"content": [], "stop_reason": "refusal", "stop_details": details}
    said = text if kind == "unknown_stop" else text[: len(text) // 2]
    return {"content": [{"type": "text", "text": said}], "stop_reason": STOPS[kind]}


def _usage(prompt: Prompt, message: Mapping[str, Any], thinking: int, tier: str) -> dict[str, Any]:
    said = sum(count(block.get("text", "")) for block in message["content"])
    return {
        "input_tokens": prompt.plain,
        "cache_creation_input_tokens": prompt.written,
        "cache_read_input_tokens": prompt.read,
        "cache_creation": {"ephemeral_5m_input_tokens": prompt.written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": max(1, said + thinking),
        "service_tier": tier,
    }


def _tally(usage: Mapping[str, Any]) -> dict[str, int]:
    return {
        "input": usage["input_tokens"],
        "output": usage["output_tokens"],
        "cache_read": usage["cache_read_input_tokens"],
        "cache_write": usage["cache_creation_input_tokens"],
    }
