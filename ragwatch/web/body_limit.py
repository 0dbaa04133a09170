"""Limits the time in which a request body must arrive, and the number of bodies that are received at once.

Without it a client that sends one byte a minute (slowloris) holds a connection and memory forever. Deadlines for
headers and for idle connections are in `protocol`.
"""

from __future__ import annotations

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_SECONDS = 30.0  # for the whole body
MAX_BODIES = 8
_CLOSE = {"Connection": "close"}  # the rest of the body is not received


class RequestBodyLimit:
    """Middleware that responds with 408 if a body arrives too slowly, and with 503 if too many are received."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        deadline: float | None = None  # starts when the application reads the body
        incomplete = True

        async def receive_in_time() -> Message:
            nonlocal deadline, incomplete
            if not incomplete:
                return await receive()
            if deadline is None:
                deadline = self._admit()
            message = await _receive_before(deadline, receive)
            if not message.get("more_body", False):
                incomplete = False
                self._open -= 1
            return message

        try:
            await self._app(scope, receive_in_time, send)
        except ClientDisconnect:  # the client closed the connection: no response, no error
            return
        finally:
            if deadline is not None and incomplete:
                self._open -= 1

    def _admit(self) -> float:
        if self._open >= MAX_BODIES:
            headers = {"Retry-After": f"{BODY_SECONDS:.0f}", **_CLOSE}
            raise HTTPException(503, "Too many request bodies are being received; retry later.\n", headers)
        self._open += 1
        return asyncio.get_running_loop().time() + BODY_SECONDS


async def _receive_before(deadline: float, receive: Receive) -> Message:
    try:
        async with asyncio.timeout_at(deadline):
            return await receive()
    except TimeoutError:
        raise HTTPException(
            408, f"The request body was not received within {BODY_SECONDS:g} seconds.\n", _CLOSE
        ) from None
