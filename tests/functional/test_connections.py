"""Connections: clients that say nothing, or take nothing, hold up neither health nor scrapes nor memory."""

import http.client
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from functional.daemon import RagwatchProcess, write_config
from support.kit import a_draw, a_verdict, an_admission
from support.patience import DEADLINE, SCALE, wait_until

from ragwatch.stores.sqlite.store import SqliteStore

RESIDENT = 256 << 20
WITHIN = 5.0 * SCALE  # seconds until health and figures are there
ANSWERS = 400
LARGE = "/api/v1/samples?limit=500&texts=true"


@pytest.fixture(scope="module")
def ragwatch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RagwatchProcess]:
    """The daemon on a state of 400 judged answers of 20 kB each."""
    folder = tmp_path_factory.mktemp("connections")
    with closing(SqliteStore(folder / "state")) as store:
        draws = [a_draw(f"r{number}", answer="Cats purr. " * 1800, at=time.time()) for number in range(ANSWERS)]
        store.admit(an_admission(*draws))
        store.settle([a_verdict(draw) for draw in draws])
    config = write_config(folder, sources=f"[{{kind: tail, name: other, path: '{folder}/log/*'}}]")
    with RagwatchProcess(config, forked=False).wait_until_serving() as daemon:
        yield daemon


def connect(ragwatch: RagwatchProcess, client: int = 1, window: int = 4096) -> socket.socket:
    """A connection from one of the addresses of this machine, that takes so much without being read."""
    host, _, port = ragwatch.address.removeprefix("http://").rpartition(":")
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)  # before the handshake, or it counts for nothing
    found.bind((f"127.0.0.{client}", 0))
    found.settimeout(DEADLINE)
    found.connect((host, int(port)))
    return found


@contextmanager
def connected(
    ragwatch: RagwatchProcess, count: int, sent: bytes = b"", clients: int = 1
) -> Iterator[list[socket.socket]]:
    """Many connections, from one or from several addresses, each of which sends this and no more."""
    with ExitStack() as stack:
        found = []
        for number in range(count):
            found.append(stack.enter_context(connect(ragwatch, 1 + number % clients)))
            if sent:
                found[-1].sendall(sent)
        yield found


def request(path: str) -> bytes:
    """A request."""
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def vital(ragwatch: RagwatchProcess) -> None:
    """Health, readiness and figures are there within seconds."""
    for path in ("/metrics", "/-/healthy", "/-/ready"):
        start = time.monotonic()
        assert (path, ragwatch.get(path)[0]) == (path, 200)
        assert time.monotonic() - start < WITHIN


def descriptors(ragwatch: RagwatchProcess) -> int:
    """Open files of the daemon."""
    return len(list(Path(f"/proc/{ragwatch.process.pid}/fd").iterdir()))


@pytest.mark.parametrize("clients", [1, 16])
def test_silent_connections_hold_up_nobody(ragwatch: RagwatchProcess, clients: int) -> None:
    """300 silent connections, renewed again and again, from one address or many: everything is answered at once."""
    for sent in (b"", b"GET / HT"):
        with connected(ragwatch, 300, sent, clients):
            vital(ragwatch)
            assert ragwatch.get("/samples")[0] == 200


def test_a_burst_from_one_address_is_answered(ragwatch: RagwatchProcess) -> None:
    """100 requests at once: whoever has no place is told so, and when to ask again; nobody's connection is reset."""
    with connected(ragwatch, 100, request("/samples")) as clients:
        replies = [client.recv(4096) for client in clients]
    assert {reply.split()[1] for reply in replies} <= {b"200", b"503"}
    assert all(b"retry-after" in reply.lower() for reply in replies if reply.split()[1] == b"503")


def test_silent_connections_are_limited(ragwatch: RagwatchProcess) -> None:
    """Of 600 connections that ask nothing, the oldest are closed: they hold no descriptors that logs may need."""
    with connected(ragwatch, 600, clients=16) as all_of_them:
        vital(ragwatch)
        assert descriptors(ragwatch) < 350
        assert all_of_them[0].recv(1) == b""


def test_a_scraper_keeps_its_connection(ragwatch: RagwatchProcess) -> None:
    """Prometheus asks on one connection for ever: it is not the one that is closed for silent newcomers."""
    host, _, port = ragwatch.address.removeprefix("http://").rpartition(":")
    with closing(http.client.HTTPConnection(host, int(port), timeout=DEADLINE)) as scraper:
        for _ in range(3):
            scraper.request("GET", "/metrics")
            reply = scraper.getresponse()
            assert (reply.status, b"ragwatch_build_info" in reply.read()) == (200, True)
            same = scraper.sock
            with connected(ragwatch, 300):
                scraper.request("GET", "/metrics")
                reply = scraper.getresponse()
                assert (reply.status, b"ragwatch_build_info" in reply.read()) == (200, True)
            assert scraper.sock is same


def test_clients_that_take_nothing_are_hung_up_on(ragwatch: RagwatchProcess) -> None:
    """240 clients that ask for the largest response and do not read: little memory, and cut off before long."""
    before = descriptors(ragwatch)
    with connected(ragwatch, 240, request(LARGE), clients=16) as all_of_them:
        end = time.monotonic() + 3 * DEADLINE
        while cut_off(all_of_them) < len(all_of_them) // 2:
            vital(ragwatch)
            assert ragwatch.memory() < RESIDENT
            assert time.monotonic() < end, "nobody was cut off"
            time.sleep(0.5)
        assert ragwatch.get("/samples")[0] == 200
    wait_until(lambda: descriptors(ragwatch) <= before + 5, "connections that are gone are not held any more")


def cut_off(sockets: list[socket.socket]) -> int:
    """How many got the whole of a refusal, or were closed: whoever still waits for more has neither."""
    return sum(_is_over(each) for each in sockets)


def _is_over(one: socket.socket) -> bool:
    try:
        seen = one.recv(4096, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
    if not seen or seen.startswith(b"HTTP/1.1 503"):
        return True
    return one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) != b"\x01"  # not established any more


def test_a_slow_reader_gets_everything(ragwatch: RagwatchProcess) -> None:
    """Whoever takes a little at a time, steadily, gets a whole response, however much longer than a stall it takes."""
    path = "/api/v1/samples?texts=true&limit=100"
    with connect(ragwatch, window=64 << 10) as reader:
        reader.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        body = bytearray()
        start = time.monotonic()
        while piece := reader.recv(32 << 10):
            body += piece
            time.sleep(0.3)
    assert time.monotonic() - start > 15.0
    head, _, rest = bytes(body).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert len(json.loads(unchunked(rest))["samples"]) == 100


def unchunked(body: bytes) -> bytes:
    """A body that was sent in chunks."""
    found = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        found, body = found + body[: int(size, 16)], body[int(size, 16) + 2 :]
    return found
