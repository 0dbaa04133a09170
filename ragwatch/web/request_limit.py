"""Limits the number of requests in progress, the memory of their responses, and the time in which bodies must arrive.

Pages and searches build responses of megabytes. Without a limit, many clients at once, or clients that do not read,
would exhaust the memory. Scrapes have a limit of their own. A client that sends one byte of a body a minute (slowloris)
would hold a connection and memory forever; deadlines for headers and for idle connections are in `protocol`.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from anyio import CapacityLimiter, to_thread
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragwatch.errors import RagwatchError
from ragwatch.web.json_values import JSON

MIB = 1 << 20
CHUNK_BYTES = 64 << 10
RETRY_SECONDS = 5
GIVE_UP_SECONDS = 30.0  # of building one response: a store may not answer for minutes
JSON_HEADERS: Mapping[str, str] = MappingProxyType({"content-type": JSON})


class BusyError(RagwatchError):
    """The requested action is already running; `seconds` is when to retry (`Retry-After`)."""

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds


class RequestLimit:
    """Limits how many requests are processed at the same time, and the bytes of all responses until they are sent.

    Requests wait in a FIFO queue; after `seconds` they get a 503. So do requests for a response that is not built
    within `give_up` seconds: its thread and its memory are free once the thread ends.
    """

    def __init__(self, *, threads: int, total: int, seconds: float, give_up: float = GIVE_UP_SECONDS) -> None:
        self._threads = CapacityLimiter(threads)
        self._free = total
        self._seconds = seconds
        self._give_up = give_up
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def answer(self, make: Callable[[], ASGIApp], size: int) -> ASGIApp:
        """Builds a response in a thread; it releases its memory once it is sent.

        Of the `size` reserved to build it, a `Response` holds that of its body until it is sent, a stream all.
        Raises HTTPException: too many requests are in progress, or it takes too long (503).
        """
        await self._acquire(size)
        response = await self._built(make, size)
        kept = min(size, len(response.body)) if isinstance(response, Response) else size
        self._release(size - kept)

        async def send_response(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                await response(scope, receive, send)
            finally:
                self._release(kept)

        return send_response

    async def _built(self, make: Callable[[], ASGIApp], size: int) -> ASGIApp:
        wanted = True

        def build() -> ASGIApp | None:
            return make() if wanted else None  # it may have waited for a thread until nobody waits for it

        def end(ended: asyncio.Task[ASGIApp | None]) -> None:
            if not wanted or ended.cancelled() or ended.exception() is not None:
                self._release(size)

        building = asyncio.create_task(to_thread.run_sync(build, limiter=self._threads))
        building.add_done_callback(end)
        try:
            response = await asyncio.wait_for(asyncio.shield(building), self._give_up)
        except TimeoutError:
            if building.done():  # the error of the builder itself
                raise
            raise _unavailable(f"This takes longer than {self._give_up:g} s; retry later.\n") from None
        finally:
            wanted = building.done()
        assert response is not None  # noqa: S101 - it was wanted
        return response

    def stream(self, chunks: Iterator[bytes], headers: Mapping[str, str] = JSON_HEADERS) -> ASGIApp:
        """Builds a response while it is sent, one chunk at a time in a thread."""
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]

        async def send_response(_: Scope, __: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": raw})
            while chunk := await to_thread.run_sync(_next, chunks, limiter=self._threads):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})

        return send_response

    async def _acquire(self, size: int) -> None:
        if not self._waiting and self._free >= size:
            self._free -= size
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (size, granted)
        self._waiting.append(entry)
        try:
            await asyncio.wait([granted], timeout=self._seconds)
        finally:
            if not granted.done():
                self._waiting.remove(entry)
                self._grant_waiting()  # the next one may be small enough
        if not granted.done():
            raise _unavailable("Too many requests are in progress; retry later.\n")

    def _release(self, size: int) -> None:
        self._free += size
        self._grant_waiting()

    def _grant_waiting(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._free:
            size, granted = self._waiting.popleft()
            self._free -= size
            granted.set_result(None)


def _unavailable(why: str) -> HTTPException:
    return HTTPException(503, why, {"Retry-After": str(RETRY_SECONDS)})


def _next(chunks: Iterator[bytes]) -> bytes:
    """Joins the next chunks up to `CHUNK_BYTES`; empty at the end."""
    parts, size = [], 0
    for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size >= CHUNK_BYTES:
            break
    return b"".join(parts)


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
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                text = f"The request body was not received within {BODY_SECONDS:g} seconds.\n"
                raise HTTPException(408, text, _CLOSE) from None
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
