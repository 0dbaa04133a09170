"""Calls over gRPC: who may send, what is received, and what is refused with which status."""

import asyncio
import base64
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.asked import bearer, by_token
from support.certificates import Authority, Pair, settings
from support.http2 import CONTINUATION, DATA, HEADERS, PREFACE, SETTINGS, frame
from support.patience import DEADLINE

from ragwatch.errors import AddressError
from ragwatch.ports.sources import GrpcListener, Handler, IncomingRequest, Reply
from ragwatch.web import Access, Authenticator, GrpcServer, Right, Tls, build_tls
from ragwatch.web.access import OPEN
from ragwatch.web.server.relay import HeaderBlocks

grpc = pytest.importorskip("grpc", reason="needs the package grpcio: pip install 'ragwatch-exporter[grpc]'")
METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
LIMIT = 1 << 20
TOKENS = replace(
    by_token(shop={Right.INGEST}, ci={Right.WRITE}),
    users={"anna": b"$2b$04$mDwo.lAisC94iLAyP81MCesa29IzH37oigHC/42V2pdJlUprsJPze"},
)


class Receiver:
    """A handler that keeps what it received."""

    def __init__(self) -> None:
        self.reply = Reply(200, b"stored")
        self.received: list[tuple[str, str, bytes]] = []

    async def __call__(self, request: IncomingRequest) -> Reply:
        """One call."""
        body = b"".join([chunk async for chunk in request.chunks])
        self.received.append((request.client, request.headers["content-encoding"], body))
        return self.reply


@asynccontextmanager
async def serving(
    handler: Handler,
    access: Callable[[], Access] = lambda: OPEN,
    tls: Callable[[], Tls | None] = lambda: None,
    *,
    receiving: int = 4,
    refused: Callable[[str], None] = lambda _: None,
    **limits: Any,
) -> AsyncIterator[str]:
    """The real server; its address."""
    server = GrpcServer(
        GrpcListener("traces", "127.0.0.1:0", LIMIT, receiving),
        {METHOD: handler}.get,
        Authenticator(access, refused),
        tls,
        **limits,
    )
    address = await server.bind()
    await server.start()
    try:
        yield address
    finally:
        await server.stop()


async def call(address: str, message: bytes = b"\x0a\x00", credentials: Any = None, **options: Any) -> tuple[str, Any]:
    """Status code of a call, with the reply or the details."""
    async with (
        grpc.aio.insecure_channel(address)
        if credentials is None
        else grpc.aio.secure_channel(address.replace("127.0.0.1", "localhost"), credentials)
    ) as channel:
        try:
            sent = channel.unary_unary(options.pop("method", METHOD))
            return "OK", await sent(message, timeout=DEADLINE, **options)
        except grpc.aio.AioRpcError as error:
            return error.code().name, error


async def test_messages_are_handed_over_as_they_were_compressed() -> None:
    """The library unpacks nothing, so that no limit is passed; the source hears how a message is compressed."""
    receiver, text = Receiver(), b"\x0a" + b"x" * 50_000
    async with serving(receiver) as address:
        for compression in (None, grpc.Compression.Gzip, grpc.Compression.Deflate):
            assert await call(address, text, compression=compression) == ("OK", b"stored")
    assert [encoding for _, encoding, _ in receiver.received] == ["", "gzip", "deflate"]
    assert receiver.received[0][2] == text
    assert all(len(body) < 1_000 for _, encoding, body in receiver.received if encoding)


async def test_what_is_too_large_or_unknown_is_refused() -> None:
    """A message above the limit, a call without a message, and another method have codes that nobody repeats."""
    receiver = Receiver()
    async with serving(receiver) as address, grpc.aio.insecure_channel(address) as channel:
        assert (await call(address, b"\x0a" * (LIMIT + 1)))[0] == "RESOURCE_EXHAUSTED"
        assert (await call(address, method="/opentelemetry.proto.collector.logs.v1.LogsService/Export"))[0] == (
            "UNIMPLEMENTED"
        )
        empty = channel.stream_unary(METHOD)(timeout=DEADLINE)
        await empty.done_writing()
        assert await empty.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert receiver.received == []


