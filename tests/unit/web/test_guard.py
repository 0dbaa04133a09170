"""The guard: names that are ours, and requests that come from us."""

from __future__ import annotations

import pytest
from starlette.types import Message, Receive, Scope, Send

from ragwatch.web.guard import Guard, _is_ours, allowed_hosts

OURS = allowed_hosts("127.0.0.1", "https://rag.example.org/watch/")


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("localhost:10477", True),
        ("LOCALHOST", True),
        ("127.0.0.1:10477", True),
        ("[::1]:10477", True),
        ("10.1.2.3:10477", True),
        ("rag.example.org", True),
        ("", True),
        ("attacker.example", False),
        ("localhost.attacker.example", False),
        ("rag.example.org.attacker.example", False),
        ("[::1", False),
    ],
)
def test_names_are_ours_or_not(host: str, ours: bool) -> None:  # noqa: FBT001 - a parameter of the table
    """Rebinding needs a name; names that are not ours are refused, addresses are not."""
    assert OURS is not None
    assert _is_ours(host, OURS) is ours


@pytest.mark.parametrize(
    ("listen", "external", "expected"),
    [
        ("0.0.0.0", None, None),  # noqa: S104 - the case of the table
        ("::", None, None),
        ("127.0.0.1", None, {"localhost", "127.0.0.1", "::1"}),
        ("Rag.Internal", None, {"localhost", "127.0.0.1", "::1", "rag.internal"}),
        ("0.0.0.0", "http://rag:80", {"localhost", "127.0.0.1", "::1", "rag"}),  # noqa: S104 - the same
        ("127.0.0.1", "no address", {"localhost", "127.0.0.1", "::1"}),
        ("127.0.0.1", "https://[", {"localhost", "127.0.0.1", "::1"}),
    ],
)
def test_allowed_names_follow_the_configuration(listen: str, external: str | None, expected: set[str] | None) -> None:
    """Loopback names, the name we listen on and the name people use; any name when that cannot be known."""
    found = allowed_hosts(listen, external)
    assert found == (None if expected is None else frozenset(expected))


async def test_what_is_not_http_passes() -> None:
    """A server's own life-cycle messages are none of the guard's business."""
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])
        await send(await receive())

    async def receive() -> Message:
        return {"type": "lifespan.startup"}

    async def send(message: Message) -> None:
        seen.append(message["type"])

    await Guard(app, frozenset)({"type": "lifespan"}, receive, send)
    assert seen == ["lifespan", "lifespan.startup"]
