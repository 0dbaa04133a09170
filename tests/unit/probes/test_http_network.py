"""Probe `http` and the network: names, addresses, proxies, servers that speak no proper HTTP, and certificates."""

import asyncio
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.programs import free_port
from support.retrievers import FaultyRetriever, asked, options, serving

from ragwatch.errors import ConfigError
from ragwatch.probes.http import Options, build
from ragwatch.statistics.canary.definition import Failure, Hit, Retrieved

HITS = (Hit("d1", "Cats purr.", 0.9), Hit("d2", "Dogs bark.", 0.4))


@pytest.mark.parametrize("host", ["2852039166", "0xa9fea9fe"])
async def test_x6_metadata_addresses_are_refused_after_resolution(host: str) -> None:
    """A name that resolves to 169.254.169.254, which these spellings do, is refused before anything is sent."""
    result = await asked(build(options(f"http://{host}"), name="docs"))
    assert result.failure is Failure.FORBIDDEN_ADDRESS


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[fe80::a9fe:a9fe]"]
)
def test_x6_metadata_addresses_are_refused_as_they_are_written(host: str) -> None:
    """An address of a metadata service is a configuration error, in IPv4, mapped to IPv6, or link-local."""
    with pytest.raises(ValueError, match="is a metadata service"):
        options(f"http://{host}")


def test_a_url_that_no_client_can_use_is_a_configuration_error() -> None:
    """Octal bytes are neither an address nor a name."""
    with pytest.raises(ConfigError, match=r"url: .* is not a URL"):
        build(options("http://0251.0376.0251.0376"), name="docs")


class Resolver:
    """Plays DNS for names under `.test`: each lookup takes the next answer of a script, the last one for ever."""

    def __init__(self, *answers: tuple[str, ...]) -> None:
        self.answers = answers
        self.lookups = 0
        self.real = socket.getaddrinfo

    def __call__(self, host: Any, port: Any, *args: Any, **parts: Any) -> Any:
        """What the script says, or the real resolver for other names."""
        if not str(host).endswith(".test"):
            return self.real(host, port, *args, **parts)
        answer = self.answers[min(self.lookups, len(self.answers) - 1)]
        self.lookups += 1
        return [(socket.AF_INET6 if ":" in ip else socket.AF_INET, 1, 6, "", (ip, port)) for ip in answer]


def named(address: str, **parts: Any) -> Options:
    """Options for the retriever under a name that the script resolves."""
    return options(address.replace("127.0.0.1", "retriever.test"), **parts)


