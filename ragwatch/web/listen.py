"""Listen: takes the address that is served, or says who has it and what to do."""

from __future__ import annotations

import errno
import http.client
import os
import socket

from ragwatch.errors import AddressError

ASK_SECONDS = 2.0
SEND_BYTES = 64 << 10  # send buffer of a socket: bytes that a client has not taken yet count as memory of ours as well
_EVERYWHERE = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - nothing is bound: these are asked under another name


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on an address.

    Args:
        host: Name or address.
        port: Port, 0 for any free one.

    Raises:
        AddressError: Nothing can listen there.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.create_server(address[:2], family=family)
    except (OSError, UnicodeError) as error:  # a name that no resolver takes is a UnicodeError
        shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        code = getattr(error, "errno", None) or 0  # of a resolver they are negative
        reason = os.strerror(code) if code > 0 else getattr(error, "strerror", None) or str(error)
        raise AddressError(f"cannot listen on {shown}: {reason}; {_advice(error, host, port)}") from error
    # Connections inherit this. asyncio sets it only where the protocol is named, and here it is not. Without it,
    # replies on kept connections wait some 40 ms for an acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
    return listener


def _advice(error: Exception, host: str, port: int) -> str:
    code = getattr(error, "errno", None)
    if code == errno.EADDRINUSE:
        holder = "another ragwatch" if _is_ragwatch(host, port) else "another process"
        return f"{holder} has this port (see `ss -ltnp 'sport = :{port}'`); stop it or write another port"
    if code == errno.EACCES:
        return "ports below 1024 need a privilege; write a higher port"
    return "write an address of this machine, such as 127.0.0.1:10477"


def _is_ragwatch(host: str, port: int) -> bool:
    """Whether what answers at an address is a ragwatch. Whoever does not answer soon is not asked twice."""
    connection = http.client.HTTPConnection("localhost" if host in _EVERYWHERE else host, port, timeout=ASK_SECONDS)
    try:
        connection.request("GET", "/-/healthy")
        return connection.getresponse().read(100).startswith(b"ragwatch")
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
