"""Turns the section `web` and its `config_file` into rights and TLS, and reads the files again when they change.

Calls over gRPC are answered with the same rights.
"""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from ragwatch.config.web import WebOptions
from ragwatch.config.web_file import REQUIRED, TlsServerConfig, WebFile, load_web_file
from ragwatch.errors import ConfigError
from ragwatch.ports.sources import GrpcListener, Handler, is_loopback
from ragwatch.telemetry import Telemetry
from ragwatch.web import (
    EVERYTHING,
    Access,
    Authenticator,
    GrpcServer,
    RateLimit,
    Right,
    Tls,
    TlsSettings,
    Token,
    build_tls,
)

Receivers = Callable[[], Mapping[str, Mapping[str, Handler]]]


class GrpcListeners:
    """The servers of all these addresses.

    `receivers` returns the handlers of the active sources, by path and name of the source.

    Raises:
        ConfigError: The extra is not installed.
    """

    def __init__(
        self, listeners: Sequence[GrpcListener], receivers: Receivers, access: WebAccess, telemetry: Telemetry
    ) -> None:
        self._telemetry = telemetry
        self._servers = {
            listener.source: GrpcServer(
                listener,
                _handler_of(listener.source, receivers),
                Authenticator(_access_at(listener.address, access), telemetry.request_refused),
                access.grpc_tls,
            )
            for listener in listeners
        }

    async def bind(self) -> None:
        """Bind all addresses. Raises `AddressError` if one is not available."""
        for source, server in self._servers.items():
            self._telemetry.receives_calls(source, await server.bind())

    async def start(self) -> None:
        """Answer calls from now on."""
        for server in self._servers.values():
            await server.start()

    async def stop(self) -> None:
        """Take no further calls."""
        for server in self._servers.values():
            await server.stop()


def _handler_of(source: str, receivers: Receivers) -> Callable[[str], Handler | None]:
    return lambda path: receivers().get(path, {}).get(source)


def _access_at(address: str, access: WebAccess) -> Callable[[], Access]:
    is_local = is_loopback(address)
    return lambda: access.access_at(is_local=is_local)


