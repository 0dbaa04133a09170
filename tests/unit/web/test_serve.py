"""The server: reports its port, stops on request, and has deadlines for slow clients."""

from __future__ import annotations

import asyncio
import signal

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from support.patience import DEADLINE

from ragwatch.errors import ConfigError
from ragwatch.web import Server

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
    await asyncio.wait_for(task, DEADLINE)


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


@pytest.mark.costly
async def test_a_taken_port_is_a_configuration_error() -> None:
    """Whoever must act is told which key to change."""
    one = server()
    port, task = await running(one)
    with pytest.raises(ConfigError, match=r"^web\.listen: cannot listen on 127\.0\.0\.1:"):
        await server(port=port).serve()
    one.stop()
    await task


@pytest.mark.parametrize("is_bound", [True, False])
async def test_a_server_that_is_stopped_before_it_serves_ends(*, is_bound: bool) -> None:
    """It accepts nothing, and frees the port."""
    one, started = server(), list[int]()
    if is_bound:
        one.bind()
    one.stop()
    await asyncio.wait_for(one.serve(started=started.append), DEADLINE)
    one.stop()
    assert started == []
