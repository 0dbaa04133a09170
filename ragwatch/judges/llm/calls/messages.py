"""Parses bodies of Anthropic's Messages API. The SDK does not validate them."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Mapping
from datetime import datetime

import orjson
from pydantic import BaseModel, ValidationError

from ragwatch.judges.llm.calls.failures import CallError, CallFailure, safe_code
from ragwatch.judges.llm.calls.provider import Completion, SentBatch, token_count
from ragwatch.statistics.verdict import Usage

# HTTP status that an error in the results of a batch would have as a response of its own.
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


def parse_message(body: object) -> Completion:
    """Parse the JSON of a message.

    Raises:
        CallError: It is not a message.
    """
    blocks = body.get("content") if isinstance(body, Mapping) else None
    if not isinstance(body, Mapping) or body.get("type") != "message" or not isinstance(blocks, list):
        raise CallError(CallFailure.PROTOCOL, "JSON, but no message", usage=None)
    texts = [block.get("text") for block in blocks if isinstance(block, Mapping) and block.get("type") == "text"]
    details = body.get("stop_details")
    category = safe_code(details.get("category")) if isinstance(details, Mapping) else ""
    text = "".join(text for text in texts if isinstance(text, str))
    return Completion(text, _usage(body.get("usage")), safe_code(body.get("stop_reason")), category)


async def split_lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Split a download at line feeds alone, in linear time; lines without text are left out.

    Other separators (U+2028, U+0085) may stand inside the strings of a line of JSON.
    """
    pieces: list[bytes] = []
    async for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            line = b"".join((*pieces, end))
            pieces.clear()
            if line.strip():
                yield line
        pieces.append(rest)
    if (line := b"".join(pieces)).strip():
        yield line


def parse_result(line: bytes) -> tuple[str, Mapping[str, object]]:
    """Parse one line of the results of a batch: the custom id of an entry, and its result.

    Raises:
        CallError: It is not such a line.
    """
    try:
        entry = orjson.loads(line)
        custom_id, result = entry["custom_id"], entry["result"]
    except (ValueError, TypeError, KeyError):
        custom_id = result = None
    if not isinstance(custom_id, str) or not isinstance(result, dict):
        raise CallError(CallFailure.PROTOCOL, "invalid results of a batch")
    return custom_id, result


class _Batch(BaseModel):
    id: str
    created_at: datetime
    request_counts: dict[str, int]


class _BatchPage(BaseModel):
    data: list[_Batch]


def parse_batches(body: Mapping[str, object]) -> list[SentBatch]:
    """Parse one page of the list of message batches.

    Raises:
        CallError: It is not such a page.
    """
    try:
        rows = _BatchPage.model_validate(body).data
    except ValidationError:
        raise CallError(CallFailure.PROTOCOL, "JSON, but no list of batches") from None
    return [SentBatch(row.id, row.created_at.timestamp(), sum(row.request_counts.values())) for row in rows]


def _usage(usage: object) -> Usage | None:
    if not isinstance(usage, Mapping):
        return None
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    sent, received, read, written = (token_count(usage.get(name)) for name in names)
    if sent is None or received is None:
        return None
    return Usage(sent, received, cache_read_tokens=read or 0, cache_write_tokens=written or 0)
