"""Which requests go through a proxy, by the environment."""

from __future__ import annotations

import pytest

from ragwatch.outgoing.proxies import parse_proxies

PROXY = "http://proxy:3128"


def proxied(no_proxy: str, host: str, port: int = 443) -> bool:
    """Whether a request goes through the proxy."""
    return parse_proxies({"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy}).proxy_of("https", host, port) is not None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "Localhost.", "judge.localhost", "::1"])
def test_loopback_never_goes_through_a_proxy(host: str) -> None:
    """Whatever NO_PROXY says."""
    assert not proxied("", host)
    assert proxied("", "api.example.com")


@pytest.mark.parametrize(
    ("entry", "direct", "through"),
    [
        ("example.com", "example.com", "badexample.com"),
        ("example.com", "api.example.com", "example.org"),
        (".example.com", "api.example.com", "example.org"),
        ("*.example.com", "a.b.example.com", "example.org"),
        ("*", "anything.example", ""),
        ("10.0.0.0/8", "10.1.2.3", "11.1.2.3"),
        ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
        ("fe80::/10", "fe80::1", "fd00::1"),
        ("[fd00::1]", "fd00::1", "fd00::2"),
        ("fd00::/8", "fd12::9", "10.0.0.1"),
        ("example.com:443", "example.com", ""),
    ],
)
def test_hosts_that_are_asked_directly(entry: str, direct: str, through: str) -> None:
    """Names with their subdomains, addresses and networks, each with or without a port."""
    assert not proxied(f" x.invalid ,{entry}", direct)
    assert not through or proxied(f"x.invalid,{entry}", through)


def test_a_port_is_part_of_an_entry() -> None:
    """The same host at another port goes through the proxy."""
    assert proxied("example.com:8443,[fd00::1]:8443", "example.com", 443)
    assert not proxied("example.com:8443,[fd00::1]:8443", "fd00::1", 8443)


def test_entries_without_meaning_are_skipped() -> None:
    """They are named, and the others hold."""
    found = parse_proxies({"https_proxy": "proxy:3128", "no_proxy": "10.0.0.0/99, http://x/, example.com"})
    assert found.skipped == ("10.0.0.0/99", "http://x/")
    assert found.proxy_of("https", "example.com", 443) is None
    assert found.proxy_of("https", "example.org", 443) == PROXY


def test_a_scheme_without_a_proxy_of_its_own() -> None:
    """ALL_PROXY stands for all; without any, requests go directly."""
    assert parse_proxies({"ALL_PROXY": PROXY}).proxy_of("http", "example.com", 80) == PROXY
    assert parse_proxies({"HTTPS_PROXY": PROXY}).proxy_of("http", "example.com", 80) is None
    assert parse_proxies({}).proxy_of("https", "example.com", 443) is None
