"""One connection: deadlines for receiving requests and for sending responses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from support.asked import serving
from support.patience import DEADLINE

from ragwatch.web import protocol, serve

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


LARGE = b"x" * (32 << 20)
"""More than sockets hold."""


async def hello(_: Request) -> Response:
    """A small response."""
    return PlainTextResponse("hello")


async def large(_: Request) -> Response:
    """A large one."""
    return Response(LARGE)


@asynccontextmanager
async def connected(
    sent: bytes, answer: Callable[[Request], Awaitable[Response]] = hello, limit: int = 1 << 16
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A client that has sent this to the real server."""
    async with serving(Starlette(routes=[Route("/", answer), Route("/-/healthy", hello)])) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=limit)
        writer.write(sent)
        yield reader, writer
        writer.close()


async def answered(reader: asyncio.StreamReader) -> None:
    """Wait for a small response."""
    assert (await asyncio.wait_for(reader.readuntil(b"hello"), DEADLINE)).startswith(b"HTTP/1.1 200")


async def is_over(reader: asyncio.StreamReader) -> bool:
    """Whether nothing more comes until the server hangs up."""
    return await asyncio.wait_for(reader.read(), DEADLINE) == b""


async def is_hung_up_on(reader: asyncio.StreamReader, size: int = 1 << 20, pause: float = 0.0) -> bool:
    """Whether a client that takes so much at a time gets less than the whole."""
    taken = 0
    with suppress(ConnectionError):
        while piece := await asyncio.wait_for(reader.read(size), DEADLINE):
            taken += len(piece)
            await asyncio.sleep(pause)
    return taken < len(LARGE)


@pytest.mark.costly
@pytest.mark.parametrize("unfinished", [b"", REQUEST, b"GET"])
async def test_unfinished_headers_are_hung_up_on(unfinished: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that does not finish its headers in time loses the connection."""
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.05)
    async with connected(unfinished) as (reader, _):
        assert await is_over(reader)


async def test_later_requests_have_a_deadline_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kept connection is quick or closed; waiting between requests is not being slow."""
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.05)
    async with connected(b"") as (reader, writer):
        for _ in range(2):
            writer.write(REQUEST + b"\r\n")
            await answered(reader)
        writer.write(REQUEST)
        assert await is_over(reader)


UNREAD = REQUEST + b"Content-Length: 9\r\n\r\n"


async def test_a_body_nobody_reads_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was answered before its body ended is hung up on, however it drips; the answer arrives."""
    monkeypatch.setattr(protocol, "REMAINDER_SECONDS", 0.05)
    async with connected(UNREAD) as (reader, writer):
        await answered(reader)
        writer.write(b"drip")
        assert await is_over(reader)


async def test_a_connection_is_not_kept_for_ever_after_a_late_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the body ends after its answer, the connection is a kept one: another request, or its time is over."""
    monkeypatch.setattr(serve, "KEEP_ALIVE_SECONDS", 0.05)
    async with connected(UNREAD) as (reader, writer):
        await answered(reader)
        writer.write(b"the whole")
        assert await is_over(reader)


@pytest.mark.costly
async def test_whoever_takes_too_little_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that takes some, but far less than the slowest rate, is hung up on once its grace is over."""
    monkeypatch.setattr(protocol, "CHECK_SECONDS", 0.02)
    monkeypatch.setattr(protocol, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(protocol, "MIN_BYTES_PER_SECOND", 1 << 30)
    async with connected(REQUEST + b"\r\n", large, 1024) as (reader, _):
        assert await is_hung_up_on(reader, 16 << 10, 0.01)


@pytest.mark.costly
async def test_whoever_takes_it_slowly_gets_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes, as long as something is taken now and then."""
    monkeypatch.setattr(protocol, "CHECK_SECONDS", 0.02)
    monkeypatch.setattr(protocol, "STALL_SECONDS", 2.0)
    async with connected(REQUEST + b"Connection: close\r\n\r\n", large) as (reader, _):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        assert not await is_hung_up_on(reader, 256 << 10, 0.005)


HEALTH = b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


async def test_one_too_many_is_told_and_health_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where as many are being answered as may be, the next one is refused with 503; health has a place of its own."""
    monkeypatch.setattr(serve, "max_connections", lambda: 8)
    async with serving(Starlette(routes=[Route("/", large), Route("/-/healthy", hello)])) as port:
        opened = [await asyncio.open_connection("127.0.0.1", port, limit=1024) for _ in range(4)]
        for _, writer in opened[:2]:
            writer.write(REQUEST + b"\r\n")
        await asyncio.sleep(0.2)
        texts = []
        for (reader, writer), sent in zip(opened[2:], (REQUEST + b"\r\n", HEALTH), strict=True):
            writer.write(sent)
            texts.append((await asyncio.wait_for(reader.read(), DEADLINE)).lower())
        for _, writer in opened:
            writer.transport.abort()
    assert texts[0].startswith(b"http/1.1 503")
    assert b"retry-after: 5" in texts[0]
    assert texts[1].startswith(b"http/1.1 200")


@pytest.mark.costly
async def test_those_who_take_nothing_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection whose client takes nothing for a while is closed for a newcomer, before its deadline."""
    monkeypatch.setattr(serve, "max_connections", lambda: 4)
    monkeypatch.setattr(protocol, "CHECK_SECONDS", 0.05)
    async with connected(REQUEST + b"\r\n", large, 1024) as (reader, writer):
        _, port = writer.get_extra_info("peername")
        end = time.monotonic() + DEADLINE
        while not writer.transport.is_closing():  # until what is written to a closed connection is refused
            assert time.monotonic() < end
            newcomer, asker = await asyncio.open_connection("127.0.0.1", port)
            asker.write(HEALTH)
            await answered(newcomer)
            asker.close()
            await asyncio.sleep(0.05)
            writer.write(b"\r\n")
        assert await is_hung_up_on(reader)
