"""The server and its connections: the address it binds, how it stops, deadlines, and limits of connections."""

import asyncio
import errno
import re
import resource
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from threading import Thread

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from support.asked import application, serving
from support.patience import DEADLINE

from ragwatch.errors import AddressError
from ragwatch.web import Server
from ragwatch.web.server import connections, serve
from ragwatch.web.server.connections import RESERVED, Connections, max_connections
from ragwatch.web.server.serve import _advice, listen

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
UNREAD = REQUEST + b"Content-Length: 9\r\n\r\n"
HEALTH = b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

LARGE = b"x" * (32 << 20)
"""More than sockets hold."""


async def hello(_: Request) -> Response:
    """A small response."""
    return PlainTextResponse("hello")


async def large(_: Request) -> Response:
    """A large one."""
    return Response(LARGE)


def routed(answer: Callable[[Request], Awaitable[Response]] = hello) -> Starlette:
    """The application."""
    return Starlette(routes=[Route("/", answer), Route("/-/healthy", hello)])


@asynccontextmanager
async def connected(
    sent: bytes, answer: Callable[[Request], Awaitable[Response]] = hello, limit: int = 1 << 16
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A client that has sent this to the real server."""
    async with serving(routed(answer)) as port:
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


async def test_port_zero_is_a_real_port_and_signal_handlers_are_left_alone() -> None:
    """The port that is told answers, without the name of a server."""
    before = signal.getsignal(signal.SIGTERM)
    async with connected(REQUEST + b"Connection: close\r\n\r\n") as (reader, _):
        answer = await reader.read()
        assert signal.getsignal(signal.SIGTERM) is before
    assert (answer.endswith(b"hello"), b"server:" in answer.lower()) == (True, False)


async def test_a_cancelled_server_ends_cleanly() -> None:
    """Cancelling ends the server as `stop` does, and frees the port."""
    used = [0]
    for _ in range(2):
        port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(Server(routed(), "127.0.0.1", used[-1]).serve(started=port.set_result))
        used.append(await asyncio.wait_for(port, DEADLINE))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert used[1] == used[2]


async def test_a_server_that_is_stopped_before_it_serves_ends() -> None:
    """It accepts nothing, and frees the port, bound already or not."""
    for is_bound in (True, False):
        one, started = Server(routed(), "127.0.0.1", 0), list[int]()
        if is_bound:
            one.bind()
        one.stop()
        await asyncio.wait_for(one.serve(started=started.append), DEADLINE)
        one.stop()
        assert started == []


@pytest.mark.costly
@pytest.mark.parametrize("unfinished", [b"", REQUEST, b"GET"])
async def test_unfinished_headers_are_hung_up_on(unfinished: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that does not finish its headers in time loses the connection."""
    monkeypatch.setattr(serve, "HEADER_SECONDS", 0.05)
    async with connected(unfinished) as (reader, _):
        assert await is_over(reader)


async def test_later_requests_have_a_deadline_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kept connection is quick or closed; waiting between requests is not being slow."""
    monkeypatch.setattr(serve, "HEADER_SECONDS", 0.05)
    async with connected(b"") as (reader, writer):
        for _ in range(2):
            writer.write(REQUEST + b"\r\n")
            await answered(reader)
        writer.write(REQUEST)
        assert await is_over(reader)


@pytest.mark.parametrize(("limit", "rest"), [("REMAINDER_SECONDS", b"drip"), ("KEEP_ALIVE_SECONDS", b"the whole")])
async def test_a_body_nobody_reads_is_not_waited_for(limit: str, rest: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer arrives before its end. What drips is hung up on; where it ends, the connection is a kept one."""
    monkeypatch.setattr(serve, limit, 0.05)
    async with connected(UNREAD) as (reader, writer):
        await answered(reader)
        writer.write(rest)
        assert await is_over(reader)


@pytest.mark.costly
async def test_whoever_takes_too_little_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that takes some, but far less than the slowest rate, is hung up on once its grace is over."""
    monkeypatch.setattr(serve, "CHECK_SECONDS", 0.02)
    monkeypatch.setattr(serve, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(serve, "MIN_BYTES_PER_SECOND", 1 << 30)
    async with connected(REQUEST + b"\r\n", large, 1024) as (reader, _):
        assert await is_hung_up_on(reader, 16 << 10, 0.01)


async def test_one_too_many_is_told_and_health_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where as many are being answered as may be, the next one is refused with 503; health has a place of its own."""
    monkeypatch.setattr(serve, "max_connections", lambda: 8)
    async with serving(routed(large)) as port:
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
    monkeypatch.setattr(serve, "CHECK_SECONDS", 0.05)
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


def _hang_up(server: socket.socket) -> None:
    server.accept()[0].close()


def test_a_free_port() -> None:
    """Whoever connects is let in, and small replies are not held back."""
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_that_another_process_has() -> None:
    """It says how to find out whose it is."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        thread = Thread(target=_hang_up, args=(other,))  # who asks it who it is gets no answer
        thread.start()
        with pytest.raises(AddressError) as caught:
            listen("127.0.0.1", port)
        thread.join()
    assert str(caught.value) == (
        f"web.listen: cannot listen on 127.0.0.1:{port}: Address already in use; another process has this port "
        f"(see `ss -ltnp 'sport = :{port}'`); stop it or write another port"
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])  # noqa: S104 - refused, and never bound
async def test_a_port_that_another_ragwatch_has(host: str) -> None:
    """The likeliest case is named."""
    async with serving(application()) as port:
        with pytest.raises(AddressError, match="; another ragwatch has this port"):
            await asyncio.to_thread(listen, host, port)


@pytest.mark.parametrize("host", ["no such host.invalid", "192.0.2.1", "2001:db8::1", "x" * 80 + ".y"])
def test_an_address_that_is_not_ours(host: str) -> None:
    """Unknown names and other machines' addresses."""
    named = re.escape(f"[{host}]:80" if ":" in host else f"{host}:80")
    with pytest.raises(AddressError, match=f"cannot listen on {named}: .+; write an address of this machine"):
        listen(host, 80)


def test_a_port_that_needs_a_privilege() -> None:
    """Tests may have it, so only the advice is looked at."""
    assert (
        _advice(OSError(errno.EACCES, ""), "127.0.0.1", 80) == "ports below 1024 need a privilege; write a higher port"
    )


class One:
    """A newcomer that tells how idle it is, and remembers that it was closed."""

    def __init__(self, all_of_them: Connections, host: str, idle: tuple[int, float] | None) -> None:
        self.host, self.state, self.closed = host, idle, False
        all_of_them.opened(self)

    def idle(self) -> tuple[int, float] | None:
        """How dispensable it is, and since when."""
        return self.state

    def abort(self) -> None:
        """Note it."""
        self.closed = True


def test_the_least_needed_goes_first() -> None:
    """Of those that are idle the lower rank goes, then whoever is idle for longer; nobody who is being answered."""
    limited = Connections(4)
    states = {"busy": None, "scraper": (2, 1.0), "silent": (0, 5.0), "late": (0, 6.0)}
    ones = [One(limited, name, idle) for name, idle in states.items()]
    gone = []
    for number in range(3):
        One(limited, f"new {number}", None)
        gone.append({one.host for one in ones if one.closed})
    assert gone == [{"silent"}, {"silent", "late"}, {"silent", "late", "scraper"}]


def test_a_client_closes_its_own_first() -> None:
    """A client with more than its part loses its own oldest one; those of others stay."""
    limited = Connections(8)
    other = One(limited, "other", (0, 0.0))
    own = [One(limited, "one", (0, float(number))) for number in range(1, 6)]
    assert [connection.closed for connection in own] == [True, True, True, False, False]
    assert not other.closed


def test_newcomers_are_closed_only_where_nobody_is_idle() -> None:
    """Beyond the reserve, when all are being answered, there is no place."""
    limited = Connections(4)
    ones = [One(limited, str(number), None) for number in range(4 + RESERVED + 1)]
    assert [connection.closed for connection in ones] == [False] * (4 + RESERVED) + [True]
    limited.closed(ones[0])
    assert not One(limited, "next", None).closed


def test_requests_are_limited_in_all_and_by_client() -> None:
    """A client is answered a part of all that may be answered at once; whoever asks for health always is."""
    limited = Connections(8)
    own = [One(limited, "one", None) for _ in range(3)]
    assert [limited.begin(connection, "/samples") for connection in own] == [True, True, False]
    assert limited.begin(own[2], "/metrics")
    assert limited.begin(own[2], "/-/healthy")
    limited.answered(own[2])  # it holds no place
    assert not limited.begin(own[2], "/samples")
    others = [One(limited, f"{number // 2}", None) for number in range(8)]
    assert [limited.begin(connection, "/") for connection in others] == [True] * 6 + [False] * 2
    limited.answered(own[0])
    assert limited.begin(others[6], "/")
    assert all(limited.begin(connection, "/-/ready") for connection in others)


@pytest.mark.parametrize(
    ("soft", "most"), [(resource.RLIM_INFINITY, 256), (1 << 20, 256), (1024, 128), (256, 32), (10, 16)]
)
def test_descriptors_limit_connections(soft: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the process may open little, followed logs keep most of it."""
    monkeypatch.setattr(connections.resource, "getrlimit", lambda _: (soft, soft))
    assert max_connections() == most
