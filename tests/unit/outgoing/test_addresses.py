"""Addresses that no probe may reach, in all their spellings."""

from __future__ import annotations

import pytest

from ragwatch.outgoing.addresses import checked_url, forbidden, resolve

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


@pytest.mark.parametrize("host", FORBIDDEN.split())
def test_forbidden(host: str) -> None:
    """Metadata services of the clouds, by name, by address, and by an IPv6 address that stands for one."""
    assert forbidden(host)


@pytest.mark.parametrize("host", [*ALLOWED.split(), ""])
def test_allowed(host: str) -> None:
    """A sidecar's retriever lives on loopback and private networks."""
    assert not forbidden(host)


@pytest.mark.parametrize("host", ["nobody.invalid", "a" * 64 + ".example", "a..b"])
def test_what_cannot_be_resolved(host: str) -> None:
    """Unknown, or no name at all: one kind of error. Others have each address once, as text."""
    assert resolve("127.0.0.1", 80) == ["127.0.0.1"]
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
