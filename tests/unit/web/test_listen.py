"""Binding the address: errors name the holder of the port and what to do."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest
from support.answering import answering

from ragwatch.errors import AddressError
from ragwatch.web.serve import _advice, listen


@contextmanager
def _ragwatch() -> Iterator[int]:
    with answering(lambda _: (200, b"ragwatch is healthy\n", {})) as (address, _):
        yield int(address.rpartition(":")[2])


def _hang_up(server: socket.socket) -> None:
    server.accept()[0].close()


def test_a_free_port() -> None:
    """Whoever connects is let in, and small replies are not held back."""
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_that_another_process_has() -> None:
    """It says how to find out whose it is."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        thread = Thread(target=_hang_up, args=(other,))  # who asks it who it is gets no answer
        thread.start()
        with pytest.raises(AddressError) as caught:
            listen("127.0.0.1", port)
        thread.join()
    assert str(caught.value) == (
        f"web.listen: cannot listen on 127.0.0.1:{port}: Address already in use; another process has this port "
        f"(see `ss -ltnp 'sport = :{port}'`); stop it or write another port"
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])  # noqa: S104 - refused, and never bound
def test_a_port_that_another_ragwatch_has(host: str) -> None:
    """The likeliest case is named."""
    with _ragwatch() as port, pytest.raises(AddressError, match="; another ragwatch has this port"):
        listen(host, port)


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("no such host.invalid", r"cannot listen on no such host\.invalid:80: .+; write an address of this machine"),
        ("192.0.2.1", r"cannot listen on 192\.0\.2\.1:80: .+; write an address of this machine"),
        ("2001:db8::1", r"cannot listen on \[2001:db8::1\]:80: .+; write an address of this machine"),
        ("x" * 80 + ".y", r"cannot listen on x+\.y:80: .+; write an address of this machine"),
    ],
)
def test_an_address_that_is_not_ours(host: str, why: str) -> None:
    """Unknown names and other machines' addresses."""
    with pytest.raises(AddressError, match=why):
        listen(host, 80)


def test_a_port_that_needs_a_privilege() -> None:
    """Tests may have it, so only the advice is looked at."""
    assert (
        _advice(OSError(errno.EACCES, ""), "127.0.0.1", 80) == "ports below 1024 need a privilege; write a higher port"
    )
