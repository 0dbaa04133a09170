"""Messages: what the bodies of Anthropic's Messages API say. Read here and not by the SDK, which takes any shape."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

from ragwatch.core.verdict import Usage
from ragwatch.judges.llm.calls.failures import CallError, CallFailure, word
from ragwatch.judges.llm.calls.provider import Completion, SentBatch

# The status that an error in a batch's results would have had as a response.
STATUS: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}


MOST_TOKENS = 10**9  # of one call; more is a fault, such as -1 told as an unsigned number


def count_of(value: object) -> int | None:
    """A number of tokens; None for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else None


def message(body: object) -> Completion:
    """A reply out of its JSON.

    Raises:
        CallFailed: It is no message.
    """
    blocks = body.get("content") if isinstance(body, Mapping) else None
    if not isinstance(body, Mapping) or body.get("type") != "message" or not isinstance(blocks, list):
        raise CallError(CallFailure.PROTOCOL, "JSON, but no message", usage=None)
    texts = [block.get("text") for block in blocks if isinstance(block, Mapping) and block.get("type") == "text"]
    details = body.get("stop_details")
    category = word(details.get("category")) if isinstance(details, Mapping) else ""
    text = "".join(text for text in texts if isinstance(text, str))
    return Completion(text, _usage(body.get("usage")), word(body.get("stop_reason")), category)


def sent_batches(body: Mapping[str, Any]) -> list[SentBatch]:
    """The batches on a page of their list.

    Raises:
        CallFailed: It is no such page.
    """
    try:
        return [
            SentBatch(
                str(row["id"]),
                datetime.fromisoformat(row["created_at"]).timestamp(),
                sum(row["request_counts"].values()),
            )
            for row in body["data"]
        ]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise CallError(CallFailure.PROTOCOL, "JSON, but no list of batches") from None


def _usage(found: object) -> Usage | None:
    if not isinstance(found, Mapping):
        return None
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    sent, received, read, written = (count_of(found.get(name)) for name in names)
    if sent is None or received is None:
        return None
    return Usage(sent, received, cache_read_tokens=read or 0, cache_write_tokens=written or 0)


def json_of(content: bytes) -> dict[str, Any]:
    """The JSON object that a response with status 200 holds; empty when it holds JSON of another kind.

    Raises:
        CallFailed: It holds none: a proxy's page, or JSON that was cut. It may have been paid all the same.
    """
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        kind = "a web page" if content.lstrip()[:1] == b"<" else "no JSON"
        raise CallError(CallFailure.PROTOCOL, f"HTTP 200 with {kind}; is there a proxy between?", usage=None) from None
    return found if isinstance(found, dict) else {}
