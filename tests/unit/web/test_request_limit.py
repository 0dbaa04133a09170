"""Limits on requests in progress: FIFO order and 503; slow bodies get 408, and a disconnect gives its place back."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, suppress

import pytest
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send
from support.asked import Words, application, asking, serving
from support.patience import DEADLINE

from ragwatch.web import RequestPolicy, request_limit
from ragwatch.web.request_limit import CHUNK_BYTES, RequestBodyLimit, RequestLimit
from ragwatch.web.server import connections

SCOPE: Scope = {"type": "http", "method": "GET"}


async def nothing() -> Message:
    """A client that sends nothing."""
    return {"type": "http.disconnect"}


class Sent:
    """A client that takes what is sent."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def __call__(self, message: Message) -> None:
        """Keep it."""
        self.messages.append(message)


async def test_a_response_keeps_what_it_has_until_it_is_sent() -> None:
    """Bytes beyond those of the body are free once it is made, the rest once it is sent."""
    turns, sent = RequestLimit(threads=1, total=100, seconds=0.05), Sent()
    first = await turns.answer(lambda: Response(b"x" * 60), 100)
    second = await turns.answer(lambda: Response(b"y" * 30), 40)
    with pytest.raises(HTTPException) as refused:
        await turns.answer(lambda: Response(b"z"), 40)
    assert refused.value.status_code == 503
    assert (refused.value.headers or {})["Retry-After"] == "5"
    await first(SCOPE, nothing, sent)
    third = await turns.answer(lambda: Response(b"z"), 40)
    await second(SCOPE, nothing, sent)
    await third(SCOPE, nothing, sent)
    assert b"".join(message.get("body", b"") for message in sent.messages) == b"x" * 60 + b"y" * 30 + b"z"
    await turns.answer(lambda: Response(b""), 100)


async def test_those_who_wait_are_served_in_order() -> None:
    """Who came first is first; a small one does not pass a large one that waits, unless that gives up."""
    turns = RequestLimit(threads=1, total=10, seconds=10.0)
    order: list[str] = []

    async def ask(name: str, size: int) -> None:
        await turns.answer(lambda: Response(b""), size)
        order.append(name)

    held = await turns.answer(lambda: Response(b"1234567"), 10)
    large, small = asyncio.create_task(ask("large", 9)), asyncio.create_task(ask("small", 4))
    await asyncio.sleep(0.05)
    assert order == []
    large.cancel()
    await asyncio.wait_for(asyncio.gather(large, return_exceptions=True), DEADLINE)
    third = asyncio.create_task(ask("third", 8))
    await asyncio.sleep(0.05)
    await held(SCOPE, nothing, Sent())
    await asyncio.wait_for(asyncio.gather(small, third), DEADLINE)
    assert order == ["small", "third"]


async def test_one_that_waited_in_vain_makes_room_for_those_behind() -> None:
    """A large request that gives up does not keep a small one waiting that has room."""
    turns = RequestLimit(threads=1, total=10, seconds=0.2)
    await turns.answer(lambda: Response(b"12345"), 10)
    large = asyncio.create_task(turns.answer(lambda: Response(b""), 9))
    await asyncio.sleep(0.1)
    small = asyncio.create_task(turns.answer(lambda: Response(b""), 3))
    assert isinstance((await asyncio.gather(large, return_exceptions=True))[0], HTTPException)
    await asyncio.wait_for(small, DEADLINE)


async def test_a_failure_gives_its_turn_back() -> None:
    """What breaks while a response is made, or sent, holds nothing."""
    turns = RequestLimit(threads=1, total=10, seconds=0.05)

    def broken() -> Response:
        raise ValueError("broken")

    async def gone(_: Message) -> None:
        raise ConnectionError

    for _ in range(3):
        with pytest.raises(ValueError, match="broken"):
            await turns.answer(broken, 10)
        response = await turns.answer(lambda: Response(b"0123456789"), 10)
        with pytest.raises(ConnectionError):
            await response(SCOPE, nothing, gone)


