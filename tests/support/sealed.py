"""A network namespace with only a DNS server and a packet counter in it: every request of a program is recorded.

`python tests/support/sealed.py FOLDER KIND` runs the daemon with one kind there (see `run`) and prints as JSON
which names were looked up, which addresses got packets, and which files were written outside the daemon's own folders.
Run it in namespaces of its own: `unshare --net --mount --map-root-user python tests/support/sealed.py ...`. With
`--audit` instead it listens inside the daemon's Python, which does not see what native libraries do.
"""

import ctypes
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from functional.asking import records, write_log
from functional.daemon import RagwatchProcess, write_config
from loopback.process import LoopbackProcess
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from support.retrievers import HITS, serving

SERVICE = "service.test"
"""The name under which a configured service is reached."""

_PROVEN = "proof.test"
_RESOLVER = "127.0.0.1"
_MS_BIND = 4096
_AUDIT = """
import os, sys
def hear(event, arguments):
    host = arguments[0] if event in ("socket.getaddrinfo", "socket.gethostbyname") else None
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    if host is not None:
        with open({path!r}, "a") as file:
            file.write((host.decode() if isinstance(host, bytes) else host) + "\\n")
sys.addaudithook(hear)
"""


class Seal:
    """What was asked for since the seal was closed.

    Attributes:
        names: Names that were looked up.
        addresses: Addresses other than loopback that packets were sent to.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.addresses: set[str] = set()

    def close(self) -> None:
        """Bring the loopback interface up, answer all lookups, and let every packet come back to be counted.

        Raises:
            OSError: This is no namespace of our own, or it may not be set up.
        """
        _loopback_up()
        if ip := shutil.which("ip"):  # without it other addresses are unreachable, and a packet to them is never sent
            for family in ("-4", "-6"):
                subprocess.run([ip, family, "route", "add", "local", "default", "dev", "lo"], check=False)
        resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        resolver.bind((_RESOLVER, 53))
        packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        for read, source in ((self._answer, resolver), (self._count, packets)):
            threading.Thread(target=read, args=(source,), daemon=True).start()
        self._prove()

    def _prove(self) -> None:
        """Look a name up and send a packet, so that a seal that sees nothing is found out."""
        socket.getaddrinfo(_PROVEN, 80)
        if _PROVEN not in self.names:
            raise OSError("the lookup of a name was not seen")
        self.names.clear()

    def _answer(self, resolver: socket.socket) -> None:
        """Answer each lookup: names of the configured services are here, others do not exist."""
        while True:
            query, sender = resolver.recvfrom(4096)
            name, end = _name(query)
            self.names.add(name)
            known = name in (SERVICE, _PROVEN)
            is_address = known and query[end : end + 2] == b"\0\1"
            flags = 0x8180 if known else 0x8183
            reply = query[:2] + struct.pack("!5H", flags, 1, int(is_address), 0, 0) + query[12 : end + 4]
            if is_address:
                reply += struct.pack("!HHHIH", 0xC00C, 1, 1, 60, 4) + socket.inet_aton(_RESOLVER)
            resolver.sendto(reply, sender)

    def _count(self, packets: socket.socket) -> None:
        while True:
            packet, (_, protocol, *_) = packets.recvfrom(65535)
            if protocol == 0x0800:
                self._note(socket.inet_ntoa(packet[16:20]))
            elif protocol == 0x86DD:
                self._note(socket.inet_ntop(socket.AF_INET6, packet[24:40]))

    def _note(self, address: str) -> None:
        if not ip_address(address).is_loopback:
            self.addresses.add(address)


def _name(query: bytes) -> tuple[str, int]:
    """The name that a query asks for, and where it ends."""
    labels, place = [], 12
    while length := query[place]:
        labels.append(query[place + 1 : place + 1 + length].decode(errors="replace"))
        place += length + 1
    return ".".join(labels).lower(), place + 1


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0x1 | 0x40)  # IFF_UP | IFF_RUNNING
        fcntl.ioctl(any_socket, 0x8914, request)  # SIOCSIFFLAGS


def _use_resolver(folder: Path) -> None:
    """Have this mount namespace ask our DNS server, once and without search domains."""
    ours = folder / "resolv.conf"
    ours.write_text(f"nameserver {_RESOLVER}\noptions attempts:1 timeout:2\n")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(str(ours).encode(), b"/etc/resolv.conf", None, _MS_BIND, None):
        raise OSError(ctypes.get_errno(), "cannot mount over /etc/resolv.conf")


@contextmanager
def _own_places(folder: Path) -> Iterator[list[str]]:
    """Home, temporary and working folder of everything that is started: empty ones. Yields what was written there."""
    places = {name: folder / name.lower() for name in ("HOME", "TMPDIR", "PWD")}
    for place in places.values():
        place.mkdir()
    for name in [each for each in os.environ if each.startswith("XDG_") or each == "ORT_DISABLE_TELEMETRY"]:
        del os.environ[name]
    os.environ.update({name: str(place) for name, place in places.items()})
    os.chdir(places["PWD"])
    written: list[str] = []
    yield written
    written += sorted(
        str(path.relative_to(folder))
        for place in places.values()
        for path in place.rglob("*")
        if not path.name.startswith(".coverage")
    )


def main(folder: Path, kind: str, *, audited: bool) -> None:
    """Run the daemon with this kind and print what was seen."""
    seal, heard = Seal(), folder / "heard"
    with _own_places(folder) as written:
        if audited:
            (folder / "audit").mkdir()
            (folder / "audit" / "sitecustomize.py").write_text(_AUDIT.format(path=str(heard)))
            os.environ["PYTHONPATH"] = os.pathsep.join((str(folder / "audit"), os.environ.get("PYTHONPATH", "")))
        else:
            _use_resolver(folder)
            seal.close()
        run(folder / "daemon", kind, "localhost" if audited else SERVICE)
    names = set(heard.read_text().split()) if heard.exists() else seal.names
    print(json.dumps({"names": sorted(names), "addresses": sorted(seal.addresses), "written": written}))


ANSWERS = 4
QUIET = 2.0
"""Seconds that the daemon is left alone in the end: libraries that report home do so in the background."""

QUIET_MODEL = 15.0
"""The same for kinds that run a model: onnxruntime used to look its maker's host up ten seconds after its import."""

