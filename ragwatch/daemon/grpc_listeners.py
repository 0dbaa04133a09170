"""The addresses on which sources receive calls over gRPC."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ragwatch.daemon.web_access import WebAccess
from ragwatch.ports.addresses import is_loopback
from ragwatch.ports.receiving import GrpcListener, Handler
from ragwatch.telemetry import Telemetry
from ragwatch.web import Access, Authenticator, GrpcServer

Receivers = Callable[[], Mapping[str, Mapping[str, Handler]]]


class GrpcListeners:
    """The servers of all these addresses.

    Args:
        listeners: Addresses and limits.
        receivers: Returns the handlers of the active sources, by path and name of the source.
        access: Who may do what, and certificates.
        telemetry: Logs the addresses, and counts refusals.

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
        """Bind all addresses.

        Raises:
            AddressError: One is not available.
        """
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