async def test_as_many_threads_as_said() -> None:
    """One thread at a time works where one is allowed, and the loop goes on meanwhile."""
    turns = RequestLimit(threads=1, total=1000, seconds=10.0)
    at_work = threading.Lock()

    def alone() -> Response:
        assert at_work.acquire(blocking=False)
        threading.Event().wait(0.02)
        at_work.release()
        return Response(b"")

    await asyncio.wait_for(asyncio.gather(*(turns.answer(alone, 1) for _ in range(5))), DEADLINE)


async def test_a_stream_is_made_while_it_is_sent() -> None:
    """Pieces are written together up to a size; nothing is made before it is wanted."""
    made: list[int] = []

    def pieces() -> Iterator[bytes]:
        for number in range(10):
            made.append(number)
            yield b"x" * (CHUNK_BYTES // 2)

    turns = RequestLimit(threads=1, total=10, seconds=10.0)
    sent: list[Message] = []

    async def send(message: Message) -> None:
        assert len(made) <= 2 * len(sent)
        sent.append(message)

    await turns.stream(pieces())(SCOPE, nothing, send)
    assert sent[0]["headers"] == [(b"content-type", b"application/json")]
    assert [len(message.get("body", b"")) for message in sent[1:]] == [CHUNK_BYTES] * 5 + [0]
    assert [message.get("more_body") for message in sent[1:]] == [True] * 5 + [False]


async def test_a_response_that_takes_too_long_is_given_up() -> None:
    """It gets a 503, as one behind it that waits for its thread; both are free again once the thread ends."""
    turns = RequestLimit(threads=1, total=2, seconds=0.05, give_up=0.05)
    answered, built = threading.Event(), []

    def hang() -> Response:
        assert answered.wait(DEADLINE)
        return Response(b"late")

    for make in (hang, lambda: built.append(1) or Response(b"")):
        with pytest.raises(HTTPException) as refused:
            await turns.answer(make, 1)
        assert (refused.value.status_code, "takes longer" in refused.value.detail) == (503, True)
    with pytest.raises(HTTPException, match="Too many"):
        await turns.answer(lambda: Response(b""), 1)
    answered.set()
    for _ in range(int(DEADLINE / 0.05)):
        with suppress(HTTPException):
            await turns.answer(lambda: Response(b""), 2)
            break
    else:
        pytest.fail("what was given up is never free again")
    assert not built


POST = b"POST /v1/labels/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30\r\n\r\n"
BODY = b'{"annotator": "ann","count":3}'
assert len(BODY) == 30


def door() -> AbstractAsyncContextManager[int]:
    """The port of a server that takes words."""
    return serving(application(render=lambda *_: (b"figures", ""), labels=Words))


async def begun(port: int, sent: bytes = POST + BODY[:5]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A client that has sent a part of its request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    return reader, writer


async def test_a_body_that_does_not_come_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers and five bytes, then nothing: 408 and a closed connection."""
    monkeypatch.setattr(request_limit, "BODY_SECONDS", 0.05)
    async with door() as port:
        reader, writer = await begun(port)
        text = await asyncio.wait_for(reader.read(), DEADLINE)
        writer.close()
    assert text.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in text.lower()
    assert text.endswith(b"The request body was not received within 0.05 seconds.\n")


FORM = b"Content-Type: application/x-www-form-urlencoded\r\nOrigin: http://localhost\r\n"


@pytest.mark.parametrize(
    ("path", "headers", "status", "says"),
    [
        ("/v1/labels", b"", 413, b"body: more than 4194304 bytes, the limit of this address"),
        ("/v1/forget", b"", 413, b"body: more than 4194304 bytes, the limit of this address"),
        ("/mcp", b"", 413, b"body: more than 4194304 bytes, the limit of this address"),
        ("/label", FORM, 413, b"body: more than 16384 bytes, the limit of this address"),
        ("/v1/samples", b"", 404, b"none of kind push"),
        ("/-/healthy", b"", 405, b"Method Not Allowed"),
        ("/v1/labels", b"Host: elsewhere.example.org\r\n", 400, b"Invalid HTTP request"),
    ],
)
@pytest.mark.parametrize("length", [b"Content-Length: %d\r\n", b"Transfer-Encoding: chunked\r\n"])
async def test_whoever_sends_too_much_is_told_so(
    path: str, headers: bytes, status: int, says: bytes, length: bytes
) -> None:
    """Every address answers a client that sends all before it reads, and that wants the connection closed."""
    body = b"x" * (8 << 20)
    framed = length % len(body) if b"%d" in length else length
    sent = body if b"%d" in length else b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    head = b"POST %b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" % path.encode()
    async with serving(application(labels=Words, policy=RequestPolicy(mcp=lambda: True))) as port:
        reader, writer = await begun(port, head + headers + framed + b"\r\n")
        writer.write(sent)
        await asyncio.wait_for(writer.drain(), DEADLINE)
        text = await asyncio.wait_for(reader.read(), DEADLINE)
        writer.close()
    assert text.startswith(b"HTTP/1.1 %d " % status)
    assert says in text


@pytest.mark.parametrize(
    ("query", "headers", "status", "says"),
    [
        ("limit=1&" * 400, {}, 400, "limit: given twice"),
        ("a=b&" * 600, {}, 414, "more than 500 parameters"),
        (f"route={'x' * 20_000}", {}, 414, "more than 16384 bytes"),
        ("route=x", {f"x{number}": "a" for number in range(300)}, 431, "more than 200 headers"),
        ("route=x", {"cookie": "a=b;" * 20_000}, 431, "more than 65536 bytes"),
    ],
)
async def test_x22_addresses_and_headers_have_limits(
    query: str, headers: dict[str, str], status: int, says: str
) -> None:
    """Reading tens of thousands of parameters took seconds of CPU time."""
    async with asking(application()) as client:
        response = await client.get(f"/api/v1/samples?{query}", headers=headers)
    assert (response.status_code, says in response.text) == (status, True), response.text


CHUNKED = b"Transfer-Encoding: chunked\r\n"
INNER = b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "framing",
    [
        CHUNKED + b"Content-Length: 0\r\n",
        b"Transfer-Encoding:\r\n chunked\r\nContent-Length: 0\r\n",
        b"Content-Length: 9\r\nContent-Length: 0\r\n",
        b"Content-Length: 9, 0\r\n",
        b"Content-Length: +0\r\n",
        b"Content-Length: 0_0\r\n",
        b"Content-Length: -1\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Transfer-Encoding: \x0bchunked\r\n",
        CHUNKED + b"Transfer-Encoding: identity\r\n",
        b"X: a\rContent-Length: 0\r\nContent-Length: 9\r\n",
        b"X: a\0b\r\nContent-Length: 0\r\n",
        CHUNKED + b"\r\n0x1\r\na\r\n0\r\n",
        CHUNKED + b"\r\n-1\r\na\r\n0\r\n",
        CHUNKED + b"\r\n1\r\naXX0\r\n",
    ],
)
async def test_x21_no_body_is_taken_for_a_request(framing: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """What two servers could read with two lengths is refused, and nothing behind it answered; no log grows by it."""
    async with door() as port:
        reader, writer = await begun(
            port, b"POST /v1/labels HTTP/1.1\r\nHost: localhost\r\n" + framing + b"\r\n" + INNER
        )
        text = await asyncio.wait_for(reader.read(), DEADLINE)
        writer.close()
    assert (text.count(b"HTTP/1.1 "), text[:13]) == (1, b"HTTP/1.1 400 ")
    assert caplog.records == []


async def test_garbage_behind_a_response_is_hung_up_on(caplog: pytest.LogCaptureFixture) -> None:
    """There is no second response, and no error in the log."""
    async with door() as port:
        reader, writer = await begun(port, b"POST /nothing HTTP/1.1\r\nHost: localhost\r\n" + CHUNKED + b"\r\n")
        assert (await asyncio.wait_for(reader.readuntil(b"all pages.\n"), DEADLINE)).startswith(b"HTTP/1.1 404 ")
        writer.write(b"no size of a chunk\r\n")
        with suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), DEADLINE) == b""
        writer.close()
    assert caplog.records == []


async def test_whoever_does_not_stop_sending_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of a body has a deadline, and holds no place of those whose bodies are received meanwhile."""
    monkeypatch.setattr(connections, "REMAINDER_SECONDS", 0.3)
    monkeypatch.setattr(request_limit, "MAX_BODIES", 1)
    head = b"POST /v1/labels HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 99999999999\r\n\r\n"
    async with door() as port:
        endless, writer = await begun(port, head)
        assert (await asyncio.wait_for(endless.readuntil(b"\r\n"), DEADLINE)).startswith(b"HTTP/1.1 413 ")
        again, other = await begun(port, POST + BODY)
        assert (await asyncio.wait_for(again.readuntil(b"\r\n"), DEADLINE)).startswith(b"HTTP/1.1 200")
        async with asyncio.timeout(DEADLINE):
            with suppress(ConnectionError):
                while not writer.transport.is_closing():
                    writer.write(b"x" * 65536)
                    await writer.drain()
        for client in (writer, other):
            client.close()


async def test_a_form_that_does_not_come_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """408, as for other bodies."""
    monkeypatch.setattr(request_limit, "BODY_SECONDS", 0.05)
    async with door() as port:
        reader, writer = await begun(
            port, POST.replace(b"/v1/labels/tasks", b"/label").replace(b"\r\n", b"\r\n" + FORM, 1)
        )
        text = await asyncio.wait_for(reader.read(), DEADLINE)
        writer.close()
    assert text.startswith(b"HTTP/1.1 408 ")


async def test_dripping_does_not_renew_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then keeps nothing alive: the deadline is for the whole."""
    monkeypatch.setattr(request_limit, "BODY_SECONDS", 0.05)

    async def app(_: Scope, receive: Receive, __: Send) -> None:
        while (await receive())["more_body"]:
            pass

    async def drip() -> Message:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b" ", "more_body": True}

    with pytest.raises(HTTPException) as ended:
        await asyncio.wait_for(RequestBodyLimit(app)({"type": "http"}, drip, Sent()), DEADLINE)
    assert ended.value.status_code == 408


async def test_one_too_many_is_refused_and_scrapes_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body more than may be open is refused at once; what has no body is answered; a free place is a place."""
    monkeypatch.setattr(request_limit, "MAX_BODIES", 2)
    async with door() as port:
        first, second = await begun(port), await begun(port)
        scrape, scraper = await begun(port, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert (await asyncio.wait_for(scrape.read(), DEADLINE)).endswith(b"figures")
        refused, third = await begun(port)
        text = await asyncio.wait_for(refused.read(), DEADLINE)
        assert text.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 30" in text.lower()
        for reader, writer in (first, second):
            writer.write(BODY[5:])
            assert (await asyncio.wait_for(reader.readuntil(b"\r\n"), DEADLINE)).startswith(b"HTTP/1.1 200")
        again, fourth = await begun(port, POST + BODY)
        assert (await asyncio.wait_for(again.readuntil(b"\r\n"), DEADLINE)).startswith(b"HTTP/1.1 200")
        for client in (first[1], second[1], scraper, third, fourth):
            client.close()


async def test_whoever_leaves_gives_the_place_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A client that hangs up in the middle of its body is no fault of ours, and holds no place."""
    monkeypatch.setattr(request_limit, "MAX_BODIES", 1)
    async with door() as port:
        with caplog.at_level(logging.ERROR):
            for _ in range(3):
                _, writer = await begun(port)
                writer.close()
                await writer.wait_closed()
                while True:  # until the server has noticed, a place is wanted in vain
                    reader, writer = await begun(port, POST + BODY)
                    text = await asyncio.wait_for(reader.readuntil(b"\r\n"), DEADLINE)
                    writer.close()
                    if text.startswith(b"HTTP/1.1 200"):
                        break
                    assert text.startswith(b"HTTP/1.1 503")
    assert caplog.records == []
