"""Texts of documents by id, from a real server on the loopback interface."""

import gzip
import json
from collections.abc import Iterator
from urllib.parse import unquote

import pytest
from pydantic import SecretStr, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from support.answering import dripping
from support.kit import Clock
from support.retrievers import serving
from support.spans import ANSWER, OI, TEXTS, a_span, genai_ids_only, said
from unit.sources.test_otlp_source import GRACE, a_source, records, settled, stored

from ragwatch.errors import SourceError
from ragwatch.model.sample import RejectReason
from ragwatch.sources.otlp import source as module
from ragwatch.sources.otlp.resolver import ResolveOptions, Resolver

REPLIES = {
    "d0": (200, TEXTS[0]),
    "d1": (200, json.dumps({"id": "d1", "content": TEXTS[1]})),
    "quoted/../d2": (200, json.dumps("a text")),
    "listed": (200, json.dumps({"data": [{"text": "the first"}]})),
    "nothing": (200, json.dumps({"count": 3})),
    "gone": (404, "no"),
    "large": (200, "x" * 5_000),
    "packed": (200, gzip.compress(b"a packed text")),
    "broken": (500, "no"),
}
PACKED = {"Content-Encoding": "gzip"}


class Documents:
    """A server of documents, which notes what it is asked."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []
        self.tokens: set[str] = set()

    async def reply(self, request: Request) -> Response:
        """The reply for an id."""
        name = unquote(request.scope["raw_path"].decode().removeprefix("/chunks/"))
        self.asked.append(name)
        self.tokens.add(request.headers.get("authorization", ""))
        status, body = REPLIES[name]
        return Response(body, status, PACKED if isinstance(body, bytes) else None)


@pytest.fixture
def server() -> Iterator[Documents]:
    """The server."""
    documents = Documents()
    with serving(Route("/chunks/{id:path}", documents.reply)) as address:
        documents.url = f"{address}/chunks/{{id}}"
        yield documents


def test_texts_by_id(server: Documents) -> None:
    """Text or JSON; ids are quoted; what is not there or too large has no text; what is known is not asked again."""
    resolver = Resolver(ResolveOptions(url=server.url, bearer=SecretStr("token"), max_bytes=4_000, cached=3))
    names = [name for name in REPLIES if name != "broken"]
    assert resolver(names) == {"d0": TEXTS[0], "d1": TEXTS[1], "quoted/../d2": "a text", "listed": "the first"} | {
        "packed": "a packed text"
    }
    assert server.asked == names
    assert resolver(["listed"]) == {"listed": "the first"}
    assert (server.asked, server.tokens) == (names, {"Bearer token"})
    assert resolver(["d0"]) == {"d0": TEXTS[0]}
    assert server.asked == [*names, "d0"]
    with pytest.raises(SourceError, match="HTTP 500"):
        resolver(["broken"])
    resolver.close()


def test_a_server_that_is_not_there(server: Documents) -> None:
    """An error to be tried again, as is one that takes too long for all documents."""
    url = server.url
    slow = Resolver(ResolveOptions(url=url, max_seconds=1e-9))
    with pytest.raises(SourceError, match="within 1e-09 s"):
        slow(["d0", "d1"])
    resolver = Resolver(ResolveOptions(url="http://127.0.0.1:9/{id}"))
    with pytest.raises(SourceError, match="ConnectError"):
        resolver(["d0"])
    slow.close()
    resolver.close()


@pytest.mark.parametrize(
    ("head", "limits", "message"),
    [
        (b"HTTP/1.1 200 OK\r\nX-Header: ", {"timeout_seconds": 0.3}, "no whole reply within 0.3 s"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n", {"timeout_seconds": 0.3}, "no whole reply within 0.3 s"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n", {"max_seconds": 0.3}, "all documents within 0.3 s"),
    ],
)
def test_a_reply_that_drips_holds_up_nobody(head: bytes, limits: dict[str, float], message: str) -> None:
    """The time limits are those of the whole reply, and of all replies, however often a byte comes."""
    with dripping(head) as url:
        resolver = Resolver(ResolveOptions.model_validate({"url": f"{url}/{{id}}", **limits}))
        with pytest.raises(SourceError, match=message):
            resolver(["d0"])
        resolver.close()


async def test_a_source_waits_for_the_texts(server: Documents) -> None:
    """While the server fails, the trace waits and is tried again; in the end it is refused, with the reason."""
    clock = Clock()
    spans = genai_ids_only()
    spans[2] = a_span("chat", "invoke_workflow", 5, attributes={OI: "LLM"}
                      | said("llm.output_messages", ("assistant", ANSWER)))  # fmt: skip
    source = a_source(clock, resolve={"url": server.url})
    failing = a_source(clock, resolve={"url": "http://127.0.0.1:9/{id}"})
    for one in (source, failing):
        await stored(one, spans)
    clock.now += GRACE
    (batch,) = settled(source)
    assert [context["text"] for context in records(batch)[0]["contexts"]] == list(TEXTS)
    assert failing.read() is None
    for _ in range(module.MAX_TRIES):
        clock.now += module.RETRY_SECONDS
        batches = settled(failing)
    assert [one.reason for one in batches[0].rejections] == [RejectReason.NO_CONTENT]
    assert "ConnectError" in batches[0].rejections[0].detail
    for one in 2 * (source, failing):  # a daemon that stops closes them before its last answers, and at the end
        one.close()


def test_an_id_leaves_no_folder(server: Documents) -> None:
    """It is not asked for; others are one segment of the path."""
    resolver = Resolver(ResolveOptions(url=server.url, bearer=SecretStr("secret")))
    assert resolver(["", ".", "..", "quoted/../d2"]) == {"quoted/../d2": "a text"}
    assert server.asked == ["quoted/../d2"]
    resolver.close()


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://docs/{id}", "http://docs/chunks", "http:///{id}", "http://{id}.docs/"),
        *("http://169.254.169.254/{id}", "http://[fe80::1]/{id}", "http://anna:pw@docs/{id}", "http://metadata/{id}"),
    ],
)
def test_addresses_that_are_not_asked(url: str) -> None:
    """The id belongs into path or parameters of an HTTP URL, whose host is no metadata service; no password does."""
    with pytest.raises(ValidationError, match=r"is not a URL with|metadata service|holds a user"):
        ResolveOptions(url=url)
