"""One connection: deadlines for receiving requests and for sending responses."""

from __future__ import annotations

import asyncio
import time

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from support.patience import DEADLINE

from ragwatch.web import Server, protocol, serve

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


async def hello(_: Request) -> Response:
    """The whole application."""
    return PlainTextResponse("hello")


def server(host: str = "127.0.0.1", port: int = 0) -> Server:
    """A server of the application."""
    return Server(Starlette(routes=[Route("/", hello)]), host, port)


async def running(one: Server) -> tuple[int, asyncio.Task[None]]:
    """Start it and wait for its port."""
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(one.serve(started=port.set_result))
    done, _ = await asyncio.wait([port, task], return_when=asyncio.FIRST_COMPLETED)
    if task in done:
        await task
    return port.result(), task


@pytest.mark.costly
@pytest.mark.parametrize("unfinished", [b"", REQUEST, b"GET"])
async def test_unfinished_headers_are_hung_up_on(unfinished: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that does not finish its headers in time loses the connection."""
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.05)
    one = server()
    port, task = await running(one)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(unfinished)
    assert await asyncio.wait_for(reader.read(), DEADLINE) == b""
    writer.close()
    one.stop()
    await task


async def test_later_requests_have_a_deadline_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kept connection is quick or closed; waiting between requests is not being slow."""
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.05)
    one = server()
    port, task = await running(one)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(2):
        writer.write(REQUEST + b"\r\n")
        assert (await asyncio.wait_for(reader.readuntil(b"hello"), DEADLINE)).startswith(b"HTTP/1.1 200")
    writer.write(REQUEST)
    assert await asyncio.wait_for(reader.read(), DEADLINE) == b""
    writer.close()
    one.stop()
    await task


UNREAD = REQUEST + b"Content-Length: 9\r\n\r\n"


async def test_a_body_nobody_reads_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was answered before its body ended is hung up on, however it drips; the answer arrives."""
    monkeypatch.setattr(protocol, "REMAINDER_SECONDS", 0.05)
    one = server()
    port, task = await running(one)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(UNREAD)
    assert (await asyncio.wait_for(reader.readuntil(b"hello"), DEADLINE)).startswith(b"HTTP/1.1 200")
    writer.write(b"drip")
    assert await asyncio.wait_for(reader.read(), DEADLINE) == b""
    writer.close()
    one.stop()
    await task


async def test_a_connection_is_not_kept_for_ever_after_a_late_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the body ends after its answer, the connection is a kept one: another request, or its time is over."""
    monkeypatch.setattr(serve, "KEEP_ALIVE_SECONDS", 0.05)
    one = server()
    port, task = await running(one)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(UNREAD)
    assert (await asyncio.wait_for(reader.readuntil(b"hello"), DEADLINE)).startswith(b"HTTP/1.1 200")
    writer.write(b"the whole")
    assert await asyncio.wait_for(reader.read(), DEADLINE) == b""
    writer.close()
    one.stop()
    await task


LARGE = b"x" * (32 << 20)


async def large(_: Request) -> Response:
    """More than sockets hold."""
    return Response(LARGE)


def large_server() -> Server:
    """A server of it."""
    return Server(Starlette(routes=[Route("/", large), Route("/-/healthy", hello)]), "127.0.0.1", 0)


