"""Builds TLS contexts. TLS 1.2 is the least version, whatever is configured."""

import os
import platform
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from ragwatch.errors import ConfigError
from ragwatch.web.authentication import Certificate, alternative_names

_CIPHERS = {
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
}
_CURVES = {"CurveP256": "prime256v1", "CurveP384": "secp384r1", "CurveP521": "secp521r1", "X25519": "X25519"}
_WHERE = "tls_server_config"


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """Certificates and restrictions of a TLS server. Texts and names are those of the exporter-toolkit."""

    cert_file: str = ""  # of the certificate chain; empty if `cert` holds it
    key_file: str = ""  # of the private key; empty if `key` holds it
    cert: str = ""  # the chain as PEM text
    key: str = ""  # the private key as PEM text
    client_ca_file: str = ""  # of the authorities of clients; empty if `client_ca` holds them
    client_ca: str = ""  # the authorities of clients as PEM text; if there are none, those of the system
    client_auth: ssl.VerifyMode = ssl.CERT_NONE  # whether clients need a certificate, may have one, or are not asked
    allowed_names: frozenset[str] | None = None  # alternative names of which a client needs one; None for any
    is_at_least_13: bool = False  # TLS 1.2 is refused
    is_at_most_12: bool = False  # TLS 1.3 is refused
    cipher_suites: tuple[str, ...] = ()  # names, the preferred one first; none for the default
    server_prefers: bool = True  # the order of the server decides
    curves: tuple[str, ...] = ()  # names; more than one stand for the default, which has them all

    @property
    def files(self) -> tuple[str, ...]:
        """Files whose change changes the context."""
        return tuple(file for file in (self.cert_file, self.key_file, self.client_ca_file) if file)


@dataclass(frozen=True, slots=True)
class Tls:
    """A context for new connections, and the names of which a client certificate needs one."""

    context: ssl.SSLContext
    allowed_names: frozenset[str] | None = None

    def allows(self, certificate: Certificate | None) -> bool:
        """Whether the client of a completed handshake may connect."""
        return self.allowed_names is None or not self.allowed_names.isdisjoint(alternative_names(certificate or {}))


def build_tls(settings: TlsSettings, protocol: str = "http/1.1") -> Tls:
    """Builds a context for a protocol, by its name in TLS.

    Raises ConfigError: A file cannot be read, does not hold what it should, or does not fit the others.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3 if settings.is_at_least_13 else ssl.TLSVersion.TLSv1_2
    context.maximum_version = ssl.TLSVersion.TLSv1_2 if settings.is_at_most_12 else ssl.TLSVersion.TLSv1_3
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    if not settings.server_prefers:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    context.set_alpn_protocols([protocol])
    _restrict(context, settings)
    _load_certificate(context, settings)
    _load_authorities(context, settings)
    return Tls(context, settings.allowed_names)


def _restrict(context: ssl.SSLContext, settings: TlsSettings) -> None:
    ciphers = [name for suite in settings.cipher_suites if (name := _cipher(suite)) is not None]
    try:
        if ciphers:
            context.set_ciphers(":".join(ciphers))
        elif settings.cipher_suites:  # of TLS 1.3 only, which OpenSSL always has
            context.minimum_version = ssl.TLSVersion.TLSv1_3
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"{_WHERE}.cipher_suites: OpenSSL has none of them; write others, or leave it out") from error
    for curve in settings.curves if len(settings.curves) == 1 else ():
        try:
            context.set_ecdh_curve(_CURVES[curve])
        except (ssl.SSLError, ValueError) as error:  # X25519 in Debian 12
            version = platform.python_version()
            raise ConfigError(
                f"{_WHERE}.curve_preferences: the ssl module of Python {version} cannot offer {curve} alone; "
                "write CurveP256, or leave it out, which offers X25519 first"
            ) from error


def _cipher(suite: str) -> str | None:
    """Name that OpenSSL has for a cipher suite; None for those of TLS 1.3.

    >>> _cipher("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"), _cipher("TLS_AES_128_GCM_SHA256")
    ('ECDHE-RSA-AES128-GCM-SHA256', None)
    """
    exchange, separator, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    if not separator:
        return None
    prefix = "" if exchange == "RSA" else f"{exchange.replace('_', '-')}-"
    return prefix + _CIPHERS[cipher]


def _load_certificate(context: ssl.SSLContext, settings: TlsSettings) -> None:
    def refuse_password() -> NoReturn:
        raise ConfigError(f"{_WHERE}.key_file: the key is encrypted; write one without a password")

    with _file_of("cert", settings) as cert, _file_of("key", settings) as key:
        _check_readable("cert_file", cert)
        _check_readable("key_file", key)
        try:
            context.load_cert_chain(cert, key, password=refuse_password)
        except (ssl.SSLError, OSError) as error:
            fault = (
                "the key is not that of the certificate; write the pair that belongs together"
                if "MISMATCH" in str(error)
                else "certificate and key cannot be read; write PEM files"
            )
            raise ConfigError(f"{_WHERE}.cert_file: {fault} ({_reason(error)})") from error


def _load_authorities(context: ssl.SSLContext, settings: TlsSettings) -> None:
    context.verify_mode = settings.client_auth
    if settings.client_auth is ssl.CERT_NONE:
        return
    try:
        if settings.client_ca_file:
            _check_readable("client_ca_file", settings.client_ca_file)
            context.load_verify_locations(cafile=settings.client_ca_file)
        elif settings.client_ca:
            context.load_verify_locations(cadata=settings.client_ca)
        else:
            context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise ConfigError(
            f"{_WHERE}.client_ca_file: holds no certificate of an authority ({_reason(error)}); write a PEM file"
        ) from error


@contextmanager
def _file_of(name: str, settings: TlsSettings) -> Iterator[str]:
    """A file that holds the certificate or the key: OpenSSL reads them from files only."""
    path, text = getattr(settings, f"{name}_file"), getattr(settings, name)
    if path:
        yield path
        return
    if not hasattr(os, "memfd_create"):
        raise ConfigError(f"{_WHERE}.{name}: is read on Linux only; write {name}_file instead")
    with os.fdopen(os.memfd_create(name), "w") as file:  # in memory: a key is never written to a disk
        file.write(text)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"


def _check_readable(name: str, path: str) -> None:
    try:
        with open(path, "rb"):  # noqa: PTH123 - a text that OpenSSL opens as well
            pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{_WHERE}.{name}: {path} cannot be read: {reason}; write the path of a PEM file") from error


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", None) or getattr(error, "strerror", None) or error)
