"""The server: the port it really has, an end when it is told to, and no patience with slow clients."""

from __future__ import annotations

import asyncio
import signal

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ragwatch.errors import ConfigError
from ragwatch.web import Server, serve

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


async def test_port_zero_is_a_real_port_and_stop_ends_it() -> None:
    """The port that is told answers, signal handlers are left alone, and `stop` ends it."""
    before = signal.getsignal(signal.SIGTERM)
    one = server()
    port, task = await running(one)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(REQUEST + b"Connection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    assert port > 0
    assert answer.endswith(b"hello")
    assert b"server:" not in answer.lower()
    assert signal.getsignal(signal.SIGTERM) is before
    one.stop()
    await asyncio.wait_for(task, 10)


async def test_a_cancelled_server_ends_cleanly() -> None:
    """Cancelling ends the server as `stop` does, and frees the port."""
    port, task = await running(server())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    again, second = await running(server(port=port))
    assert again == port
    second.cancel()
    await asyncio.wait([second])


async def test_a_taken_port_is_a_configuration_error() -> None:
    """Whoever must act is told which key to change."""
    one = server()
    port, task = await running(one)
    with pytest.raises(ConfigError, match=r"^web\.listen: cannot listen on 127\.0\.0\.1:"):
        await server(port=port).serve()
    one.stop()
    await task


async def test_stopping_before_serving_is_harmless() -> None:
    """A server that never ran can be stopped."""
    one = server()
    one.stop()
    port, task = await running(one)
    assert port > 0
    one.stop()
    await task


@pytest.mark.parametrize("unfinished", [b"", REQUEST, b"GET"])
async def test_unfinished_headers_are_hung_up_on(unfinished: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that does not finish its headers in time loses the connection."""
    monkeypatch.setattr(serve, "HEADER_SECONDS", 0.05)
    one = server()
    port, task = await running(one)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(unfinished)
    assert await asyncio.wait_for(reader.read(), 10) == b""
    writer.close()
    one.stop()
    await task


async def test_later_requests_have_a_deadline_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kept connection is quick or closed; waiting between requests is not being slow."""
    monkeypatch.setattr(serve, "HEADER_SECONDS", 0.05)
    one = server()
    port, task = await running(one)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(2):
        writer.write(REQUEST + b"\r\n")
        assert (await asyncio.wait_for(reader.readuntil(b"hello"), 10)).startswith(b"HTTP/1.1 200")
    writer.write(REQUEST)
    assert await asyncio.wait_for(reader.read(), 10) == b""
    writer.close()
    one.stop()
    await task


UNREAD = REQUEST + b"Content-Length: 9\r\n\r\n"


async def test_a_body_nobody_reads_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was answered before its body ended is hung up on, however it drips; the answer arrives."""
    monkeypatch.setattr(serve, "LEFTOVER_SECONDS", 0.05)
    one = server()
    port, task = await running(one)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(UNREAD)
    assert (await asyncio.wait_for(reader.readuntil(b"hello"), 10)).startswith(b"HTTP/1.1 200")
    writer.write(b"drip")
    assert await asyncio.wait_for(reader.read(), 10) == b""
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
    assert (await asyncio.wait_for(reader.readuntil(b"hello"), 10)).startswith(b"HTTP/1.1 200")
    writer.write(b"the whole")
    assert await asyncio.wait_for(reader.read(), 10) == b""
    writer.close()
    one.stop()
    await task
