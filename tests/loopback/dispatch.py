"""Which part of the API a request means, and how much room is left for more."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from loopback import batches, chat, messages, responses
from loopback.batch import PATH as BATCHES
from loopback.batch import rfc3339
from loopback.faults import Fault, Refusal
from loopback.wire import Reply, is_chat, refused
from loopback.world import World

TOKENS = 1_000
"""Tokens of either direction that go with each request of the limit; told, not enforced."""


def made(request: Request, world: World, body: Any, fault: Fault | None) -> tuple[Reply, str | None]:
    """The reply to a request, and a note when the model did not understand it."""
    path = request.url.path
    if path == messages.PATH:
        return messages.answer(body, world, fault)
    if path == chat.PATH:
        return chat.answer(body, world, fault)
    if path == responses.PATH:
        return responses.answer(body, world, fault)
    if path.startswith(BATCHES):
        return _batches(request, world, body), None
    if path == "/v1/models":
        return chat.models(world), None
    return (messages.counted(body) if path == "/v1/messages/count_tokens" else chat.embedded(body, world)), None


def _batches(request: Request, world: World, body: Any) -> Reply:
    address = f"{request.url.scheme}://{request.url.netloc}"
    name, verb = request.path_params.get("name"), request.path_params.get("verb")
    match request.method, name, verb:
        case "POST", None, None:
            return batches.create(body, world, address)
        case "GET", None, None:
            return batches.listed(request.query_params, world, address)
        case "GET", str(), None:
            return batches.look(name, world, address)
        case "GET", str(), "results":
            return batches.results(name, world)
        case "POST", str(), "cancel":
            return batches.cancel(name, world, address)
    return refused(Refusal(404, "not_found_error", "Not found"), request.url.path)


def limits(world: World, path: str) -> dict[str, str]:
    """Headers that tell how much room is left."""
    bucket = world.bucket
    if is_chat(path):
        return {
            "x-ratelimit-limit-requests": str(bucket.size),
            "x-ratelimit-remaining-requests": str(bucket.left),
            "x-ratelimit-reset-requests": f"{bucket.full_in:.3f}s",
        }
    found = {"request-id": world.new_id("req")}
    reset = rfc3339(world.now() + bucket.full_in)
    for what, each in (("requests", 1), ("input-tokens", TOKENS), ("output-tokens", TOKENS)):
        limit = {"limit": str(bucket.size * each), "remaining": str(bucket.left * each), "reset": reset}
        found |= {f"anthropic-ratelimit-{what}-{name}": value for name, value in limit.items()}
    return found
