"""What goes over the wire: replies, and errors in the two shapes that clients know."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from loopback.faults import Fault, Refusal

_CODES = {
    "rate_limit_error": "rate_limit_exceeded",
    "authentication_error": "invalid_api_key",
    "billing_error": "insufficient_quota",
    "not_found_error": "model_not_found",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer."""

    payload: Any  # JSON, or a body as it is
    status: int = 200  # HTTP status
    headers: Mapping[str, str] = field(default_factory=dict)  # beside content type and length
    media: str = "application/json"  # content type
    usage: Mapping[str, int] = field(default_factory=dict)  # tokens by direction, for the record
    batch: bool = False  # the tokens are those of a batch

    @property
    def body(self) -> bytes:
        """The payload in bytes."""
        return self.payload if isinstance(self.payload, bytes) else json.dumps(self.payload).encode()


def is_chat(path: str) -> bool:
    """Whether a path belongs to the OpenAI protocol."""
    return path.startswith(("/v1/chat", "/v1/embeddings", "/v1/responses"))


def refused(refusal: Refusal, path: str, *, param: str | None = None) -> Reply:
    """An error, in the shape of the protocol that the path belongs to."""
    headers = {} if refusal.retry_after is None else {"retry-after": f"{refusal.retry_after:g}"}
    return Reply(error_of(refusal, path, param=param), refusal.status, headers)


def error_of(refusal: Refusal, path: str, *, param: str | None = None) -> dict[str, Any]:
    """The body of an error."""
    if is_chat(path):
        spent = refusal.error_code is not None and "spend" in refusal.error_code
        code = "insufficient_quota" if spent else _CODES.get(refusal.type)
        return {"error": {"message": refusal.message, "type": refusal.type, "param": param, "code": code}}
    error: dict[str, Any] = {"type": refusal.type, "message": refusal.message}
    if refusal.error_code:
        error["details"] = {"error_code": refusal.error_code}
    return {"type": "error", "error": error, "request_id": "req_loopback"}


def invalid(message: str, path: str, *, param: str | None = None) -> Reply:
    """Status 400: the request is not one."""
    return refused(Refusal(400, "invalid_request_error", message), path, param=param)


def struck(fault: Fault, refusal: Refusal, path: str) -> Reply:
    """A scripted error, with the headers that the script asks for."""
    reply = refused(refusal, path)
    headers = dict(reply.headers)
    if fault.retry_after is not None:
        headers["retry-after"] = str(fault.retry_after)
    if fault.should_retry is not None:
        headers["x-should-retry"] = "true" if fault.should_retry else "false"
    return Reply(reply.payload, reply.status, headers)


HTML = Reply(
    b"<!DOCTYPE html><html><head><title>Proxy</title></head><body><h1>Sign in to continue</h1></body></html>",
    media="text/html; charset=utf-8",
)
