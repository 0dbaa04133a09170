"""Push to the real daemon: what is acknowledged is counted once, whatever is killed; hostile bodies harm nothing."""

from __future__ import annotations

import gzip
import http.client
import json
import random
import threading
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest
from functional.daemon import RagwatchProcess, record, write_config
from support.patience import DEADLINE

from ragwatch.emit import AnswerLog

SOURCES = "[{kind: push, name: app}]"
SEEN = 'ragwatch_requests_seen_total{source="app"}'
DRAWN = 'ragwatch_samples_drawn_total{route="search"}'
RESENT = 'ragwatch_records_resent_total{source="app"}'
JUDGED = 'ragwatch_samples_judged_total{judge="embedded",route="search"}'
MAX_RISE = 50 << 20


def post(address: str, body: bytes, **headers: str) -> int:
    """Status of a request."""
    request = urllib.request.Request(f"{address}/v1/samples", body, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE) as reply:
            reply.read()
            return int(reply.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


class Client(threading.Thread):
    """Sends numbered records, each batch until it is acknowledged, to a daemon that comes and goes.

    Attributes:
        address: Of the daemon at present.
        acknowledged: Number of records.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._rng = random.Random(seed)
        self._ended = threading.Event()
        self.address = ""
        self.acknowledged = 0
        self.attempts = 0

    def run(self) -> None:
        """Send until ended; a batch under way is finished."""
        while not self._ended.is_set():
            count = self._rng.randrange(1, 20)
            rows = [json.loads(record(self.acknowledged + place)) for place in range(count)]
            body = gzip.compress(json.dumps(rows).encode(), 1)
            while not self._is_accepted(body):
                time.sleep(0.01)
            self.acknowledged += count
            self._ended.wait(0.02)

    def _is_accepted(self, body: bytes) -> bool:
        self.attempts += 1
        try:
            status = post(self.address, body, **{"Content-Encoding": "gzip"}) if self.address else 0
        except (OSError, ValueError, http.client.HTTPException):  # the last one: killed within its reply
            return False
        assert status in (0, 202, 429, 503), status
        return status == 202

    def end(self) -> None:
        """Finish the batch under way, and stop."""
        self._ended.set()
        self.join()


@pytest.mark.parametrize("kills", [pytest.param(2, marks=pytest.mark.costly), pytest.param(60, marks=pytest.mark.slow)])
def test_what_is_acknowledged_is_counted_once(tmp_path: Path, kills: int) -> None:
    """A client sends until it has its 202, while the daemon is killed at random: every record is counted once."""
    config = write_config(tmp_path, sources=SOURCES)
    rng, client = random.Random(kills), Client(kills)
    client.start()
    try:
        for _ in range(kills):
            with RagwatchProcess(config).wait_until_serving() as ragwatch:
                client.address = ragwatch.address
                time.sleep(rng.uniform(0.1, 0.8))
                ragwatch.kill()
        with RagwatchProcess(config).wait_until_serving() as ragwatch:
            client.address = ragwatch.address
            client.end()
            series = ragwatch.wait_for(JUDGED, client.acknowledged)
    finally:
        client.end()
    print(f"{kills} kills: {client.acknowledged} acknowledged in {client.attempts} requests, {series[SEEN]:.0f} seen")
    assert client.acknowledged > 0
    assert (series[SEEN], series[DRAWN]) == (client.acknowledged, client.acknowledged)


def hostile() -> Iterable[tuple[str, bytes, dict[str, str], set[int]]]:
    """Bodies that try to exhaust memory or stack, with the statuses that are right."""
    packed = {"Content-Encoding": "gzip"}
    compressor = zlib.compressobj(1, zlib.DEFLATED, 31)
    block = bytes(1 << 20)
    bomb = b"".join([compressor.compress(b"{"), *(compressor.compress(block) for _ in range(200)), compressor.flush()])
    yield "bomb", bomb, packed, {413}
    yield "members", gzip.compress(b"[" + bytes(1 << 16)) * 3200, packed, {413}
    yield "large", b"{" + b" " * (9 << 20), {}, {413}
    yield "deep", b"[" * (1 << 20), {}, {400, 413}
    yield "deep object", b'{"a":' * (1 << 20), {}, {400, 413}
    yield "lists", b"[" + b"[]," * (2 << 20) + b"1]", {}, {413}
    yield "lists in a record", b'{"a":[' + b"[]," * (2 << 20) + b"1]}", {}, {400}
    yield "NaN", b'{"question": NaN, "contexts": [], "answer": Infinity}', {}, {400}
    yield "digits", b'{"id": ' + b"9" * (1 << 20) + b"}", {}, {400}
    yield "empty lines", b"\n" * (8 << 20), {"Content-Type": "application/x-ndjson"}, {400}
    yield "small lines", b"{}\n" * (2 << 20), {"Content-Type": "application/x-ndjson"}, {413}
    yield "garbage", bytes(range(256)) * 4096, {}, {400}
    yield "type", b"{}", {"Content-Type": "text/html"}, {415}


@pytest.mark.costly
def test_x7_x8_hostile_bodies_take_little_memory(tmp_path: Path) -> None:
    """Each has the right status, memory rises by less than 50 MiB, and the daemon goes on."""
    with RagwatchProcess(write_config(tmp_path, sources=SOURCES)).wait_until_serving() as ragwatch:
        assert post(ragwatch.address, record(1).encode()) == 202
        Path(f"/proc/{ragwatch.process.pid}/clear_refs").write_text("5")  # the peak begins here
        before = ragwatch.memory()
        for name, body, headers, statuses in hostile():
            assert post(ragwatch.address, body, **headers) in statuses, name
            assert ragwatch.memory() - before < MAX_RISE, name
        assert post(ragwatch.address, record(2).encode()) == 202
        print(f"peak rises by {(ragwatch.memory() - before) / 2**20:.1f} MiB")
        ragwatch.wait_for(JUDGED, 2)


def test_the_helper_and_feedback(tmp_path: Path) -> None:
    """`ragwatch.emit` sends answers and what users say of them; both reach the figures."""
    with RagwatchProcess(write_config(tmp_path, sources=SOURCES)).wait_until_serving() as ragwatch:
        log = AnswerLog(f"{ragwatch.address}/v1/samples")
        ids = [
            log.answer("Where is the mill?", ["The old mill stands by the river."], "By the river.", route="search")
            for _ in range(3)
        ]
        log.feedback(ids[0], "up")
        log.feedback(ids[1], "down")
        assert log.flush(DEADLINE)
        series = ragwatch.wait_for('ragwatch_user_score_samples{route="search",window="15m"}', 2)
        assert (log.failed, log.dropped) == (0, 0)
        assert series['ragwatch_user_score_ratio{route="search",window="15m"}'] == 0.5
        series = ragwatch.wait_for(JUDGED, 3)
        assert series['ragwatch_feedback_total{outcome="joined",source="app"}'] == 2