async def test_refusals_of_the_source_are_handed_on() -> None:
    """The code, the text, and the google.rpc.Status that the source has written, as details."""
    codes = {400: "INVALID_ARGUMENT", 413: "RESOURCE_EXHAUSTED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
    receiver = Receiver()
    async with serving(receiver) as address:
        for status, code in codes.items():
            receiver.reply = Reply(status, b"a status", problem="what to do")
            got, error = await call(address)
            assert (got, error.details()) == (code, "what to do")
            assert dict(error.trailing_metadata())["grpc-status-details-bin"] == b"a status"


async def test_x19_a_message_is_not_received_without_the_right() -> None:
    """Clients that may not send are refused before they have sent their message, with a reason that is counted."""
    receiver, refused = Receiver(), list[str]()
    password = f"Basic {base64.b64encode(b'anna:wrong').decode()}"
    cases = {"": "UNAUTHENTICATED", "Bearer wrong": "UNAUTHENTICATED", password: "UNAUTHENTICATED"}
    async with (
        serving(receiver, lambda: TOKENS, refused=refused.append) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        for given, code in (cases | {bearer("ci")["Authorization"]: "PERMISSION_DENIED"}).items():
            metadata = (("authorization", given),) if given else ()
            unsent = channel.stream_unary(METHOD)(metadata=metadata, timeout=DEADLINE)
            assert (await unsent.code()).name == code
        metadata = (("authorization", bearer("shop")["Authorization"]),)
        assert await call(address, metadata=metadata) == ("OK", b"stored")
    assert [client for client, _, _ in receiver.received] == ["shop"]
    assert refused == ["credentials", "credentials", "credentials", "right"]


async def test_a_message_that_does_not_arrive_holds_up_nobody_for_long() -> None:
    """The client that does not send is told to send again, and others are answered then."""
    receiver = Receiver()
    async with (
        serving(receiver, receiving=1, receive_seconds=0.2) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        silent = channel.stream_unary(METHOD)(timeout=DEADLINE)
        assert (await silent.code()).name == "UNAVAILABLE"
        assert (await call(address))[0] == "OK"


async def test_too_many_calls_are_told_to_come_back() -> None:
    """A call beyond the limit is refused at once with a code that is repeated, whatever the others wait for."""
    async with serving(Receiver(), calls=0) as address:
        code, error = await call(address)
    assert (code, error.details()) == ("UNAVAILABLE", "too many calls are under way; send it again")


async def test_an_address_that_is_taken_is_named() -> None:
    """Nobody shares the address: each of two processes would get some of the calls."""
    async with serving(Receiver()) as address:
        server = GrpcServer(GrpcListener("two", address, LIMIT, 1), {}.get, Authenticator(lambda: OPEN, print))
        with pytest.raises(AddressError, match=f"cannot listen on {address}"):
            await server.bind()


async def test_x22_connections_are_limited() -> None:
    """Those beyond the limit are closed at once, and whoever comes after the others have gone is answered."""
    async with serving(Receiver(), connections=2) as address:
        stack = ExitStack()
        host, _, port = address.rpartition(":")
        readers = []
        for _ in range(4):
            reader, writer = await asyncio.open_connection(host, int(port))
            stack.callback(writer.close)
            readers.append(asyncio.ensure_future(reader.read()))
        pending = set(readers)
        while len(pending) > 2:
            _, pending = await asyncio.wait(pending, timeout=DEADLINE, return_when=asyncio.FIRST_COMPLETED)
        stack.pop_all().close()
        await asyncio.gather(*readers)
        code = ""
        while code != "OK":  # the server has to notice first
            code, _ = await call(address)


def trusting(authority: Authority, pair: Pair | None = None) -> Any:
    """Credentials of a client that trusts the authority, with a certificate of its own."""
    own = (None, None) if pair is None else (pair.key.read_bytes(), pair.cert.read_bytes())
    return grpc.ssl_channel_credentials(authority.cert.read_bytes(), *own)


async def test_x22_connections_that_are_left_open_make_room() -> None:
    """Whoever takes all connections with calls that do not end keeps others out for a short time only."""
    preface = PREFACE + frame(SETTINGS, b"", 0)
    async with serving(Receiver(), connections=4, receive_seconds=0.2, idle_seconds=1.0) as address:
        host, _, port = address.rpartition(":")
        with ExitStack() as left_open:
            for _ in range(4):
                left_open.enter_context(socket.create_connection((host, int(port)))).sendall(preface)
            code = ""
            async with asyncio.timeout(DEADLINE):
                while code != "OK":
                    code, _ = await call(address)


async def test_x20_calls_over_tls(tmp_path: Path, authority: Authority, pair: Pair) -> None:
    """A client that trusts the authority is answered; one without TLS is not.

    A connection that begins after the certificate was replaced has the new one.
    """
    new = Authority(tmp_path, "another")
    inside = [build_tls(settings(pair), "h2")]
    async with serving(Receiver(), tls=lambda: inside[0]) as address:
        assert (await call(address, credentials=trusting(authority)))[0] == "OK"
        assert (await call(address))[0] == "UNAVAILABLE"
        inside[0] = build_tls(settings(new.issue("server", "server")), "h2")
        assert (await call(address, credentials=trusting(new)))[0] == "OK"
        assert (await call(address, credentials=trusting(authority)))[0] == "UNAVAILABLE"


async def test_x20_versions_of_tls_are_kept(authority: Authority, pair: Pair) -> None:
    """A client below `min_version` has no connection."""
    tls = build_tls(settings(pair, is_at_least_13=True), "h2")
    client = ssl.create_default_context(cafile=str(authority.cert))
    client.set_alpn_protocols(["h2"])
    async with serving(Receiver(), tls=lambda: tls) as address:
        _, writer = await asyncio.open_connection("localhost", int(address.rpartition(":")[2]), ssl=client)
        writer.close()
        client.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection("localhost", int(address.rpartition(":")[2]), ssl=client)


@pytest.mark.parametrize("step", [1, 5, 1000])
def test_x22_blocks_of_headers_are_read_by_their_frames(step: int) -> None:
    """However the bytes arrive, a block is as long as its frames; messages of any length are none."""
    few, empty = frame(CONTINUATION, b"h" * 1000), frame(CONTINUATION, b"")
    message = PREFACE + frame(HEADERS, b"h" * 60_000) + frame(DATA, bytes(100_000)) + frame(HEADERS, b"h" * 60_000)
    for sent, is_long in (
        (message, False),
        (message + few * 4, False),
        (message + few * 6, True),
        (message + empty * 1000, True),
        (PREFACE + frame(HEADERS, b"h" * 70_000), True),
    ):
        blocks = HeaderBlocks()
        assert any(blocks.too_long(sent[at : at + step]) for at in range(0, len(sent), step)) is is_long


def address_of_the_library() -> str:
    """Where it listens in this process, as the system knows it."""
    own = {link.stat().st_ino for link in Path("/proc/self/fd").iterdir() if link.is_socket()}
    sockets = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return next(row[7][1:] for row in sockets if int(row[6]) in own and row[7:] and row[7].startswith("@ragwatch-"))


@pytest.mark.skipif(not Path("/proc/net/unix").exists(), reason="needs Linux")
async def test_x19_calls_past_the_relay_are_refused() -> None:
    """The library's own address is one of this machine: nobody sends there, past TLS and its names."""
    receiver = Receiver()
    async with serving(receiver) as address:
        code, error = await call(f"unix-abstract:{address_of_the_library()}")
        assert (code, error.details()) == ("PERMISSION_DENIED", "connect to 127.0.0.1:0")
        assert (await call(address))[0] == "OK"
    assert len(receiver.received) == 1


async def test_client_certificates(authority: Authority, pair: Pair) -> None:
    """Without one there is no connection; its names say who the client is, and one of them has to be allowed."""
    shop, other = authority.issue("shop", "client", "DNS:shop"), authority.issue("other", "client", "DNS:other")
    tls = build_tls(
        settings(
            pair, client_ca_file=str(authority.cert), client_auth=ssl.CERT_REQUIRED, allowed_names=frozenset({"shop"})
        ),
        "h2",
    )
    receiver = Receiver()
    access = Access(
        certificates=True, grants={"shop": frozenset({Right.INGEST})}, unlisted=frozenset(), anonymous=frozenset()
    )
    async with serving(receiver, lambda: access, lambda: tls) as address:
        assert (await call(address, credentials=trusting(authority)))[0] == "UNAVAILABLE"
        assert (await call(address, credentials=trusting(authority, other)))[0] == "PERMISSION_DENIED"
        assert (await call(address, credentials=trusting(authority, shop)))[0] == "OK"
    assert [client for client, _, _ in receiver.received] == ["shop"]
