"""Requests with records reach the source that receives them; others get an answer that says what to change."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from support.asked import application, asking

from ragwatch.ports.sources import IncomingRequest, Reply
from ragwatch.web.app import Receivers


def receiver(name: str) -> Any:
    """A source that answers with its name and the size of the body."""

    async def handle(request: IncomingRequest) -> Reply:
        body = b"".join([chunk async for chunk in request.chunks])
        return Reply(202, f"{name} {len(body)} {request.headers['content-type']}".encode(), "text/plain", {"X-A": "b"})

    return handle


async def answer(receivers: Receivers, path: str, **request: Any) -> httpx.Response:
    """The answer to a POST."""
    async with asking(application(receivers=lambda: receivers)) as client:
        return await client.post(path, **request)


@pytest.mark.parametrize("path", ["/v1/samples", "/v1/traces", "/v1/feedback"])
async def test_the_only_source_receives(path: str) -> None:
    """Without a name the only source of the path receives; with its name as well."""
    receivers = {path: {"app": receiver("app")}}
    for address in (path, f"{path}?source=app"):
        reply = await answer(receivers, address, content=b"12345", headers={"Content-Type": "text/x"})
        assert (reply.status_code, reply.text, reply.headers["X-A"]) == (202, "app 5 text/x", "b")


@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        ("", 400, "source: several are configured; add ?source=NAME, one of: a, b"),
        ("?source=c", 404, "source: 'c' does not receive requests; use one of: a, b"),
        ("?source=a&source=b", 400, "source: is given twice; name one source"),
    ],
)
async def test_which_source(query: str, status: int, says: str) -> None:
    """Of several sources, the request names one."""
    receivers = {"/v1/samples": {"b": receiver("b"), "a": receiver("a")}}
    reply = await answer(receivers, f"/v1/samples{query}")
    assert (reply.status_code, reply.json()) == (status, {"error": says})
    reply = await answer(receivers, "/v1/samples?source=b", headers={"Content-Type": "text/x"})
    assert reply.text == "b 0 text/x"


@pytest.mark.parametrize(("path", "kind"), [("/v1/samples", "push"), ("/v1/traces", "otlp"), ("/v1/feedback", "push")])
async def test_without_such_a_source(path: str, kind: str) -> None:
    """A path that no source receives is a 404 which names the kind to configure."""
    reply = await answer({}, path)
    assert (reply.status_code, reply.json()) == (404, {"error": f"sources: none of kind {kind} is configured; add one"})
