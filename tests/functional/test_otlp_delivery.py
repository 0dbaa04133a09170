"""Traces of real frameworks become one right sample each, however they arrive, and whenever ragwatch is killed."""

from __future__ import annotations

import asyncio
import random
import threading
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from functional.daemon import RagwatchProcess, write_config
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from support.kit import JUDGE, Clock
from support.patience import DEADLINE
from support.ports import free_port
from support.spans import JSON, PROTOBUF, a_request, export_request, joined, json_of, single_spans
from support.traces import openinference

from ragwatch.core.sample import Context, Sample
from ragwatch.core.sampling import SamplingPlan
from ragwatch.formats import canonical
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules
from ragwatch.sources.otlp.handler import METHOD
from ragwatch.sources.otlp.options import Options
from ragwatch.sources.otlp.source import OtlpSource
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

FIXTURES = Path(__file__).resolve().parents[3] / "shared" / "data" / "otlp"
GRACE = 10.0
QUESTION = "What is the capital of France?"
PARIS, LYON = "Paris is the capital of France.", "Lyon is a city."
EXPECTED = {
    "haystack_oi": ("Paris.", (Context(PARIS, "d1", 3.5257452193016166), Context(LYON, "d2", 0.24056316521424564))),
    "langchain_oi": ("Paris.", (Context(PARIS, "d1", 0.91), Context(LYON))),
    "langchain_real_gen": ("Paris.", (Context(PARIS, "d1", 0.91), Context(LYON))),
    "langchain_tl": ("Paris.", (Context(PARIS, None, 0.91), Context(LYON))),
    "llamaindex_oi": (" ".join(["text"] * 8), (Context(PARIS, "n1", 1.0), Context(LYON, "n2", 1.0))),
}


