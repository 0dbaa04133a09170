"""Request bodies: slow ones get 408, too many get 503, and a disconnect releases the slot."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractAsyncContextManager

import pytest
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send
from support.asked import Words, application, serving
from support.patience import DEADLINE

from ragwatch.web import request_limit
from ragwatch.web.request_limit import RequestBodyLimit

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


async def test_dripping_does_not_renew_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then keeps nothing alive: the deadline is for the whole."""
    monkeypatch.setattr(request_limit, "BODY_SECONDS", 0.05)
    text: list[Message] = []

    async def app(_: Scope, receive: Receive, __: Send) -> None:
        while (await receive())["more_body"]:
            pass

    async def drip() -> Message:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b" ", "more_body": True}

    async def send(message: Message) -> None:
        text.append(message)

    with pytest.raises(HTTPException) as ended:
        await asyncio.wait_for(RequestBodyLimit(app)({"type": "http"}, drip, send), DEADLINE)
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
