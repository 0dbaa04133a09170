"""What `ragwatch check` says of addresses to listen on, and of who may do what there."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable, Sequence

from ragwatch.config.web import WebOptions
from ragwatch.daemon.web_access import read_rules
from ragwatch.ports.addresses import host_of, is_loopback
from ragwatch.ports.receiving import GrpcListener
from ragwatch.web import Access, Right

NOBODY_SENDS = "nobody has the right ingest: give it to a token, as `web.tokens: [{name, token, rights: [ingest]}]`"


def address_state(listen: str, owner: str | None) -> tuple[bool, str]:
    """Return whether an address is free, and this as text for people.

    Args:
        listen: As `host:port`.
        owner: The process that has the state; None if none has.

    Raises:
        OSError: It cannot be listened on.
    """
    host = host_of(listen)
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((host, int(listen.rpartition(":")[2])))
        except OSError as error:
            if owner is None or error.errno != errno.EADDRINUSE:
                raise
            return False, f"{listen} is in use, as it is while ragwatch runs (process {owner})"
    return True, f"{listen} is free"


def web_state(web: WebOptions, listeners: Sequence[GrpcListener] = ()) -> tuple[bool, str]:
    """Return whether credentials are safe on their way, and who may do what, as text for people.

    Args:
        web: Addresses and credentials.
        listeners: Addresses over gRPC.

    Raises:
        ConfigError: See `read_rules`.
    """
    rules = read_rules(web, listeners)
    access = rules.access
    transport = "HTTP" if rules.tls is None else "TLS"
    if not access.has_credentials:
        return True, f"{transport}; nobody is asked for a password: {_rights(access.anonymous)}"
    who = [
        f"{len(access.users)} users" if access.users else "",
        f"{len(access.tokens)} tokens" if access.tokens else "",
    ]
    who += ["client certificates"] if access.certificates and not access.users else []
    text = f"{transport}; {', '.join(filter(None, who))}; without them: {_rights(access.anonymous) or 'nothing'}"
    addresses = (web.listen, *(listener.address for listener in listeners))
    if rules.tls is None and not all(map(is_loopback, addresses)):
        return False, f"{text}; passwords and tokens travel unencrypted: use TLS, here or in a proxy"
    return True, text


def may_send(access: Access) -> bool:
    """Return whether anybody may send records."""
    granted = [*(token.rights for token in access.tokens), *access.grants.values()]
    return Right.INGEST in access.anonymous.union(*granted, access.unlisted if access.users else ())


def _rights(rights: Iterable[Right]) -> str:
    return ", ".join(sorted(rights))