class Receiver:
    """A source with its intake and a real store, whose process can be replaced between any two requests."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.store = SqliteStore(folder / "state")
        self.samples: list[Sample] = []
        self.restart()

    def restart(self) -> None:
        """What was in memory is lost; the store is not."""
        self.source = OtlpSource(Options(name="traces", grace_seconds=GRACE), self.clock)
        self.source.resume(self.store.cursors("traces"))
        self.source.restore(self.store.parts("traces"))
        rules = IntakeRules(SamplingPlan(1.0), {JUDGE: 1.0}, None, max_pending=10**6)
        self.intake = IntakeLoop(
            self.source, self._read, rules, store=self.store, telemetry=Telemetry(), clock=self.clock
        )

    def _read(self, record: dict[str, object], fallback: str) -> Sample:
        sample = canonical.read(record, fallback)
        self.samples.append(sample)
        return sample

    async def send(self, body: bytes, kind: str) -> None:
        """A request, answered with success after it is stored."""
        task = asyncio.ensure_future(self.source.handlers["/v1/traces"](a_request(body, kind)))
        await self.source.wake.wait()
        self.source.wake.clear()
        while await self.intake.step():
            pass
        assert (await task).status == 200

    async def assembled(self) -> list[Sample]:
        """The samples since the last call, once every trace is complete."""
        self.clock.now += GRACE
        while await self.intake.step():
            pass
        samples, self.samples = self.samples, []
        return samples


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    """A receiver with an empty store."""
    made = Receiver(tmp_path)
    yield made
    made.store.close()


def ways(spans: list[ExportTraceServiceRequest], rng: random.Random) -> Iterator[list[ExportTraceServiceRequest]]:
    """Requests with these spans: whole, one by one in random order, and in batches of some."""
    yield [joined(spans)]
    for size in (1, 3):
        shuffled = rng.sample(spans, len(spans))
        yield [joined(shuffled[begin : begin + size]) for begin in range(0, len(shuffled), size)]


@pytest.mark.parametrize("name", EXPECTED)
async def test_every_trace_becomes_the_same_sample(receiver: Receiver, name: str) -> None:
    """Both encodings, whole, span by span in random order, in batches, killed in between or not: field by field."""
    path = FIXTURES / f"{name}.otlp.pb"
    if not path.exists():
        pytest.skip(f"needs ../shared/data/otlp/{path.name}")
    rng = random.Random(name)
    whole = ExportTraceServiceRequest.FromString(path.read_bytes())
    answer, contexts = EXPECTED[name]
    samples, number = [], 0
    for kind in (PROTOBUF, JSON):
        for kills in (False, True):
            number += 16
            for offset, requests in enumerate(ways(single_spans(whole, number.to_bytes(16, "big")), rng)):
                trace_id = (number + offset).to_bytes(16, "big")
                for request in requests:
                    for resource in request.resource_spans:
                        resource.scope_spans[0].spans[0].trace_id = trace_id
                    body = request.SerializeToString() if kind == PROTOBUF else json_of(request)
                    await receiver.send(body, kind)
                    if kills:
                        receiver.restart()
                        await receiver.send(body, kind)  # the client has not seen the reply
                (sample,) = await receiver.assembled()
                assert (sample.id, sample.trace_id) == (trace_id.hex(), trace_id.hex())
                samples.append(sample)
    for kind, ending in ((PROTOBUF, "pb"), (JSON, "json")):  # the files as they are: one sample, not two
        await receiver.send((FIXTURES / f"{name}.otlp.{ending}").read_bytes(), kind)
    samples += await receiver.assembled()
    assert len(samples) == 4 * 3 + 1
    assert receiver.store.pending() == {JUDGE: len(samples)}
    for sample in samples:
        plain = tuple(context._replace(step=None) for context in sample.contexts)
        assert (sample.question, sample.answer, plain) == (QUESTION, answer, contexts)
        assert [context.step for context in sample.contexts] == [context.step for context in samples[0].contexts]
        fixed = {key: value for key, value in sample.metadata.items() if key != "trace_id"}
        assert (sample.at, sample.route, sample.history, fixed) == (
            samples[0].at,
            "demo-rag",
            (),
            {key: value for key, value in samples[0].metadata.items() if key != "trace_id"},
        )


class Client(threading.Thread):
    """An application whose SDK sends each request until it is answered with success."""

    def __init__(self, post: Callable[[bytes], None], seed: int) -> None:
        super().__init__()
        self._post = post
        self._seed = seed
        self._rng = random.Random(seed)
        self._ended = threading.Event()
        self.acknowledged = 0
        self.retries = 0

    def run(self) -> None:
        """Send traces, each in up to three requests, until ended."""
        whole = export_request(openinference())
        number = 0
        while not self._ended.is_set():
            number += 1
            spans = single_spans(whole, (self._seed * 10**9 + number).to_bytes(16, "big"))
            spans = self._rng.sample(spans, len(spans))
            cuts = sorted(self._rng.sample(range(1, len(spans)), 2))
            for some in (spans[: cuts[0]], spans[cuts[0] : cuts[1]], spans[cuts[1] :]):
                self._send(joined(some).SerializeToString())
            self.acknowledged += 1

    def _send(self, body: bytes) -> None:
        end = time.monotonic() + DEADLINE
        while True:
            try:
                self._post(body)
            except OSError:  # refused, reset, 429 or 503: as an SDK does
                assert time.monotonic() < end, "no success for long"
                self.retries += 1
                time.sleep(0.02)
            else:
                return

    def end(self) -> None:
        """Finish the trace under way, and stop."""
        self._ended.set()
        self.join()


def over_http(port: int) -> Callable[[bytes], None]:
    """A function that sends a request over HTTP; it raises OSError if that has no success."""

    def post(body: bytes) -> None:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/traces", body, {"Content-Type": PROTOBUF})
        with urllib.request.urlopen(request, timeout=DEADLINE) as reply:
            assert reply.status == 200

    return post


def over_grpc(port: int) -> Callable[[bytes], None]:
    """A function that sends a request over gRPC; it raises OSError if that has no success."""
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


PROTOCOLS = {"http": over_http, "grpc": over_grpc}


@pytest.mark.parametrize(
    ("protocol", "kills", "clients"),
    [
        *(pytest.param(name, kills, 2, marks=pytest.mark.costly) for name, kills in (("http", 2), ("grpc", 1))),
        *(pytest.param(name, 40, 3, marks=pytest.mark.slow) for name in PROTOCOLS),
    ],
)
def test_acknowledged_is_counted_once(tmp_path: Path, protocol: str, kills: int, clients: int) -> None:
    """Kill -9 while applications send: each trace whose requests were all acknowledged is one sample."""
    ports = {name: free_port() for name in PROTOCOLS}
    grpc = f", grpc: {{listen: '127.0.0.1:{ports['grpc']}'}}" if protocol == "grpc" else ""
    config = write_config(
        tmp_path,
        web=f"{{listen: '127.0.0.1:{ports['http']}'}}",
        routes="[shop]",
        sources=f"[{{kind: otlp, name: traces, grace_seconds: 1.5{grpc}}}]",
    )
    rng = random.Random(kills)
    threads = [Client(PROTOCOLS[protocol](ports[protocol]), seed) for seed in range(1, clients + 1)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(kills):
            with RagwatchProcess(config).wait_until_serving() as ragwatch:
                time.sleep(rng.uniform(0.2, 0.8))
                ragwatch.kill()
        with RagwatchProcess(config).wait_until_serving() as ragwatch:
            for thread in threads:
                thread.end()
            sent = sum(thread.acknowledged for thread in threads)
            series = ragwatch.wait_for('ragwatch_samples_drawn_total{route="shop"}', sent)
            print(
                f"{kills} kills: {sent} traces acknowledged, {sum(one.retries for one in threads)} requests sent again"
            )
            assert series['ragwatch_requests_seen_total{source="traces"}'] == sent > 0
            assert series['ragwatch_requests_rejected_total{reason="truncated",source="traces"}'] == 0
            ragwatch.wait_for('ragwatch_samples_judged_total{judge="embedded",route="shop"}', sent)
    finally:
        for thread in threads:
            thread._ended.set()


@pytest.mark.costly
def test_hostile_requests_over_http(tmp_path: Path) -> None:
    """A bomb, garbage, deep JSON, a body beyond the limit: their status, little memory, and the service stays up."""
    config = write_config(tmp_path, sources="[{kind: otlp, name: traces}]")
    packer = zlib.compressobj(1, wbits=31)
    bomb = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(200)) + packer.flush()
    cases = [
        (413, bomb, {"Content-Type": JSON, "Content-Encoding": "gzip"}),
        (413, b" " * (30 << 20), {"Content-Type": JSON}),
        (400, b"garbage", {"Content-Type": PROTOBUF}),
        (400, b'{"resourceSpans":' + b"[" * 1_000_000, {"Content-Type": JSON}),
        (415, b"{}", {"Content-Type": "text/plain"}),
        (200, b"", {"Content-Type": PROTOBUF}),
    ]
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        ragwatch.get("/metrics")
        before = ragwatch.memory()
        for status, body, headers in cases:
            request = urllib.request.Request(f"{ragwatch.address}/v1/traces", body, headers)
            try:
                reply = urllib.request.urlopen(request, timeout=DEADLINE)
            except urllib.error.HTTPError as error:
                reply = error
            with reply:
                assert (reply.status, bool(reply.read())) == (status, status != 200)
        assert ragwatch.memory() - before < 50 << 20
        assert ragwatch.get("/-/healthy")[0] == 200
