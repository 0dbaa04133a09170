"""The chat protocol that OpenAI set and everybody speaks: completions, embeddings, the list of models."""

import base64
import json
import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from loopback.faults import FLAWS, Fault
from loopback.model import speak
from loopback.peers import embedding
from loopback.tokens import count, of_content, prompt_tokens
from loopback.wire import Reply, invalid
from loopback.world import World

PATH = "/v1/chat/completions"
EMBEDDINGS = "/v1/embeddings"
RESPONSES = "/v1/responses"
_FINISHES = {"max_tokens": "length", "context_window": "length", "refusal": "content_filter", "unknown_stop": "resting"}


def answer(body: Any, world: World, fault: Fault | None = None) -> tuple[Reply, str | None]:
    """The completion of a request, and a note when the model did not understand it."""
    refusal = _refusal(body, world)
    if refusal:
        return refusal, None
    form = body.get("response_format") or {"type": "text"}
    schema = form["json_schema"]["schema"] if form["type"] == "json_schema" and world.control.heeds_schema else None
    prompt = "\n".join(of_content(each.get("content")) for each in body["messages"] if each.get("role") != "assistant")
    flaw = fault.kind if fault and fault.kind in FLAWS else None
    speech = speak(prompt, schema, flaw)
    text = speech.text
    if form["type"] == "text" and not body.get("tools") and text.startswith("{"):
        text = f"Here is what I read:\n```json\n{text}\n```"
    choices = [_choice(index, text, body, fault) for index in range(body.get("n") or 1)]
    usage = {"prompt_tokens": prompt_tokens(body), "completion_tokens": len(choices) * count(_said(choices[0]))}
    usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
    payload = {
        "id": world.new_id("chatcmpl"),
        "object": "chat.completion",
        "created": int(world.now()),
        "model": body["model"],
        "choices": choices,
        "usage": usage | {"prompt_tokens_details": {"cached_tokens": 0}},
    }
    tally = {"input": usage["prompt_tokens"], "output": usage["completion_tokens"]}
    return Reply(payload, usage=tally), speech.note


def responded(body: Any, world: World, fault: Fault | None = None) -> tuple[Reply, str | None]:
    """The reply in OpenAI's newer protocol, as far as clients need it that prefer it to chat, and a note."""
    asked = body.get("input") if isinstance(body, Mapping) else None
    messages = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
    if not isinstance(messages, list):
        return invalid("'input' must be a text or a list of messages", RESPONSES, param="input"), None
    form = (body.get("text") or {}).get("format") or {"type": "text"}
    schema = {"type": form["type"], "json_schema": form} if form["type"] == "json_schema" else form
    reply, note = answer({"model": body.get("model"), "messages": messages, "response_format": schema}, world, fault)
    if reply.status != 200:
        return reply, note
    usage, message = reply.payload["usage"], reply.payload["choices"][0]["message"]
    said = {"type": "output_text", "text": message["content"] or "", "annotations": []}
    payload = {
        "id": world.new_id("resp"),
        "object": "response",
        "created_at": reply.payload["created"],
        "status": "completed",
        "model": reply.payload["model"],
        "output": [{"type": "message", "id": "msg_0", "role": "assistant", "status": "completed", "content": [said]}],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["total_tokens"],
        },
    }
    return replace(reply, payload=payload), note


def _refusal(body: Any, world: World) -> Reply | None:
    messages = body.get("messages") if isinstance(body, Mapping) else None
    good = isinstance(messages, list) and messages and all(isinstance(message, Mapping) for message in messages)
    if not good or not body.get("model"):
        return invalid("you must provide a model and messages", PATH)
    if body.get("stream"):
        return invalid("this server does not stream", PATH, param="stream")
    form = body.get("response_format") or {"type": "text"}
    if not isinstance(form, Mapping) or form.get("type") not in world.control.formats:
        takes = " or ".join(sorted(world.control.formats))
        return invalid(f"'response_format.type' must be {takes}", PATH, param="response_format")
    if form["type"] == "json_schema" and not isinstance((form.get("json_schema") or {}).get("schema"), Mapping):
        return invalid(
            "Missing required parameter: 'response_format.json_schema.schema'", PATH, param="response_format"
        )
    return None


def _choice(index: int, text: str, body: Mapping[str, Any], fault: Fault | None) -> dict[str, Any]:
    kind = fault.kind if fault else ""
    room = body.get("max_completion_tokens") or body.get("max_tokens")
    finish = _FINISHES.get(kind, "stop")
    if kind in ("max_tokens", "context_window"):
        text = text[: len(text) // 2]
    elif room is not None and count(text) > room:
        text, finish = text[: room * 4], "length"
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if kind == "refusal":
        message |= {"content": None, "refusal": "I cannot help with that."}
    elif body.get("tools") and finish == "stop":
        message |= {"content": None, "tool_calls": [_call(text, body["tools"][0])]}
    return {"index": index, "message": message, "finish_reason": finish, "logprobs": None}


def _call(text: str, tool: Mapping[str, Any]) -> dict[str, Any]:
    """The reply as the call of the one tool that was offered, as Instructor wants it."""
    return {"id": "call_0", "type": "function", "function": {"name": tool["function"]["name"], "arguments": text}}


def _said(choice: Mapping[str, Any]) -> str:
    message = choice["message"]
    calls = message.get("tool_calls") or ()
    return (message["content"] or message["refusal"] or "") + "".join(call["function"]["arguments"] for call in calls)


def embedded(body: Any) -> Reply:
    """Vectors of some texts, as floats or in base64."""
    given = body.get("input") if isinstance(body, Mapping) else None
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        return invalid("'input' must be a text or a list of texts", EMBEDDINGS, param="input")
    coded = body.get("encoding_format") == "base64"
    rows = [
        {"object": "embedding", "index": index, "embedding": _coded(embedding(text)) if coded else embedding(text)}
        for index, text in enumerate(texts)
    ]
    tokens = sum(map(count, texts))
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return Reply(
        {"object": "list", "model": body.get("model"), "data": rows, "usage": usage}, usage={"embedded": tokens}
    )


def _coded(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def models() -> Reply:
    """Some models, in a shape that both protocols read; any other name is answered as well."""
    names = ["claude-haiku-5-5", "loopback"]
    rows = [
        {"id": name, "object": "model", "type": "model", "display_name": name, "created": 0, "owned_by": "loopback",
         "created_at": "2026-10-07T00:00:00Z"}
        for name in names
    ]  # fmt: skip
    return Reply({"object": "list", "data": rows, "has_more": False, "first_id": names[0], "last_id": names[-1]})


def json_of(text: bytes) -> Any:
    """A request's body; None when it is not JSON."""
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None
