"""Traces of real frameworks become one right sample each, however they arrive, and whenever ragwatch is killed."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from support.kit import JUDGE, Clock
from support.spans import JSON, PROTOBUF, a_request, joined, json_of, single_spans

from ragwatch.formats import canonical
from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.model.sample import Context, Sample
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules
from ragwatch.ports import LoopContext
from ragwatch.sources.otlp.options import Options
from ragwatch.sources.otlp.source import OtlpSource
from ragwatch.statistics.sampling import SamplingPlan
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
        reader = LogReader(RecordRules("canonical"))
        reader.read = self._read
        self.intake = IntakeLoop(self.source, reader, rules, LoopContext(self.store, Telemetry(), self.clock))

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
    for kind, kills in ((PROTOBUF, True), (JSON, False)):
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
    assert len(samples) == 2 * 3 + 1
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