async def test_names_with_several_addresses(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens at the first of three, so the second is asked; with one metadata address none is."""
    monkeypatch.setattr(socket, "getaddrinfo", Resolver(("127.0.0.9", "127.0.0.1", "127.0.0.8")))
    assert (await asked(build(named(address), name="docs"))).hits == HITS
    monkeypatch.setattr(socket, "getaddrinfo", Resolver(("127.0.0.1", "::ffff:169.254.169.254")))
    assert (await asked(build(named(address), name="docs"))).failure is Failure.FORBIDDEN_ADDRESS


async def test_x6_dns_cannot_change_its_mind(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address that was checked is the one that is asked: one lookup for a question, checked each time."""
    resolver = Resolver(("127.0.0.1",), ("169.254.169.254",))
    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    probe = build(named(address), name="docs")
    first, second = await probe.ask("cats", 5), await probe.ask("cats", 5)
    await probe.close()
    assert (first.hits, second.failure, resolver.lookups) == (HITS, Failure.FORBIDDEN_ADDRESS, 2)


async def test_the_host_header_is_the_name(
    address: str, retriever: FaultyRetriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A virtual host needs it; a proxy of the environment would resolve names in our stead, past our checks."""
    await asked(build(options(address.replace("127.0.0.1", "localhost")), name="docs"))
    assert retriever.headers["host"].startswith("localhost:")
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{free_port()}")
    assert (await asked(build(options(address), name="docs"))).hits == HITS


class RawServer:
    """Sends the same bytes to whoever connects, a byte at a time if need be, and hangs up (or does not)."""

    def __init__(self, content: bytes, *, drip: bool = False) -> None:
        self.content = content
        self.drip = drip
        self.done = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        await reader.readuntil(b"\r\n\r\n")
        with suppress(ConnectionError):
            writer.write(self.content)
            await writer.drain()
            while self.drip and not await self._hung_up(reader):
                writer.write(b" ")
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        self.done.set()

    @staticmethod
    async def _hung_up(reader: asyncio.StreamReader) -> bool:
        try:
            return await asyncio.wait_for(reader.read(1), 0.01) == b""
        except TimeoutError:
            return False

    async def asked(self, **parts: Any) -> Retrieved:
        """What a probe makes of it."""
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            return await asked(build(options(f"http://127.0.0.1:{port}", **parts), name="docs"))
        finally:
            await self.done.wait()
            server.close()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\xff nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X-Long: " + b"x" * 300_000 + b"\r\n\r\n",
    ],
    ids=["nothing", "no HTTP", "too short", "broken chunks", "endless header"],
)
async def test_broken_servers_are_a_counted_reason(content: bytes) -> None:
    """What is not HTTP, or ends too early, is `connect`."""
    result = await RawServer(content).asked()
    assert (result.failure, result.hits) == (Failure.CONNECT, ())


async def test_a_reply_that_never_ends_is_bounded_as_a_whole() -> None:
    """A byte now and then keeps any read alive: the timeout is that of the whole exchange."""
    server = RawServer(b"HTTP/1.1 200 OK\r\n\r\n", drip=True)
    assert (await server.asked(timeout=0.3)).failure is Failure.TIMEOUT


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for the name localhost, and for no address, signed by itself; its key lies beside it."""
    folder = tmp_path_factory.mktemp("tls")
    made = folder / "cert.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    words += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", str(folder / "key.pem")]
    subprocess.run([*words, "-out", str(made)], check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def tls_address(certificate: Path) -> Iterator[str]:
    """Where a retriever speaks TLS."""
    key = certificate.with_name("key.pem")
    with serving(*FaultyRetriever().routes(), ssl_certfile=certificate, ssl_keyfile=key) as address:
        yield address


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl, which makes the certificate")
@pytest.mark.parametrize(
    ("host", "trusts", "verify", "is_good"),
    [
        ("localhost", True, True, True),  # `ca_file` makes the server's own authority good, for its name
        ("127.0.0.1", True, True, False),  # asked by address, the server cannot prove that it is one
        ("localhost", False, True, False),  # an authority that nobody knows
        ("127.0.0.1", False, False, True),  # a person's decision
    ],
)
async def test_certificates_are_checked(
    tls_address: str, certificate: Path, host: str, *, trusts: bool, verify: bool, is_good: bool
) -> None:
    """The authority is the configured one, and the name is the one that was asked for."""
    parts = {"verify": verify, **({"ca_file": certificate} if trusts else {})}
    result = await asked(build(options(tls_address.replace("127.0.0.1", host), **parts), name="docs"))
    assert (result.failure, len(result.hits)) == ((None, 2) if is_good else (Failure.CONNECT, 0))
    assert is_good or "CERTIFICATE_VERIFY_FAILED" in result.detail


def test_an_unreadable_authority_is_a_configuration_error(tmp_path: Path) -> None:
    """Missing or no PEM: told at the start, not at every question."""
    path = tmp_path / "ca.pem"
    made = Options(url="https://localhost:1/", body="{{ query }}", contexts="hits", ca_file=path)
    with pytest.raises(ConfigError, match=r"ca_file: .*ca\.pem cannot be read"):
        build(made, name="docs")
    path.write_text("no certificate")
    with pytest.raises(ConfigError, match=r"ca_file: .*ca\.pem cannot be read"):
        build(made, name="docs")
