"""Addresses to listen on, as `host:port`."""

from __future__ import annotations

from ipaddress import ip_address

MAX_PORT = 65535
PATTERN = r"^.+:\d{1,5}$"


def checked_port(address: str) -> str:
    """Return an address whose port exists.

    Raises:
        ValueError: It does not.
    """
    port = int(address.rpartition(":")[2])
    if port > MAX_PORT:
        raise ValueError(f"port {port} does not exist; give one from 0 to {MAX_PORT}")
    return address


def host_of(address: str) -> str:
    """Return the name or address of a machine, without its port.

    >>> host_of("[::1]:80"), host_of("localhost:80")
    ('::1', 'localhost')
    """
    return address.rpartition(":")[0].strip("[]")


def is_loopback(address: str) -> bool:
    """Return whether only this machine can connect.

    >>> is_loopback("[::1]:80"), is_loopback("localhost:80"), is_loopback("0.0.0.0:80"), is_loopback("rag:80")
    (True, True, False, False)
    """
    host = host_of(address)
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
