"""OpenAI's newer protocol, as far as clients need it that prefer it to chat: one reply, held to a schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from loopback import chat
from loopback.faults import Fault
from loopback.wire import Reply, invalid
from loopback.world import World

PATH = "/v1/responses"


def answer(body: Any, world: World, fault: Fault | None = None) -> tuple[Reply, str | None]:
    """The reply to a request, and a note when the model did not understand it."""
    asked = body.get("input") if isinstance(body, Mapping) else None
    messages = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
    if not isinstance(messages, list):
        return invalid("'input' must be a text or a list of messages", PATH, param="input"), None
    form = (body.get("text") or {}).get("format") or {"type": "text"}
    schema = {"type": form["type"], "json_schema": form} if form["type"] == "json_schema" else form
    reply, note = chat.answer(
        {"model": body.get("model"), "messages": messages, "response_format": schema}, world, fault
    )
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
