"""What the gRPC library needs to speak TLS by itself, of the settings of the HTTP server."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from ragwatch.errors import ConfigError
from ragwatch.web.tls import TlsSettings

_WHERE = "tls_server_config"


@dataclass(frozen=True, slots=True)
class GrpcTls:
    """Certificates of a server of calls.

    Attributes:
        key: The private key.
        chain: The certificate chain.
        authorities: The authorities of clients; None if no client needs a certificate.
        allowed_names: Alternative names of which a client certificate needs one; None for any.
    """

    key: bytes = field(repr=False)
    chain: bytes = field(repr=False)
    authorities: bytes | None = field(default=None, repr=False)
    allowed_names: frozenset[str] | None = None

    @property
    def asks_clients(self) -> bool:
        """Whether every client needs a certificate."""
        return self.authorities is not None


def build_grpc_tls(settings: TlsSettings) -> GrpcTls:
    """Read the files of settings that `build_tls` has accepted.

    The library speaks TLS 1.2 and 1.3, with its own cipher suites and curves. Where clients may have a certificate and
    need none, it asks for none.

    Raises:
        ConfigError: A setting cannot be kept, or a file cannot be read.
    """
    for is_set, key in (
        (settings.is_at_least_13, "min_version"),
        (settings.is_at_most_12, "max_version"),
        (bool(settings.cipher_suites), "cipher_suites"),
        (bool(settings.curves), "curve_preferences"),
    ):
        if is_set:
            raise ConfigError(
                f"{_WHERE}.{key}: cannot be kept for `grpc` of a source; leave it out, or receive OTLP over HTTP alone"
            )
    authorities = None
    if settings.client_auth is ssl.CERT_REQUIRED:
        if not settings.client_ca_file and not settings.client_ca:
            raise ConfigError(f"{_WHERE}.client_ca_file: is missing, which `grpc` of a source needs; write a PEM file")
        authorities = _content("client_ca_file", settings.client_ca_file, settings.client_ca)
    return GrpcTls(
        key=_content("key_file", settings.key_file, settings.key),
        chain=_content("cert_file", settings.cert_file, settings.cert),
        authorities=authorities,
        allowed_names=settings.allowed_names,
    )


def _content(name: str, path: str, text: str) -> bytes:
    if not path:
        return text.encode()
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{_WHERE}.{name}: {path} cannot be read: {error.strerror}; write a PEM file") from error
