"""Outgoing requests against real servers: redirects, addresses that no probe may reach, proxies, large replies."""

import ast
import gzip
import re
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anthropic
import httpx
import httpx2
import pytest
from support.answering import Asked, Reply, answering, dripping
from support.kit import a_judge_context, a_sample

import ragwatch
from ragwatch.errors import JudgeError
from ragwatch.judges import claude, openai
from ragwatch.outgoing.addresses import checked_url, forbidden, resolve
from ragwatch.outgoing.client import (
    MAX_REPLY_BYTES,
    ForbiddenAddressError,
    Guard,
    async_client,
    judge_client,
)
from ragwatch.outgoing.proxies import parse_proxies

MIB = 1 << 20
PACKAGE = Path(ragwatch.__file__).parent
BUILDS_CLIENTS = {
    "outgoing/client.py",
    "emit.py",  # the standard library alone, within a user's service; it follows no redirects
    "commands/api_client.py",  # of the daemon, at an address that the user gives
    "web/server/serve.py",  # asks the daemon itself whether it serves
    "demo/__init__.py",  # the demo's own service
    "sources/brokers/nats.py",  # a client of NATS
}


class Server:
    """Answers each request as the test says, and keeps what it was asked."""

    url = ""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.status, self.headers, self.body = 200, dict[str, str](), b""

    def reply(self, _: Asked) -> Reply:
        """What the test says."""
        return self.status, self.body, self.headers


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    """Two servers."""
    both = (Server(), Server())
    with ExitStack() as started:
        for one in both:
            one.url, one.asked = started.enter_context(answering(one.reply))
        yield both


def judge_of(kind: str, address: str, **more: float) -> Any:
    """An LLM judge at an address."""
    given = {"model": "m", "prices": {"input": 1.0, "output": 2.0}, "api_key": "k", "deadline_seconds": 2.0}
    module = {"claude": claude, "openai": openai}[kind]
    return module.build(
        module.Options.model_validate({"base_url": address, **given, **more}), name="mine", context=a_judge_context()
    )


@pytest.mark.parametrize("kind", ["claude", "openai"])
@pytest.mark.parametrize("status", [302, 308])
async def test_no_judge_takes_texts_to_another_host(servers: tuple[Server, Server], kind: str, status: int) -> None:
    """A redirect is a failure; the other server sees nothing."""
    here, elsewhere = servers
    here.status, here.headers = status, {"Location": f"{elsewhere.url}/steal"}
    judge = judge_of(kind, here.url)
    with pytest.raises(JudgeError):
        await judge.read(a_sample())
    await judge.close()
    assert here.asked
    assert elsewhere.asked == []


def zeros_in_gzip() -> bytes:
    """300 MB, compressed."""
    packer = zlib.compressobj(1, wbits=31)
    return b"".join(packer.compress(bytes(MIB)) for _ in range(300)) + packer.flush()


LARGE: dict[str, tuple[Callable[[], bytes], str]] = {
    "30 MB as they are": (lambda: b"[" + b" " * (30 * MIB), "identity"),
    "300 MB in gzip": (zeros_in_gzip, "gzip"),
    "30 MB in gzip that unpack to nothing": (lambda: gzip.compress(b"")[:10] + b"\0\0\0\xff\xff" * (6 * MIB), "gzip"),
    "30 MB after the end of gzip": (lambda: gzip.compress(b"{}") + bytes(30 * MIB), "gzip"),
}


@pytest.mark.parametrize("kind", ["claude", "openai"])
@pytest.mark.parametrize("what", LARGE)
async def test_a_reply_is_read_to_its_limit(servers: tuple[Server, Server], kind: str, what: str) -> None:
    """As it was sent and as it is unpacked: the answer is unjudged, and memory stays near the limit."""
    here, _ = servers
    body, encoding = LARGE[what]
    here.body, here.headers = body(), {"Content-Encoding": encoding}
    judge = judge_of(kind, here.url, deadline_seconds=20.0)
    tracemalloc.start()
    with pytest.raises(JudgeError, match="a reply of more than"):
        await judge.read(a_sample())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    await judge.close()
    assert peak < 4 * MAX_REPLY_BYTES


@pytest.mark.parametrize("kind", ["claude", "openai"])
@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"])
async def test_a_timeout_is_that_of_a_whole_reply(kind: str, head: bytes) -> None:
    """Whatever is asked of a server that sends a byte at a time: `check` asks more than a reading does."""
    with dripping(head) as url:
        judge = judge_of(kind, url, timeout_seconds=0.3)
        with pytest.raises(JudgeError, match="no whole reply in time"):
            await judge.probe()
        await judge.close()


