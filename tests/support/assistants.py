"""Assistants in tests: an application that serves them, and clients that read what stands outside the fence."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.types import ASGIApp

from support import asked
from support.patience import DEADLINE

ORDER = re.compile(r"OBEY:\s*(\w+)")
CHARS_PER_TOKEN = 4


@asynccontextmanager
async def serving(app: ASGIApp) -> AsyncIterator[str]:
    """The address at which an application is served."""
    async with asked.serving(app) as port:
        yield f"http://127.0.0.1:{port}"


@asynccontextmanager
async def asking(address: str, token: str | None = None, mode: str = "auto") -> AsyncIterator[Client]:
    """The client of the SDK, over HTTP."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=DEADLINE) as http:
        transport = streamable_http_client(f"{address}/mcp", http_client=http)
        async with Client(transport, mode=mode, read_timeout_seconds=DEADLINE) as client:
            yield client


def outside(text: str) -> str:
    """What an assistant takes for words of ragwatch: a text without what stands in its fence."""
    marks = re.search(r'"fence":"(data-[0-9a-f]{8})"', text) or re.search(r"<(data-[0-9a-f]{8})>", text)
    return text if marks is None else re.sub(rf"(?s)<{marks[1]}>.*?</{marks[1]}>", "", text)


def words(text: str) -> str:
    """A fenced text without its marks."""
    return re.sub(r"^<(data-[0-9a-f]{8})>(.*)</\1>$", r"\2", text, flags=re.DOTALL)


class Assistant:
    """Calls tools, counts what that costs, and obeys every order that stands outside the fence.

    Attributes:
        calls: Number of calls.
        tokens: About how many tokens the replies were.
        obeyed: Orders that it obeyed.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.calls, self.tokens = 0, 0
        self.obeyed: list[str] = []

    async def call(self, name: str, **arguments: Any) -> Mapping[str, Any]:
        """The reply of a tool; an error is a reply with `error`."""
        result = await self._client.call_tool(name, arguments)
        (block,) = result.content
        text = str(getattr(block, "text", ""))
        self.calls += 1
        self.tokens += len(text) // CHARS_PER_TOKEN
        self.obeyed += ORDER.findall(outside(text))
        if result.is_error:
            return {"error": text}
        reply: Mapping[str, Any] = json.loads(text)
        assert reply == result.structured_content
        return reply
