"""Blocks requests to cloud metadata services, against server-side request forgery (SSRF).

The URL of a probe comes from the configuration, and its addresses from DNS; neither may let a canary read the
credentials that a metadata service hands out. Private and loopback addresses are allowed, because a sidecar's retriever
has one.
"""

from __future__ import annotations

import asyncio
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

NAMES = frozenset(
    {"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}
)
_NETWORKS = tuple(
    ip_network(text)
    for text in (
        "169.254.0.0/16",  # link-local: most clouds use 169.254.169.254, ECS and EKS addresses next to it
        "100.100.100.200/32",  # Alibaba Cloud
        "168.63.129.16/32",  # Azure's host agent
        "192.0.0.192/32",  # Oracle Cloud, classic
        "fd00:ec2::/32",  # AWS
        "fd20:ce::254/128",  # Google Cloud
        "fe80::a9fe:a9fe/128",  # OpenStack
    )
)
_NAT64 = ip_network("64:ff9b::/96")  # the last four bytes are an IPv4 address (RFC 6052)


def forbidden(host: str) -> bool:
    """Return whether a name or address belongs to a metadata service, also for IPv4 addresses embedded in IPv6.

    >>> [forbidden(host) for host in ("169.254.169.254", "::ffff:a9fe:a9fe", "Metadata.Google.Internal.", "10.0.0.7")]
    [True, True, True, False]
    """
    try:
        address = ip_address(host.partition("%")[0].strip("[]"))
    except ValueError:
        return host.rstrip(".").lower() in NAMES
    return any(variant in network for variant in _with_embedded(address) for network in _NETWORKS)


def _with_embedded(address: IPv4Address | IPv6Address) -> list[IPv4Address | IPv6Address]:
    """Return the address and the IPv4 addresses embedded in it."""
    if isinstance(address, IPv4Address):
        return [address]
    embedded = [address.ipv4_mapped, address.sixtofour, address.teredo[1] if address.teredo else None]
    if address in _NAT64:
        embedded.append(IPv4Address(address.packed[-4:]))
    return [address, *(candidate for candidate in embedded if candidate is not None)]


async def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host, in the system's order of preference.

    Raises:
        OSError: There are none.
    """
    try:
        rows = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # a label that is empty or too long
        raise OSError(f"{host!r} is not a host name") from error
    return list(dict.fromkeys(str(row[4][0]) for row in rows))
