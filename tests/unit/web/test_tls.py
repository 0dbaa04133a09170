"""TLS of the real server: versions, client certificates, rotation, and clients that never finish the handshake."""

import asyncio
import ssl
import warnings
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from support import asked
from support.certificates import Authority, Pair, settings
from support.patience import DEADLINE

from ragwatch.errors import ConfigError
from ragwatch.web import Tls, TlsSettings, build_tls
from ragwatch.web.authentication import CERTIFICATE, certificate_names
from ragwatch.web.server.connections import NEW_SECONDS

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


async def hello(request: Request) -> Response:
    """Says who asks, over which scheme."""
    names = certificate_names(request.scope[CERTIFICATE])
    return PlainTextResponse(f"{request.url.scheme} {','.join(names)}.")


def serving(tls: Callable[[], Tls | None]) -> AbstractAsyncContextManager[int]:
    """The real server; its port."""
    return asked.serving(Starlette(routes=[Route("/", hello)]), tls)


def client_of(authority: Authority, pair: Pair | None = None) -> ssl.SSLContext:
    """The context of a client that trusts the authority, with a certificate of its own."""
    context = ssl.create_default_context(cafile=str(authority.cert))
    if pair is not None:
        context.load_cert_chain(pair.cert, pair.key)
    return context


async def ask(port: int, context: ssl.SSLContext) -> str:
    """Last line of the response; empty if the server ends the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        writer.write(REQUEST)
        return (await reader.read()).decode().rpartition("\n")[2]
    finally:
        writer.close()


async def is_refused(port: int, context: ssl.SSLContext) -> bool:
    """Whether the server ends the connection without a response, during or right after the handshake."""
    try:
        return await ask(port, context) == ""
    except (ssl.SSLError, ConnectionError):
        return True


async def test_x20_tls_is_spoken_from_1_2_on(authority: Authority, pair: Pair) -> None:
    """TLS 1.2 and 1.3 are answered; TLS 1.1, no TLS and no common version are not, and the server goes on."""
    tls = build_tls(settings(pair))
    async with serving(lambda: tls) as port:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = client_of(authority)
            context.minimum_version = context.maximum_version = version
            assert await ask(port, context) == "https ."
        old = client_of(authority)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        assert await is_refused(port, old)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST)
        assert b"HTTP" not in await reader.read()
        writer.close()
        assert await ask(port, client_of(authority)) == "https ."


async def test_client_certificates(authority: Authority, pair: Pair, tmp_path: Path) -> None:
    """A client of the authority with an allowed name passes; another name, another authority and none do not.

    Certificates, key and authority may stand in the file itself.
    """
    prom = authority.issue("prom", "client", "DNS:prom.example,email:prom@example.org")
    other = authority.issue("other", "client", "DNS:other.example")
    stranger = Authority(tmp_path, "stranger").issue("prom", "client", "DNS:prom.example")
    changes = {"client_auth": ssl.CERT_REQUIRED, "allowed_names": frozenset({"prom.example"})}
    tls = build_tls(settings(pair, client_ca_file=str(authority.cert), **changes))
    texts = {"cert": pair.cert.read_text(), "key": pair.key.read_text(), "client_ca": authority.cert.read_text()}
    inline = build_tls(TlsSettings(**texts, client_auth=ssl.CERT_OPTIONAL))
    in_force = [tls]
    async with serving(lambda: in_force[0]) as port:
        assert await ask(port, client_of(authority, prom)) == "https prom.example,prom@example.org,prom."
        for unknown in (other, stranger, None):
            assert await is_refused(port, client_of(authority, unknown))
        in_force[0] = inline
        assert await ask(port, client_of(authority)) == "https ."
        assert await ask(port, client_of(authority, other)) == "https other.example,other."
        assert await is_refused(port, client_of(authority, stranger))


def test_the_authorities_of_the_system_are_the_default(pair: Pair) -> None:
    """As in Go, a client certificate is verified against the system if no authority is named."""
    assert build_tls(settings(pair, client_auth=ssl.CERT_REQUIRED)).context.verify_mode is ssl.CERT_REQUIRED


async def test_restrictions(authority: Authority, pair: Pair) -> None:
    """Cipher suites of both generations, one curve, and bounds of the version are kept."""
    suite = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"
    one = build_tls(
        settings(pair, cipher_suites=(suite,), is_at_most_12=True, curves=("CurveP384",), server_prefers=False)
    )
    new = build_tls(settings(pair, cipher_suites=("TLS_AES_128_GCM_SHA256",), curves=("CurveP256", "X25519")))
    async with serving(lambda: one) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_of(authority))
        assert writer.get_extra_info("cipher")[0] == "ECDHE-ECDSA-CHACHA20-POLY1305"
        writer.close()
        await reader.read()
    assert new.context.minimum_version is ssl.TLSVersion.TLSv1_3
    assert build_tls(settings(pair, is_at_least_13=True)).context.minimum_version is ssl.TLSVersion.TLSv1_3
    assert not build_tls(settings(pair, server_prefers=False)).context.options & ssl.OP_CIPHER_SERVER_PREFERENCE


@pytest.mark.parametrize("curve", ["CurveP256", "CurveP384", "CurveP521", "X25519"])
def test_a_curve_is_offered_or_named(pair: Pair, curve: str) -> None:
    """A curve that the ssl module of this Python cannot offer alone (X25519 in Debian 12) is an error of its key."""
    names = {"CurveP256": "prime256v1", "CurveP384": "secp384r1", "CurveP521": "secp521r1"}
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ecdh_curve(names.get(curve, curve))
    except (ssl.SSLError, ValueError):
        with pytest.raises(ConfigError, match=rf"^tls_server_config\.curve_preferences: .*cannot offer {curve} alone"):
            build_tls(settings(pair, curves=(curve,)))
    else:
        build_tls(settings(pair, curves=(curve,)))


def test_what_is_wrong_with_the_files_is_named(authority: Authority, pair: Pair, tmp_path: Path) -> None:
    """A file that is not there, holds no certificate, belongs to another key, or is encrypted."""
    empty, other = tmp_path / "empty", authority.issue("second", "server")
    empty.write_text("nothing")
    encrypted = tmp_path / "encrypted.key"
    encrypted.write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
    wrong = {
        "cert_file: .*gone cannot be read": {"cert_file": str(tmp_path / "gone")},
        "key_file: .*gone cannot be read": {"key_file": str(tmp_path / "gone")},
        "cert_file: certificate and key cannot be read": {"cert_file": str(empty)},
        "cert_file: the key is not that of the certificate": {"key_file": str(other.key)},
        "cert_file: certificate and key cannot": {"key_file": str(encrypted)},
        "client_ca_file: .*gone cannot": {"client_ca_file": str(tmp_path / "gone"), "client_auth": ssl.CERT_REQUIRED},
        "client_ca_file: holds no certificate": {"client_ca_file": str(empty), "client_auth": ssl.CERT_REQUIRED},
    }
    for expected, changes in wrong.items():
        with pytest.raises(ConfigError, match=f"tls_server_config.{expected}"):
            build_tls(settings(pair, **changes))


async def test_x22_connections_without_a_handshake_are_closed_first(authority: Authority, pair: Pair) -> None:
    """Many clients that connect and say nothing do not keep others out, and do not hold up the end of the server."""
    tls = build_tls(settings(pair))
    async with serving(lambda: tls) as port:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(100)]
        assert await ask(port, client_of(authority)) == "https ."
        await asyncio.sleep(NEW_SECONDS)  # none of them counts as new any more
        assert await ask(port, client_of(authority)) == "https ."
        closed = sum(reader.at_eof() or reader.exception() is not None for reader, _ in silent)
        for _, writer in silent:
            writer.close()
    assert closed >= 100 - 64  # the limit per client


async def test_a_client_that_sends_at_once_loses_nothing(authority: Authority, pair: Pair) -> None:
    """A request that arrives with the last message of the handshake is answered."""
    tls = build_tls(settings(pair))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_of(authority).wrap_bio(incoming, outgoing, server_hostname="localhost")
    async with serving(lambda: tls) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                writer.write(outgoing.read())
                incoming.write(await reader.read(1 << 16))
        client.write(REQUEST)
        writer.write(outgoing.read())
        answer = b""
        while not answer:
            incoming.write(await asyncio.wait_for(reader.read(1 << 16), DEADLINE))
            with suppress(ssl.SSLWantReadError):  # the first messages are session tickets
                answer = client.read()
        writer.close()
    assert answer.startswith(b"HTTP/1.1 200 OK")