CHECK_SECONDS = 1.0  # between two looks at the files
_HASH = "sha256:"
_VERIFY = {REQUIRED: ssl.CERT_REQUIRED, "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL}

Stamp = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class WebRules:
    """Who may do what, TLS for HTTP and for gRPC; `files` are those that were read."""

    access: Access
    tls: Tls | None
    files: tuple[str, ...] = ()
    grpc_tls: Tls | None = None


def read_rules(web: WebOptions, listeners: Sequence[GrpcListener] = ()) -> WebRules:
    """Read the files of a section `web`, and check that no address is open by oversight, also of sources over gRPC.

    Raises:
        ConfigError: A file is wrong, or others than this machine could read texts without anybody having said so.
    """
    file = WebFile()
    if web.config_file is not None:
        try:
            file = load_web_file(web.config_file)
        except ConfigError as error:
            raise ConfigError("\n".join(f"web.config_file: {line}" for line in str(error).splitlines())) from error
    access = access_of(web, file)
    _check_open(web, access)
    for listener in listeners:
        _check_listener(web, access, listener)
    files = () if web.config_file is None else (str(web.config_file),)
    if not file.tls_server_config.is_on:
        return WebRules(access, None, files)
    settings = tls_settings(file.tls_server_config)
    try:
        tls = build_tls(settings)
        grpc_tls = build_tls(settings, "h2") if listeners else None
    except ConfigError as error:
        name = web.config_file.name if web.config_file else ""
        raise ConfigError(f"web.config_file: {name}: {error}") from error
    return WebRules(access, tls, (*files, *settings.files), grpc_tls)


def access_of(web: WebOptions, file: WebFile) -> Access:
    """Build the rights.

    Without users, tokens and client certificates, everything is open on loopback; at other addresses the series are
    open, and what `web.open` names. With them, only what `web.open` names is open. Without `web.users` every user has
    all rights, as in Prometheus; with it, a user without an entry has `metrics`.

    Raises:
        ConfigError: `web.users` names a user that does not exist.
    """
    certificates = file.tls_server_config.verifies_clients
    unknown = sorted(set(web.users) - set(file.basic_auth_users))
    if unknown and (file.basic_auth_users or not certificates):
        raise ConfigError(
            f"web.users.{unknown[0]}: is not under basic_auth_users in web.config_file; add the password hash there"
        )
    opened = frozenset(map(Right, web.open))
    access = Access(
        users={name: value.get_secret_value().encode() for name, value in file.basic_auth_users.items()},
        tokens=tuple(
            Token(token.name, _digest(token.token.get_secret_value()), frozenset(map(Right, token.rights)))
            for token in web.tokens
        ),
        certificates=certificates,
        grants={name: frozenset(map(Right, rights)) for name, rights in web.users.items()},
        unlisted=frozenset({Right.METRICS}) if web.users else EVERYTHING,
        anonymous=opened,
        headers=file.http_server_config.headers,
        rate=RateLimit(limit.interval, limit.burst) if (limit := file.rate_limit).interval else None,
    )
    if access.has_credentials:
        return access
    return Access(
        anonymous=EVERYTHING if web.is_local else opened | {Right.METRICS}, headers=access.headers, rate=access.rate
    )


def _digest(token: str) -> bytes:
    if token.startswith(_HASH):
        return bytes.fromhex(token.removeprefix(_HASH))
    return hashlib.sha256(token.encode()).digest()


def _check_open(web: WebOptions, access: Access) -> None:
    if web.is_local or access.has_credentials or web.open:
        return
    raise ConfigError(
        f"web.listen: {web.listen} can be reached from other machines, and nobody is asked for a password: the pages "
        "show texts of your users, and anybody could change what you are paged on; write users into web.config_file, "
        "or web.tokens, or what everybody may do under web.open, such as [metrics] or [pages, write]"
    )


def _check_listener(web: WebOptions, access: Access, listener: GrpcListener) -> None:
    if is_loopback(listener.address) or access.has_credentials or Right.INGEST in web.open:
        return
    raise ConfigError(
        f"source {listener.source}: grpc.listen: {listener.address} can be reached from other machines, and nobody is "
        "asked for a token: anybody could send answers that never were; write web.tokens with the right ingest, or "
        "users into web.config_file, or ingest under web.open"
    )


def tls_settings(tls: TlsServerConfig) -> TlsSettings:
    """Convert the section `tls_server_config`."""
    return TlsSettings(
        cert_file=tls.cert_file,
        key_file=tls.key_file,
        cert=tls.cert,
        key=tls.key.get_secret_value(),
        client_ca_file=tls.client_ca_file,
        client_ca=tls.client_ca,
        client_auth=_VERIFY.get(tls.client_auth_type, ssl.CERT_NONE),
        allowed_names=None if tls.client_allowed_sans is None else frozenset(tls.client_allowed_sans),
        is_at_least_13=tls.min_version == "TLS13",
        is_at_most_12=tls.max_version == "TLS12",
        cipher_suites=tls.cipher_suites,
        server_prefers=tls.prefer_server_cipher_suites,
        curves=tls.curve_preferences,
    )


class WebAccess:
    """Holds the rules in force, also of addresses on which sources receive calls over gRPC.

    Looks at the files at most once per `CHECK_SECONDS`; a wrong file changes nothing.

    Raises:
        ConfigError: See `read_rules`.
    """

    def __init__(
        self,
        web: WebOptions,
        telemetry: Telemetry,
        clock: Callable[[], float] = monotonic,
        *,
        listeners: Sequence[GrpcListener] = (),
    ) -> None:
        self._telemetry = telemetry
        self._clock = clock
        self._listeners = tuple(listeners)
        self._refused: Stamp = ()
        self._is_reported = False
        self.use(web)

    def use(self, web: WebOptions) -> None:
        """Put another section `web` into force. Raises `ConfigError` as `read_rules` does."""
        self._rules, self._stamp = self._read(web)
        self._web = web
        self._next = self._clock() + CHECK_SECONDS

    def check(self, web: WebOptions) -> None:
        """Check another section `web` for a daemon that goes on.

        Raises:
            ConfigError: See `read_rules`.
        """
        read_rules(web, self._listeners)

    @property
    def scheme(self) -> str:
        """Scheme of the address."""
        return "http" if self._rules.tls is None else "https"

    def access(self) -> Access:
        """Who may do what."""
        return self._current().access

    def access_at(self, *, is_local: bool) -> Access:
        """Who may do what at another address than `web.listen`, which only this machine reaches or others, too."""
        access = self._current().access
        if access.has_credentials:
            return access
        return replace(access, anonymous=EVERYTHING if is_local else frozenset(map(Right, self._web.open)))

    def grpc_tls(self) -> Tls | None:
        """TLS for a new connection over gRPC; None for none."""
        return self._current().grpc_tls

    def tls(self) -> Tls | None:
        """TLS for a new connection; None for none."""
        return self._current().tls

    def _current(self) -> WebRules:
        if self._clock() >= self._next:
            self._next = self._clock() + CHECK_SECONDS
            stamp = _stamp(self._rules.files)
            if stamp != self._stamp:
                self._read_again(stamp)
        return self._rules

    def _read(self, web: WebOptions) -> tuple[WebRules, Stamp]:
        """Read the rules, and a stamp of the files that is not newer than they are: later changes are seen."""
        stamp = _stamp(read_rules(web, self._listeners).files)
        return read_rules(web, self._listeners), stamp

    def _read_again(self, stamp: Stamp) -> None:
        try:
            rules, stamp_of_rules = self._read(self._web)
            _check_successor(self._rules, rules)
        except ConfigError as error:
            # At the second look: a certificate and its key change one after the other, and a file is written in parts.
            if stamp == self._refused and not self._is_reported:
                self._telemetry.web_file_refused(str(error))
                self._is_reported = True
            elif stamp != self._refused:
                self._refused, self._is_reported = stamp, False
            return
        self._rules, self._stamp = rules, stamp_of_rules
        self._refused, self._is_reported = (), False
        self._telemetry.web_file_read()


def _check_successor(old: WebRules, new: WebRules) -> None:
    """Refuse to drop TLS or all users while running: a file that is half written looks like that."""
    if old.tls is not None and new.tls is None:
        raise ConfigError("web.config_file: tls_server_config is gone; restart to serve without TLS")
    if old.access.has_credentials and not new.access.has_credentials:
        raise ConfigError("web.config_file: nobody would be asked for a password any more; restart to serve so")


def _stamp(files: Iterable[str]) -> Stamp:
    """What changes when one of the files changes; links are followed."""
    stamps: list[object] = []
    for file in files:
        try:
            status = Path(file).stat()
            stamps.append((status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino))
        except OSError as error:
            stamps.append(error.errno)
    return tuple(stamps)
