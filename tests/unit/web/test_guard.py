"""Host and Origin checks."""

from __future__ import annotations

import socket

import pytest
from starlette.responses import PlainTextResponse
from support.asked import asking

from ragwatch.web.access import RequestPolicy
from ragwatch.web.guard import RequestGuard, allowed_hosts

HOSTNAME = socket.gethostname().lower()


@pytest.mark.parametrize(
    ("listen", "external", "expected"),
    [
        ("0.0.0.0", None, {"localhost", "127.0.0.1", "::1", HOSTNAME}),  # noqa: S104 - the case of the table
        ("::", None, {"localhost", "127.0.0.1", "::1", HOSTNAME}),
        ("127.0.0.1", None, {"localhost", "127.0.0.1", "::1"}),
        ("Rag.Internal", None, {"localhost", "127.0.0.1", "::1", "rag.internal"}),
        ("0.0.0.0", "http://rag:80", {"localhost", "127.0.0.1", "::1", "rag", HOSTNAME}),  # noqa: S104 - the same
        ("127.0.0.1", "no address", {"localhost", "127.0.0.1", "::1"}),
        ("127.0.0.1", "https://[", {"localhost", "127.0.0.1", "::1"}),
    ],
)
def test_allowed_names_follow_the_configuration(listen: str, external: str | None, expected: set[str]) -> None:
    """Loopback names, the name we listen on and the name people use; at every address also that of the machine."""
    assert allowed_hosts(listen, external) == expected


@pytest.mark.parametrize(
    ("origin", "scheme", "external", "wanted"),
    [
        ("http://localhost:10477", "http", None, False),
        ("https://localhost:10477", "https", None, False),
        ("https://localhost:10477", "http", None, True),
        ("ftp://localhost:10477", "http", None, True),
        ("http://localhost:10477", "https", None, True),
        ("http://localhost", "http", None, True),
        ("https://rag.example.org", "http", "https://rag.example.org/watch/", False),
        ("http://rag.example.org", "http", "https://rag.example.org/watch/", True),
        ("null", "http", None, True),
        ("http://[", "http", "http://[", True),
        ("//localhost:10477", "http", "", True),
    ],
)
async def test_an_origin_is_scheme_and_host(
    origin: str,
    scheme: str,
    external: str | None,
    wanted: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    """A page of the same host over another scheme is another site, unless people use that address."""
    guard = RequestGuard(PlainTextResponse("done"), RequestPolicy(external=lambda: external))
    async with asking(guard, f"{scheme}://localhost:10477") as client:
        reply = await client.post("/-/reload", headers={"Origin": origin})
    assert reply.status_code == (403 if wanted else 200)