@pytest.mark.costly
async def test_whoever_takes_nothing_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that asks and does not read loses its connection; what it did not take is not kept for it."""
    monkeypatch.setattr(protocol, "CHECK_SECONDS", 0.02)
    monkeypatch.setattr(protocol, "STALL_SECONDS", 0.1)
    one = large_server()
    port, task = await running(one)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    writer.write(REQUEST + b"\r\n")
    await asyncio.sleep(1.0)
    taken = 0
    with pytest.raises(ConnectionError):  # noqa: PT012 - it may come at any read
        while piece := await asyncio.wait_for(reader.read(1 << 20), DEADLINE):
            taken += len(piece)
        raise ConnectionError
    assert taken < len(LARGE)
    writer.close()
    one.stop()
    await asyncio.wait_for(task, DEADLINE)


@pytest.mark.costly
async def test_whoever_takes_too_little_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that takes some, but far less than the slowest rate, is hung up on once its grace is over."""
    monkeypatch.setattr(protocol, "CHECK_SECONDS", 0.02)
    monkeypatch.setattr(protocol, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(protocol, "MIN_BYTES_PER_SECOND", 1 << 30)
    one = large_server()
    port, task = await running(one)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    writer.write(REQUEST + b"\r\n")
    taken = 0
    with pytest.raises(ConnectionError):  # noqa: PT012 - it may come at any read
        while piece := await asyncio.wait_for(reader.read(16 << 10), DEADLINE):
            taken += len(piece)
            await asyncio.sleep(0.01)
        raise ConnectionError
    assert taken < len(LARGE)
    writer.close()
    one.stop()
    await asyncio.wait_for(task, DEADLINE)


@pytest.mark.costly
async def test_whoever_takes_it_slowly_gets_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes, as long as something is taken now and then."""
    monkeypatch.setattr(protocol, "CHECK_SECONDS", 0.02)
    monkeypatch.setattr(protocol, "STALL_SECONDS", 2.0)
    one = large_server()
    port, task = await running(one)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=64 << 10)
    writer.write(REQUEST + b"Connection: close\r\n\r\n")
    head = await reader.readuntil(b"\r\n\r\n")
    taken = 0
    while piece := await asyncio.wait_for(reader.read(256 << 10), DEADLINE):
        taken += len(piece)
        await asyncio.sleep(0.005)
    assert (head.startswith(b"HTTP/1.1 200"), taken) == (True, len(LARGE))
    writer.close()
    one.stop()
    await asyncio.wait_for(task, DEADLINE)


async def test_one_too_many_is_told_and_health_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where as many are being answered as may be, the next one is refused with 503; health has a place of its own."""
    monkeypatch.setattr(serve, "max_connections", lambda: 8)
    one = large_server()
    port, task = await running(one)
    stuck = [await asyncio.open_connection("127.0.0.1", port, limit=1024) for _ in range(2)]
    for _, writer in stuck:
        writer.write(REQUEST + b"\r\n")
    await asyncio.sleep(0.2)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(REQUEST + b"\r\n")
    text = await asyncio.wait_for(reader.read(), DEADLINE)
    assert text.startswith(b"HTTP/1.1 503")
    assert b"retry-after: 5" in text.lower()
    healthy, asker = await asyncio.open_connection("127.0.0.1", port)
    asker.write(b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert (await asyncio.wait_for(healthy.read(), DEADLINE)).startswith(b"HTTP/1.1 200")
    for _, stream in (*stuck, (reader, writer), (healthy, asker)):
        stream.transport.abort()
    one.stop()
    await asyncio.wait_for(task, DEADLINE)


@pytest.mark.costly
async def test_those_who_take_nothing_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection whose client takes nothing for a while is closed for a newcomer, before its deadline."""
    monkeypatch.setattr(serve, "max_connections", lambda: 4)
    monkeypatch.setattr(protocol, "CHECK_SECONDS", 0.05)
    one = large_server()
    port, task = await running(one)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    writer.write(REQUEST + b"\r\n")
    end = time.monotonic() + DEADLINE
    while not writer.transport.is_closing():  # until what is written to a closed connection is refused
        assert time.monotonic() < end
        newcomer, asker = await asyncio.open_connection("127.0.0.1", port)
        asker.write(b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert (await asyncio.wait_for(newcomer.read(), DEADLINE)).startswith(b"HTTP/1.1 200")
        asker.close()
        await asyncio.sleep(0.05)
        writer.write(b"\r\n")
    taken = 0
    with pytest.raises(ConnectionError):  # noqa: PT012 - it may come at any read
        while piece := await asyncio.wait_for(reader.read(1 << 20), DEADLINE):
            taken += len(piece)
        raise ConnectionError
    assert taken < len(LARGE)
    writer.close()
    one.stop()
    await asyncio.wait_for(task, DEADLINE)