DETECTOR = Path(__file__).parents[1] / "data" / "detector" / "neutral"

JUDGED = 'ragwatch_samples_judged_total{judge="reader",route="search"}'
ASKED = 'ragwatch_canary_runs_total{suite="docs"}'


def run(folder: Path, kind: str, host: str) -> None:
    """Run the daemon with a kind.

    Args:
        folder: Where it has its configuration, log and state.
        kind: A name of `KINDS`.
        host: How a service on this machine is reached.
    """
    folder.mkdir()
    KINDS[kind](folder, host)


def _embedded(kind: str, quiet: float = QUIET, **options: str) -> Callable[[Path, str], None]:
    def judge(folder: Path, _host: str) -> None:
        _judge(folder, {"name": "reader", "kind": kind, **options}, quiet)
        settings = [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
        log = str(folder / "log" / "rag.jsonl")
        command = [sys.executable, "-m", "ragwatch", "judge", "--judge", kind, *settings, log]
        judged = subprocess.run(command, capture_output=True, text=True, check=True)
        if len(judged.stdout.splitlines()) != ANSWERS:
            raise RuntimeError(judged.stdout + judged.stderr)

    return judge


def _calling(kind: str, path: str, **options: Any) -> Callable[[Path, str], None]:
    def judge(folder: Path, host: str) -> None:
        with LoopbackProcess() as server:
            address = server.address.replace("127.0.0.1", host) + path
            _judge(folder, {"name": "reader", "kind": kind, "base_url": address, "api_key": server.key, **options})

    return judge


def _judge(folder: Path, judge: dict[str, Any], quiet: float = QUIET) -> None:
    write_log(folder, records(ANSWERS))
    _watch(write_config(folder, judges=json.dumps([judge])), JUDGED, ANSWERS, quiet)


def _probing(kind: str, **options: Any) -> Callable[[Path, str], None]:
    async def reply(_request: Request) -> JSONResponse:
        return JSONResponse({"hits": HITS, "answer": "Cats purr."})

    def probe(folder: Path, host: str) -> None:
        with serving(Route("/ask", reply, methods=["POST"])) as address:
            url = f"{address.replace('127.0.0.1', host)}/ask"
            asked = {"kind": kind, "url": url, "body": {"query": "{{ query }}"}, "contexts": "hits", **options}
            item = {"query": "What do cats do?", "expected": ["d1"], "name": "cats"}
            suite = {"suite": "docs", "schedule": "1d", "k": [1], "items": [item], "probe": asked}
            _watch(write_config(folder, canaries=json.dumps([suite])), ASKED, 1, QUIET)

    return probe


def _watch(config: Path, series: str, value: float, quiet: float) -> None:
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        ragwatch.wait_for(series, value)
        time.sleep(quiet)  # nothing to wait for: what is looked for should not come


KINDS: dict[str, Callable[[Path, str], None]] = {
    "lexical": _embedded("lexical"),
    "local": _embedded("local", QUIET_MODEL),
    "detector": _embedded("detector", QUIET_MODEL, model=str(DETECTOR)),
    "claude": _calling("claude", "", model="claude-test", allow_unknown_price=True),
    "openai": _calling("openai", "/v1", model="gpt-test", allow_unknown_price=True),
    "http": _probing("http"),
    "rag": _probing("rag", answer="answer"),
}


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], audited="--audit" in sys.argv)
