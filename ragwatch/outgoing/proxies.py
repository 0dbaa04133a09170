"""Which requests go through a proxy: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, read once.

Loopback never goes through a proxy. An entry of NO_PROXY is `*`, a name (which stands for its subdomains as well), an
address or a network, each with or without a port, as for curl; any other is skipped with a warning that names it.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

import structlog

_NAME = re.compile(r"[\w-]+(?:\.[\w-]+)*\.?", re.ASCII)
_PORT = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*):(?P<port>\d{1,5})")
_SCHEMES = ("http", "https", "all")


@dataclass(frozen=True, slots=True)
class DirectHost:
    """One entry of NO_PROXY."""

    name: str = ""
    network: IPv4Network | IPv6Network | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Proxies:
    """The proxies of an environment."""

    by_scheme: Mapping[str, str] = field(default_factory=dict)  # address of the proxy by scheme: http, https, all
    direct: tuple[DirectHost, ...] = ()  # hosts that are asked directly
    all_direct: bool = False  # whether every host is
    skipped: tuple[str, ...] = ()  # entries of NO_PROXY that have no meaning

    def proxy_of(self, scheme: str, host: str, port: int) -> str | None:
        """Return the proxy for requests to a host; None for none."""
        proxy = self.by_scheme.get(scheme) or self.by_scheme.get("all")
        if proxy is None or self.all_direct or _is_loopback(host):
            return None
        return None if any(_matches(entry, host, port) for entry in self.direct) else proxy


NO_PROXIES = Proxies()


def parse_proxies(environment: Mapping[str, str]) -> Proxies:
    """Return the proxies that an environment names. Names in lower case come first, as for curl.

    >>> parse_proxies({"https_proxy": "proxy:3128", "NO_PROXY": "fe80::/10,.internal"}).proxy_of("https", "api", 443)
    'http://proxy:3128'
    """
    by_scheme = {}
    for scheme in _SCHEMES:
        names = (f"{scheme}_proxy", f"{scheme}_proxy".upper())
        value = next((environment[name].strip() for name in names if environment.get(name, "").strip()), "")
        if value:
            by_scheme[scheme] = value if "://" in value else f"http://{value}"
    entries = [one.strip() for one in (environment.get("no_proxy") or environment.get("NO_PROXY") or "").split(",")]
    parsed = {entry: _entry(entry) for entry in entries if entry not in ("", "*")}
    return Proxies(
        by_scheme,
        tuple(entry for entry in parsed.values() if entry is not None),
        "*" in entries,
        tuple(text for text, entry in parsed.items() if entry is None),
    )


@cache
def proxies() -> Proxies:
    """Return the proxies of this process; entries without meaning are named in the log once."""
    parsed = parse_proxies(os.environ)
    if parsed.skipped:
        structlog.get_logger().warning(
            "no_proxy_skipped", entries=list(parsed.skipped), hint="write a name, an address or a network"
        )
    return parsed


def _entry(text: str) -> DirectHost | None:
    with_port = _PORT.fullmatch(text)
    host, port = (with_port["host"], int(with_port["port"])) if with_port else (text, None)
    host = host.removeprefix("[").removesuffix("]")
    try:
        return DirectHost(network=ip_network(host, strict=False), port=port)
    except ValueError:
        name = host.removeprefix("*").removeprefix(".").removesuffix(".").lower()
        return DirectHost(name=name, port=port) if _NAME.fullmatch(name) else None


def _matches(entry: DirectHost, host: str, port: int) -> bool:
    if entry.port not in (None, port):
        return False
    if entry.network is None:
        name = host.lower().removesuffix(".")
        return name == entry.name or name.endswith(f".{entry.name}")
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.version == entry.network.version and address in entry.network


def _is_loopback(host: str) -> bool:
    name = host.lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
