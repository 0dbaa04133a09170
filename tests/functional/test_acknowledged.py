"""Kill -9: what is acknowledged is counted once, pushed or traced over HTTP and gRPC; what is judged is exported."""

import gzip
import http.client
import json
import random
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from functional.daemon import JUDGED, RagwatchProcess, record, write_config
from support.otlp_backend import Fault, OtlpBackend
from support.patience import DEADLINE, wait_until
from support.programs import free_port
from support.spans import PROTOBUF, export_request, joined, openinference, single_spans

from ragwatch.sources.otlp.source import METHOD

Post = Callable[[bytes], None]
"""Sends a request; raises OSError if that has no success now."""


def some_records(rng: random.Random, first: int) -> tuple[int, list[bytes]]:
    """A few records in one request, and how many they are."""
    rows = [json.loads(record(first + place, route="shop")) for place in range(rng.randrange(1, 20))]
    return len(rows), [gzip.compress(json.dumps(rows).encode(), 1)]


def a_trace(rng: random.Random, number: int) -> tuple[int, list[bytes]]:
    """One trace in three requests, its spans in any order."""
    spans = single_spans(export_request(openinference()), number.to_bytes(16, "big"))
    spans = rng.sample(spans, len(spans))
    first, second = sorted(rng.sample(range(1, len(spans)), 2))
    parts = (spans[:first], spans[first:second], spans[second:])
    return 1, [joined(part).SerializeToString() for part in parts]


def over_http(path: str, headers: dict[str, str], port: int, _: int) -> Post:
    """Requests to a path."""

    def post(body: bytes) -> None:
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE) as reply:
                reply.read()
        except urllib.error.HTTPError as error:
            with error:
                if error.code not in (429, 503):
                    raise AssertionError(error.code) from None
            raise

    return post


def over_grpc(_: int, port: int) -> Post:
    """Calls of the service for traces."""
    grpc = pytest.importorskip("grpc", reason="needs the package grpcio: pip install 'ragwatch-exporter[grpc]'")
    backoff = [(f"grpc.{which}_reconnect_backoff_ms", 20) for which in ("initial", "min", "max")]
    channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=backoff)
    export = channel.unary_unary(METHOD)

    def call(body: bytes) -> None:
        try:
            export(body, timeout=DEADLINE, compression=grpc.Compression.Gzip)
        except grpc.RpcError as error:
            if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED):
                raise
            raise OSError(error.details()) from None

    return call


class Way(NamedTuple):
    """The source, what an application sends and how many samples that is, and how: by the ports of HTTP and gRPC."""

    source: str
    batch: Callable[[random.Random, int], tuple[int, list[bytes]]]
    post: Callable[[int, int], Post]


PACKED = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
WAYS = {
    "push": Way("{kind: push, name: app}", some_records, partial(over_http, "/v1/samples", PACKED)),
    "otlp-http": Way(
        "{kind: otlp, name: app, grace_seconds: 1.5}",
        a_trace,
        partial(over_http, "/v1/traces", {"Content-Type": PROTOBUF}),
    ),
    "otlp-grpc": Way(
        "{kind: otlp, name: app, grace_seconds: 1.5, grpc: {listen: '127.0.0.1:GRPC'}}", a_trace, over_grpc
    ),
}


class Application(threading.Thread):
    """Sends samples, each request until it is answered with success, as an SDK does, to a daemon that comes and goes.

    Attributes:
        acknowledged: Number of samples.
        retries: Number of requests that had no success.
    """

    def __init__(self, way: Way, post: Post, seed: int) -> None:
        super().__init__()
        self._way, self._post, self._seed = way, post, seed
        self._rng = random.Random(seed)
        self._ended = threading.Event()
        self.acknowledged = self.retries = 0

    def run(self) -> None:
        """Send until ended; what is under way is finished."""
        while not self._ended.wait(0.02):
            count, bodies = self._way.batch(self._rng, self._seed * 10**9 + self.acknowledged)
            for body in bodies:
                self._send(body)
            self.acknowledged += count

    def _send(self, body: bytes) -> None:
        end = time.monotonic() + DEADLINE
        while True:
            try:
                return self._post(body)
            except (OSError, http.client.HTTPException):  # refused, reset, 429 or 503; killed within its reply
                assert time.monotonic() < end, "no success for long"
                self.retries += 1
                time.sleep(0.02)

    def end(self) -> None:
        """Finish what is under way, and stop."""
        self._ended.set()
        self.join()