@pytest.mark.parametrize("library", [httpx, httpx2])
async def test_a_packed_reply_is_unpacked(servers: tuple[Server, Server], library: Any) -> None:
    """Within the limit it arrives whole; a compression that nobody asked for, and garbage, are errors."""
    here, _ = servers
    client = judge_client(library)
    text = b"the old mill " * 10_000
    here.body, here.headers = gzip.compress(text), {"Content-Encoding": "gzip"}
    assert (await client.get(here.url)).content == text
    for encoding, body in (("br", b"x"), ("gzip", b"no gzip")):
        here.body, here.headers = body, {"Content-Encoding": encoding}
        with pytest.raises(library.DecodingError):
            await client.get(here.url)
    await client.aclose()


@pytest.mark.parametrize("library", [httpx, httpx2])
@pytest.mark.parametrize("host", ["169.254.169.254", "[fe80::1]", "[64:ff9b:1::a9fe:a9fe]", "metadata.google.internal"])
async def test_no_request_reaches_a_metadata_service(library: Any, host: str) -> None:
    """By a literal address or by name."""
    client = async_client(library)
    with pytest.raises(library.ConnectError) as caught:
        await client.get(f"http://{host}/latest")
    assert isinstance(caught.value.__cause__, ForbiddenAddressError) or "resolved" in str(caught.value)
    await client.aclose()


async def test_a_proxy_is_asked_for_other_hosts_only(servers: tuple[Server, Server]) -> None:
    """The proxy gets the request for another host; loopback and metadata services never reach it."""
    proxy, here = servers
    environment = parse_proxies({"HTTP_PROXY": proxy.url})
    client = async_client(httpx, guard=Guard(httpx, environment))
    await client.get("http://judge.example/v1/models")
    await client.get(f"{here.url}/local")
    with pytest.raises(httpx.ConnectError, match="metadata"):
        await client.get("http://169.254.169.254/latest")
    await client.aclose()
    assert [(request.headers["Host"], request.path) for request in proxy.asked] == [("judge.example", "/v1/models")]
    assert [request.path for request in here.asked] == ["/local"]


@pytest.mark.parametrize("kind", ["claude", "openai"])
async def test_a_judge_starts_with_any_no_proxy(
    monkeypatch: pytest.MonkeyPatch, servers: tuple[Server, Server], kind: str
) -> None:
    """Entries that httpx cannot use cost no start, and loopback judges are asked directly."""
    proxy, here = servers
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, proxy.url)
    monkeypatch.setenv("NO_PROXY", "fe80::/10,[::1],10.0.0.0/99")
    judge = judge_of(kind, here.url)
    with pytest.raises(JudgeError):  # the server is no judge
        await judge.read(a_sample())
    await judge.close()
    assert here.asked
    assert proxy.asked == []


def test_the_library_of_the_sdk_is_known() -> None:
    """The client that the SDK gets is one that it takes."""
    assert issubclass(anthropic.DefaultAsyncHttpxClient, httpx2.AsyncClient)


def test_nothing_else_builds_a_client() -> None:
    """In the whole package, by the names that build one."""
    builders = re.compile(
        r"\b(AsyncClient|Client|HTTPTransport|AsyncHTTPTransport|urlopen|build_opener|HTTPConnection)\("
    )
    found = set()
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        names = {match[1] for match in builders.finditer(text)}
        for node in ast.walk(ast.parse(text)) if names else ():
            name = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
            if name in names:
                found.add(path.relative_to(PACKAGE).as_posix())
    assert found == BUILDS_CLIENTS


FORBIDDEN = """
    169.254.169.254 169.254.170.2 100.100.100.200 168.63.129.16 192.0.0.192 fd00:ec2::254 [fd00:ec2::254] fd20:ce::254
    fe80::a9fe:a9fe fe80::a9fe:a9fe%eth0 fe80::1 febf::1 64:ff9b:1::a9fe:a9fe 64:ff9b:1:2:3::169.254.169.254
    64:ff9b:1:a9fe:a9:fe00:: 64:ff9b:1:aba9:fe:a9fe:: 64:ff9b:1:abcd:a9:fea9:fe00:0
    ::169.254.169.254 ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::1
    ::ffff:0:169.254.169.254 2001:db8::5efe:169.254.169.254 2001:db8::200:5efe:a9fe:a9fe
    metadata metadata.google.internal METADATA.google.internal. instance-data.ec2.internal
"""
ALLOWED = """
    127.0.0.1 10.0.0.7 192.168.1.1 100.100.100.201 ::1 fd00::1 2001:db8::1 ::ffff:10.0.0.1 64:ff9b::a00:1
    64:ff9b:1:a00:0:100:: 2001:db8:1:a9fe:a9:fe00::
    2001:db8::5efe:10.0.0.1 retriever.internal metadata.example.com
"""


