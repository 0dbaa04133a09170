"""Addresses that no probe may reach: where clouds hand out the machine's own credentials to whoever asks.

A probe's URL comes from configuration, and the names in it from DNS; neither may turn a canary into a way to read
credentials. Private and loopback addresses are allowed: a sidecar's retriever lives there.
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
        "169.254.0.0/16",  # link-local: every large cloud answers at 169.254.169.254, and ECS and EKS beside it
        "100.100.100.200/32",  # Alibaba Cloud
        "168.63.129.16/32",  # Azure's host agent
        "192.0.0.192/32",  # Oracle Cloud, classic
        "fd00:ec2::/32",  # AWS
        "fd20:ce::254/128",  # Google Cloud
        "fe80::a9fe:a9fe/128",  # OpenStack
    )
)
_TRANSLATED = ip_network("64:ff9b::/96")  # NAT64: the last four bytes are an IPv4 address (RFC 6052)


def forbidden(host: str) -> bool:
    """Whether a name, or an address in any notation that embeds IPv4 in IPv6, is one of a metadata service.

    >>> [forbidden(host) for host in ("169.254.169.254", "::ffff:a9fe:a9fe", "Metadata.Google.Internal.", "10.0.0.7")]
    [True, True, True, False]
    """
    try:
        address = ip_address(host.partition("%")[0].strip("[]"))
    except ValueError:
        return host.rstrip(".").lower() in NAMES
    return any(each in network for each in _faces(address) for network in _NETWORKS)


def _faces(address: IPv4Address | IPv6Address) -> list[IPv4Address | IPv6Address]:
    """The address, and the IPv4 address that it stands for."""
    if isinstance(address, IPv4Address):
        return [address]
    inner = [address.ipv4_mapped, address.sixtofour, address.teredo[1] if address.teredo else None]
    if address in _TRANSLATED:
        inner.append(IPv4Address(address.packed[-4:]))
    return [address, *(each for each in inner if each is not None)]


async def resolve(host: str, port: int) -> list[str]:
    """Addresses of a host, in the system's order of preference.

    Raises:
        OSError: There are none.
    """
    try:
        rows = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # a label that is empty or too long
        raise OSError(f"{host!r} is not a host name") from error
    return list(dict.fromkeys(str(row[4][0]) for row in rows))