@pytest.mark.parametrize(
    ("name", "kills"),
    [
        *(pytest.param(name, 1 + (name != "otlp-grpc"), marks=pytest.mark.costly) for name in WAYS),
        *(pytest.param(name, 40, marks=pytest.mark.slow) for name in WAYS),
    ],
)
def test_acknowledged_is_counted_once(tmp_path: Path, name: str, kills: int) -> None:
    """Kill -9 while applications send: each record or trace that was acknowledged whole is one sample."""
    way, port, grpc_port = WAYS[name], free_port(), free_port()
    config = write_config(
        tmp_path,
        web=f"{{listen: '127.0.0.1:{port}'}}",
        routes="[shop]",
        sources=f"[{way.source.replace('GRPC', str(grpc_port))}]",
    )
    rng = random.Random(kills)
    applications = [Application(way, way.post(port, grpc_port), seed) for seed in (1, 2)]
    for application in applications:
        application.start()
    try:
        for _ in range(kills):
            with RagwatchProcess(config).wait_until_serving() as ragwatch:
                time.sleep(rng.uniform(0.2, 0.8))
                ragwatch.kill()
        with RagwatchProcess(config).wait_until_serving() as ragwatch:
            for application in applications:
                application.end()
            sent = sum(application.acknowledged for application in applications)
            series = ragwatch.wait_for('ragwatch_samples_drawn_total{route="shop"}', sent)
            print(f"{kills} kills: {sent} acknowledged, {sum(one.retries for one in applications)} requests sent again")
            assert series['ragwatch_requests_seen_total{source="app"}'] == sent > 0
            assert series.get('ragwatch_requests_rejected_total{reason="truncated",source="app"}', 0) == 0
            ragwatch.wait_for('ragwatch_samples_judged_total{judge="embedded",route="shop"}', sent)
    finally:
        for application in applications:
            application.end()


ROUNDS, EACH, BATCH = 2, 30, 10


def _arrived(backend: OtlpBackend) -> set[str]:
    """Traces that have an event and a span."""
    return {one.trace_id.hex() for one in backend.logs()} & {one.links[0].trace_id.hex() for one in backend.spans()}


@pytest.mark.costly
def test_every_verdict_is_exported(tmp_path: Path) -> None:
    """Killed in the middle of requests: each answer has its event and its span, and few are sent twice."""
    backend = OtlpBackend()
    export = f"{{otlp: {{endpoint: '{backend.url}', quantities: [faithfulness], batch: {BATCH}, timeout: 60s}}}}"
    config = write_config(tmp_path, export=export)
    wanted: set[str] = set()
    for turn in range(ROUNDS):
        last = turn == ROUNDS - 1
        backend.faults = [] if last else [Fault(), Fault(hangs=True), Fault(hangs=True)]
        numbers = range(turn * EACH + 1, (turn + 1) * EACH + 1)
        wanted |= {f"{number:032x}" for number in numbers}
        with RagwatchProcess(config).wait_until_serving() as ragwatch:
            with (tmp_path / "log" / "app.jsonl").open("a") as file:
                file.writelines(
                    record(number, metadata={"trace_id": f"{number:032x}", "span_id": f"{number:016x}"}) + "\n"
                    for number in numbers
                )
            ragwatch.wait_for(JUDGED, float((turn + 1) * EACH))  # while requests hang
            wait_until(lambda: wanted <= _arrived(backend) if last else not backend.faults, "the requests have come")  # noqa: B023
            ragwatch.kill()
    events = Counter(one.trace_id.hex() for one in backend.logs())
    spans = Counter(one.links[0].trace_id.hex() for one in backend.spans())
    backend.close()
    assert set(events) == set(spans) == wanted
    assert (events + spans).total() <= 2 * len(wanted) + ROUNDS * 2 * BATCH
    assert len({one.span_id for one in backend.spans()}) == len(wanted)
