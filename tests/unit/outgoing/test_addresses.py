"""Addresses that no probe may reach, in all their spellings, and which requests go through a proxy."""

from __future__ import annotations

import pytest

from ragwatch.outgoing.addresses import checked_url, forbidden, resolve
from ragwatch.outgoing.proxies import parse_proxies

FORBIDDEN = """
    169.254.169.254 169.254.170.2 100.100.100.200 168.63.129.16 192.0.0.192 fd00:ec2::254 [fd00:ec2::254] fd20:ce::254
    fe80::a9fe:a9fe fe80::a9fe:a9fe%eth0 fe80::1 febf::1 64:ff9b:1::a9fe:a9fe 64:ff9b:1:2:3::169.254.169.254
    ::169.254.169.254 ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::1
    metadata metadata.google.internal METADATA.google.internal. instance-data.ec2.internal
"""
ALLOWED = """
    127.0.0.1 10.0.0.7 192.168.1.1 100.100.100.201 ::1 fd00::1 2001:db8::1 ::ffff:10.0.0.1 64:ff9b::a00:1
    retriever.internal metadata.example.com
"""


def test_forbidden() -> None:
    """Metadata services of the clouds, by name, by address, and by an IPv6 address that stands for one.

    A sidecar's retriever lives on loopback and private networks.
    """
    assert [host for host in FORBIDDEN.split() if not forbidden(host)] == []
    assert [host for host in [*ALLOWED.split(), ""] if forbidden(host)] == []


def test_what_cannot_be_resolved() -> None:
    """Unknown, or no name at all: one kind of error. Others have each address once, as text."""
    assert resolve("127.0.0.1", 80) == ["127.0.0.1"]
    for host in ("nobody.invalid", "a" * 64 + ".example", "a..b"):
        with pytest.raises(OSError, match=r"."):
            resolve(host, 80)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://169.254.169.254/latest", "metadata service"),
        ("http://[fe80::1]/x", "metadata service"),
        ("https://anna:secret@docs/x", "holds a user or a password"),
        ("https://anna@docs/x", "holds a user or a password"),
        ("ftp://docs/x", "is not a URL"),
        ("http:///x", "is not a URL"),
        ("http://[::1/x", "is not a URL"),
    ],
)
def test_urls_that_are_refused(url: str, message: str) -> None:
    """The message says why, and shows no password."""
    with pytest.raises(ValueError, match=message) as caught:
        checked_url(url)
    assert "secret" not in str(caught.value)


PROXY = "http://proxy:3128"


def proxied(no_proxy: str, host: str, port: int = 443) -> bool:
    """Whether a request goes through the proxy."""
    return parse_proxies({"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy}).proxy_of("https", host, port) is not None


def test_loopback_never_goes_through_a_proxy() -> None:
    """Whatever NO_PROXY says."""
    loopback = ["127.0.0.1", "127.9.9.9", "localhost", "Localhost.", "judge.localhost", "::1"]
    assert [host for host in [*loopback, "api.example.com"] if proxied("", host)] == ["api.example.com"]


def test_hosts_that_are_asked_directly() -> None:
    """Names with their subdomains, addresses and networks, each with or without a port, which then is a part of it."""
    for entry, direct, through in (
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
    ):
        assert not proxied(f" x.invalid ,{entry}", direct), entry
        assert not through or proxied(f"x.invalid,{entry}", through), entry
    assert proxied("example.com:8443,[fd00::1]:8443", "example.com", 443)
    assert not proxied("example.com:8443,[fd00::1]:8443", "fd00::1", 8443)


def test_entries_without_meaning_are_skipped() -> None:
    """They are named, and the others hold; ALL_PROXY stands for all; without any, requests go directly."""
    found = parse_proxies({"https_proxy": "proxy:3128", "no_proxy": "10.0.0.0/99, http://x/, example.com"})
    assert found.skipped == ("10.0.0.0/99", "http://x/")
    assert found.proxy_of("https", "example.com", 443) is None
    assert found.proxy_of("https", "example.org", 443) == PROXY
    assert parse_proxies({"ALL_PROXY": PROXY}).proxy_of("http", "example.com", 80) == PROXY
    assert parse_proxies({"HTTPS_PROXY": PROXY}).proxy_of("http", "example.com", 80) is None
    assert parse_proxies({}).proxy_of("https", "example.com", 443) is None
