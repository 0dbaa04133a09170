"""Bodies: what is sent to us comes within a time, and only so many may be on their way at once.

Whoever sends a byte a minute would hold a connection, and memory, for as long as they like. The server minds the
headers and the silence between requests (see `serve`); this minds what a door reads.
"""

from __future__ import annotations

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_SECONDS = 30.0  # for the whole of it, however steadily it drips
OPEN_BODIES = 8
_LAST = {"Connection": "close"}  # the rest of such a body is not waited for


class RequestBodyLimit:
    """Middleware that ends a body which takes too long with 408, and refuses one too many with 503.

    Args:
        app: Whoever reads them.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. For the server."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        until: float | None = None  # its deadline, from the moment when somebody wants the body
        coming = True

        async def receive_in_time() -> Message:
            nonlocal until, coming
            if not coming:
                return await receive()
            if until is None:
                until = self._admit()
            message = await _within(until, receive)
            if not message.get("more_body", False):
                coming = False
                self._open -= 1
            return message

        try:
            await self._app(scope, receive_in_time, send)
        except ClientDisconnect:  # gone in the middle of it: there is nobody to answer, and nothing is broken
            return
        finally:
            if until is not None and coming:
                self._open -= 1

    def _admit(self) -> float:
        if self._open >= OPEN_BODIES:
            again = {"Retry-After": f"{BODY_SECONDS:.0f}", **_LAST}
            raise HTTPException(503, f"{OPEN_BODIES} bodies are being read already; send it again later.\n", again)
        self._open += 1
        return asyncio.get_running_loop().time() + BODY_SECONDS


async def _within(until: float, receive: Receive) -> Message:
    try:
        async with asyncio.timeout_at(until):
            return await receive()
    except TimeoutError:
        raise HTTPException(408, f"The body did not come within {BODY_SECONDS:g} seconds.\n", _LAST) from None
