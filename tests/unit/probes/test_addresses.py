"""Addresses that no probe may reach, in all their spellings."""

from __future__ import annotations

import pytest

from ragwatch.probes.addresses import forbidden, resolve


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "[fd00:ec2::254]",
        "fd20:ce::254",
        "fe80::a9fe:a9fe",
        "fe80::a9fe:a9fe%eth0",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "metadata",
        "metadata.google.internal",
        "METADATA.google.internal.",
        "instance-data.ec2.internal",
    ],
)
def test_forbidden(host: str) -> None:
    """Metadata services of the clouds, by name, by address, and by an IPv6 address that stands for one."""
    assert forbidden(host)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "10.0.0.7",
        "192.168.1.1",
        "100.100.100.201",
        "::1",
        "fe80::1",
        "fd00::1",
        "2001:db8::1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "retriever.internal",
        "metadata.example.com",
        "",
    ],
)
def test_allowed(host: str) -> None:
    """A sidecar's retriever lives on loopback and private networks."""
    assert not forbidden(host)


async def test_resolving() -> None:
    """Each address once, as text."""
    assert await resolve("127.0.0.1", 80) == ["127.0.0.1"]
    assert "127.0.0.1" in await resolve("localhost", 80)


@pytest.mark.parametrize("host", ["nobody.invalid", "a" * 64 + ".example", "a..b"])
async def test_what_cannot_be_resolved(host: str) -> None:
    """Unknown, or no name at all: one kind of error."""
    with pytest.raises(OSError, match=r"."):
        await resolve(host, 80)
