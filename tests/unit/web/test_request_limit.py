"""Limit on requests in progress: FIFO order, and 503 after the maximum waiting time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Message, Scope
from support.patience import DEADLINE

from ragwatch.web.request_limit import CHUNK_BYTES, RequestLimit

SCOPE: Scope = {"type": "http", "method": "GET"}


async def nothing() -> Message:
    """A client that sends nothing."""
    return {"type": "http.disconnect"}


def body_of(sent: list[Message]) -> bytes:
    """What a response brought."""
    return b"".join(message.get("body", b"") for message in sent)


async def test_a_response_keeps_what_it_has_until_it_is_sent() -> None:
    """Bytes beyond those of the body are free once it is made, the rest once it is sent."""
    turns = RequestLimit(threads=1, total=100, seconds=0.05)
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    first = await turns.answer(lambda: Response(b"x" * 60), 100)
    second = await turns.answer(lambda: Response(b"y" * 30), 40)
    with pytest.raises(HTTPException) as refused:
        await turns.answer(lambda: Response(b"z"), 40)
    assert refused.value.status_code == 503
    assert (refused.value.headers or {})["Retry-After"] == "5"
    await first(SCOPE, nothing, send)
    third = await turns.answer(lambda: Response(b"z"), 40)
    await second(SCOPE, nothing, send)
    await third(SCOPE, nothing, send)
    assert body_of(sent) == b"x" * 60 + b"y" * 30 + b"z"
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

    async def send(_: Message) -> None:
        pass

    await held(SCOPE, nothing, send)
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