def test_forbidden() -> None:
    """Metadata services of the clouds, by name, by address, and by an IPv6 address that stands for one.

    A sidecar's retriever lives on loopback and private networks.
    """
    assert [host for host in FORBIDDEN.split() if not forbidden(host)] == []
    assert [host for host in [*ALLOWED.split(), ""] if forbidden(host)] == []


def test_what_cannot_be_resolved() -> None:
    """Unknown, or no name at all: one kind of error. Others have each address once, as text."""
    assert resolve("127.0.0.1", 80) == ["127.0.0.1"]
    for host in ("nobody.invalid", "a" * 64 + ".example", "a..b"):
        with pytest.raises(OSError, match=r"."):
            resolve(host, 80)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://169.254.169.254/latest", "metadata service"),
        ("http://[fe80::1]/x", "metadata service"),
        ("https://anna:secret@docs/x", "holds a user or a password"),
        ("https://anna@docs/x", "holds a user or a password"),
        ("ftp://docs/x", "is not a URL"),
        ("http:///x", "is not a URL"),
        ("http://[::1/x", "is not a URL"),
    ],
)
def test_urls_that_are_refused(url: str, message: str) -> None:
    """The message says why, and shows no password."""
    with pytest.raises(ValueError, match=message) as caught:
        checked_url(url)
    assert "secret" not in str(caught.value)


PROXY = "http://proxy:3128"


def proxied(no_proxy: str, host: str, port: int = 443) -> bool:
    """Whether a request goes through the proxy."""
    return parse_proxies({"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy}).proxy_of("https", host, port) is not None


def test_loopback_never_goes_through_a_proxy() -> None:
    """Whatever NO_PROXY says."""
    loopback = ["127.0.0.1", "127.9.9.9", "localhost", "Localhost.", "judge.localhost", "::1"]
    assert [host for host in [*loopback, "api.example.com"] if proxied("", host)] == ["api.example.com"]


def test_hosts_that_are_asked_directly() -> None:
    """Names with their subdomains, addresses and networks, each with or without a port, which then is a part of it."""
    for entry, direct, through in (
        ("example.com", "example.com", "badexample.com"),
        ("example.com", "api.example.com", "example.org"),
        (".example.com", "api.example.com", "example.org"),
        ("*.example.com", "a.b.example.com", "example.org"),
        ("*", "anything.example", ""),
        ("10.0.0.0/8", "10.1.2.3", "11.1.2.3"),
        ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
        ("fe80::/10", "fe80::1", "fd00::1"),
        ("[fd00::1]", "fd00::1", "fd00::2"),
        ("fd00::/8", "fd12::9", "10.0.0.1"),
        ("example.com:443", "example.com", ""),
    ):
        assert not proxied(f" x.invalid ,{entry}", direct), entry
        assert not through or proxied(f"x.invalid,{entry}", through), entry
    assert proxied("example.com:8443,[fd00::1]:8443", "example.com", 443)
    assert not proxied("example.com:8443,[fd00::1]:8443", "fd00::1", 8443)


def test_entries_without_meaning_are_skipped() -> None:
    """They are named, and the others hold; ALL_PROXY stands for all; without any, requests go directly."""
    found = parse_proxies({"https_proxy": "proxy:3128", "no_proxy": "10.0.0.0/99, http://x/, example.com"})
    assert found.skipped == ("10.0.0.0/99", "http://x/")
    assert found.proxy_of("https", "example.com", 443) is None
    assert found.proxy_of("https", "example.org", 443) == PROXY
    assert parse_proxies({"ALL_PROXY": PROXY}).proxy_of("http", "example.com", 80) == PROXY
    assert parse_proxies({"HTTPS_PROXY": PROXY}).proxy_of("http", "example.com", 80) is None
    assert parse_proxies({}).proxy_of("https", "example.com", 443) is None
