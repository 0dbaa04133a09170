"""Intake of source `push`: the real daemon behind HTTP, beside a bare json.loads loop over the same records.

Prints records a second of CPU of both and their ratio (medians of interleaved rounds), for each shape of body.
"""

import argparse
import gc
import gzip
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

BAR = 0.2
SENTENCE = "the river bends below an old mill where water turned stone for two hundred years before it fell silent "
CONFIG = """\
state: {folder}/state
web: {{listen: '127.0.0.1:0'}}
routes: [search]
sources: [{{kind: push, name: app}}]
sampling: {{probability: 0.000001}}
judging: {{max_pending: 1000000}}
"""


def record(number: int) -> dict[str, object]:
    """A canonical record of about 4 KB: five contexts of some 650 characters, an answer of some 450."""
    passage = (SENTENCE * 7)[:650]
    return {
        "id": f"request-{number}",
        "at": 1_700_000_000 + number,
        "question": "How long did the water of the river turn the stone?",
        "contexts": [{"id": f"d{rank}", "text": passage, "score": 1.0 / (rank + 1)} for rank in range(5)],
        "answer": passage[:450],
        "route": "search",
    }


@contextmanager
def daemon(folder: Path) -> Iterator[tuple[int, str]]:
    """Run the daemon. Yields its process id and address."""
    config = folder / "ragwatch.yaml"
    config.write_text(CONFIG.format(folder=folder))
    command = [sys.executable, "-m", "ragwatch", "run", "--config", str(config)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    if process.stderr is None:
        raise SystemExit("the daemon has no standard error")
    try:
        started = (json.loads(line) for line in process.stderr if line.startswith("{"))
        yield process.pid, next(event["address"] for event in started if event["event"] == "started")
    finally:
        process.terminate()
        process.communicate()


def cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def floor(lines: list[bytes]) -> float:
    """Seconds of CPU that json.loads takes for the records alone."""
    gc.collect()
    start = time.process_time()
    for line in lines:
        json.loads(line)
    return time.process_time() - start


def send(connection: http.client.HTTPConnection, body: bytes, headers: dict[str, str]) -> None:
    """Send a body, and check that all of it is accepted."""
    connection.request("POST", "/v1/samples", body, headers)
    reply = connection.getresponse()
    text = reply.read()
    if reply.status != 202:
        raise SystemExit(f"status {reply.status}: {text[:300]!r}")


def lines_of(rows: list[dict[str, object]]) -> bytes:
    """JSONL."""
    return "\n".join(map(json.dumps, rows)).encode()


def array_of(rows: list[dict[str, object]]) -> bytes:
    """A JSON array."""
    return json.dumps(rows).encode()


def send_all(address: str, bodies: list[bytes], headers: dict[str, str], clients: int) -> None:
    """Send bodies from several clients at once."""

    def client(mine: list[bytes]) -> None:
        connection = http.client.HTTPConnection(address, timeout=60)
        for body in mine:
            send(connection, body, headers)
        connection.close()

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(client, (bodies[start::clients] for start in range(clients))))


SHAPES: dict[str, tuple[Callable[[list[dict[str, object]]], bytes], int, dict[str, str]]] = {
    "JSONL, 250 records": (lines_of, 250, {"Content-Type": "application/x-ndjson"}),
    "array, 250 records": (array_of, 250, {"Content-Type": "application/json"}),
    "array, 250 records, gzip": (
        lambda rows: gzip.compress(array_of(rows), 1),
        250,
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ),
    "JSONL, 10 records": (lines_of, 10, {"Content-Type": "application/x-ndjson"}),
    "one record": (lambda rows: json.dumps(rows[0]).encode(), 1, {"Content-Type": "application/json"}),
}


def main() -> None:
    """Measure every shape."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=5000, help="records of each round")
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    number = 0
    with tempfile.TemporaryDirectory() as name, daemon(Path(name)) as (pid, address):
        warm = [lines_of([record(-number - 1)]) for number in range(200)]
        send_all(urllib.parse.urlsplit(address).netloc, warm, {"Content-Type": "application/x-ndjson"}, 1)
        for shape, (encode, size, headers) in SHAPES.items():
            bare, pushed, walls = [], [], []
            for _ in range(arguments.rounds):
                count = arguments.records if size > 1 else arguments.records // 10
                rows = [record(number + place) for place in range(count)]
                number += count
                bodies = [encode(rows[start : start + size]) for start in range(0, count, size)]
                bare.append(count / floor([json.dumps(row).encode() for row in rows]))
                before, start = cpu_seconds(pid), time.perf_counter()
                send_all(urllib.parse.urlsplit(address).netloc, bodies, headers, arguments.clients)
                walls.append(count / (time.perf_counter() - start))
                pushed.append(count / max(1e-9, cpu_seconds(pid) - before))
            ratio = statistics.median(one / other for one, other in zip(pushed, bare, strict=True))
            print(
                f"{shape}: {statistics.median(pushed):.0f} records per CPU second, "
                f"{statistics.median(walls):.0f}/s by the clock with {arguments.clients} clients; "
                f"json.loads {statistics.median(bare):.0f}; ratio {ratio:.2f} (bar {BAR})"
            )


if __name__ == "__main__":
    main()
