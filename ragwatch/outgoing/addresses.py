"""Blocks requests to cloud metadata services, against server-side request forgery (SSRF).

URLs come from the configuration, and their addresses from DNS; neither may let a request read the credentials that a
metadata service hands out. Private and loopback addresses are allowed, because a sidecar's retriever has one.
"""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

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
        "fe80::/10",  # link-local: OpenStack uses fe80::a9fe:a9fe
    )
)
_LAST_FOUR = (12, 13, 14, 15)
_EMBEDDED = (
    ("::/96", _LAST_FOUR),  # IPv4-compatible: RFC 4291
    ("::ffff:0:0:0/96", _LAST_FOUR),  # IPv4-translated: RFC 2765
    ("64:ff9b::/96", _LAST_FOUR),  # NAT64: RFC 6052
    ("64:ff9b:1::/48", _LAST_FOUR),  # NAT64 of a site, whose prefix has 96, 64, 56 or 48 bits: RFC 8215, 6052
    ("64:ff9b:1::/48", (9, 10, 11, 12)),
    ("64:ff9b:1::/48", (7, 9, 10, 11)),
    ("64:ff9b:1::/48", (6, 7, 9, 10)),
)
"""Networks whose addresses have an IPv4 address within, and in which bytes."""
_PLACES = tuple((ip_network(network), places) for network, places in _EMBEDDED)
_ISATAP = (b"\0\0\x5e\xfe", b"\2\0\x5e\xfe")  # before the last four bytes in any network: RFC 5214


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
    places = [bytes_within for network, bytes_within in _PLACES if address in network]
    if address.packed[8:12] in _ISATAP:
        places.append(_LAST_FOUR)
    embedded += [IPv4Address(bytes(address.packed[place] for place in four)) for four in places]
    return [address, *(candidate for candidate in embedded if candidate is not None)]


def is_address(host: str) -> bool:
    """Return whether a host is an address, and no name."""
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def url_parts(url: str) -> SplitResult | None:
    """Return the parts of a URL of HTTP with a host; None for any other text.

    An error of `urlsplit`, or of the port, may show a part of a password, so none is passed on.
    """
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 0) >= 0
    except ValueError:
        return None
    return parts if valid else None


def checked_url(url: str) -> str:
    """Return a URL that requests may be sent to.

    >>> checked_url("http://docs:8000/chunks")
    'http://docs:8000/chunks'

    Raises:
        ValueError: It has no host, a user or a password, or the host of a metadata service.
    """
    parts = url_parts(url)
    if parts is not None and "@" in parts.netloc:
        raise ValueError(
            "holds a user or a password, which would be shown; use a key for them, such as api_key, bearer or headers"
        )
    if parts is None:
        raise ValueError(f"{url!r} is not a URL; write one such as http://docs:8000")
    if forbidden(parts.hostname or ""):
        raise ValueError(f"{parts.hostname} is the address of a metadata service, or link-local; name another host")
    return url


def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host, in the system's order of preference. Raises OSError if there are none."""
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # a label that is empty or too long
        raise OSError(f"{host!r} is not a host name") from error
    return list(dict.fromkeys(str(address[0]) for *_, address in rows))
