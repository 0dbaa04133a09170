"""Intake of OTLP traces: decode + hold + assemble + admit + release, beside the bare parsing of the same protobuf.

Each request holds nine spans of one trace, as LangChain under OpenInference sends them. Prints traces a second of both,
their ratio (medians of interleaved rounds), and where the rest goes.
"""

import argparse
import asyncio
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import orjson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ragwatch.formats.log_reader import LogReader, RecordRules
from ragwatch.formats.traces.assemble import assemble
from ragwatch.formats.traces.span import unpacked
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules
from ragwatch.ports import LoopContext
from ragwatch.ports.sources import IncomingRequest
from ragwatch.redaction.redactor import Redactor
from ragwatch.sources.otlp.protobuf_request import spans_of
from ragwatch.sources.otlp.source import Options, OtlpSource
from ragwatch.sources.otlp.waiting import pieces_of
from ragwatch.statistics.sampling import SamplingPlan
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

FLOOR = 300.0
"""Traces a second on one core."""
CLIENTS = 16
PASSAGE = "The river bends below an old mill where water turned stone for two hundred years before it fell silent. " * 6
KINDS = ("CHAIN", "CHAIN", "CHAIN", "RETRIEVER", "CHAIN", "CHAIN", "PROMPT", "LLM", "CHAIN")
PARENTS = (-1, 0, 1, 2, 2, 1, 0, 0, 0)


def request(number: int) -> bytes:
    """One export request: a trace of nine spans with five contexts of some 650 characters, as protobuf."""
    export = ExportTraceServiceRequest()
    resource = export.resource_spans.add()
    _set(resource.resource.attributes, {"service.name": "search", "telemetry.sdk.language": "python"})
    scope = resource.scope_spans.add()
    scope.scope.name = "openinference.instrumentation.langchain"
    trace_id = (number + 1).to_bytes(16, "big")
    context = "\n\n".join(f"{rank}{number} {PASSAGE}" for rank in range(5))
    question = f"What happened to mill {number}?"
    for index, kind in enumerate(KINDS):
        span = scope.spans.add(name=kind.lower(), trace_id=trace_id, span_id=(index + 1).to_bytes(8, "big"), flags=256)
        if PARENTS[index] >= 0:
            span.parent_span_id = (PARENTS[index] + 1).to_bytes(8, "big")
        span.start_time_unix_nano = 1_700_000_000_000_000_000 + index
        span.end_time_unix_nano = 1_700_000_000_900_000_000 - index
        _set(
            span.attributes,
            {"openinference.span.kind": kind, "input.value": question} | _content(kind, number, context),
        )
    return export.SerializeToString()


def _content(kind: str, number: int, context: str) -> dict[str, str]:
    if kind == "RETRIEVER":
        documents = [f"{rank}{number} {PASSAGE}" for rank in range(5)]
        return {f"retrieval.documents.{rank}.document.content": text for rank, text in enumerate(documents)} | {
            f"retrieval.documents.{rank}.document.id": f"d{number}-{rank}" for rank in range(5)
        }
    if kind == "LLM":
        return {
            "llm.input_messages.0.message.role": "system",
            "llm.input_messages.0.message.content": f"Answer from context:\n{context}",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": PASSAGE[:450],
        }
    return {"output.value": PASSAGE[:450] if kind == "CHAIN" else context}


def _set(attributes: object, values: dict[str, str]) -> None:
    for key, value in values.items():
        attributes.add(key=key).value.string_value = value  # type: ignore[attr-defined]


def bare(bodies: list[bytes]) -> int:
    """The floor."""
    seen = 0
    for body in bodies:
        export = ExportTraceServiceRequest()
        export.ParseFromString(body)
        seen += len(export.resource_spans)
    return seen


def intake(bodies: list[bytes], state: Path) -> int:
    """Our whole way, from the body of a request to the committed record and the reply. Returns the records."""
    return asyncio.run(_intake(bodies, state))


async def _intake(bodies: list[bytes], state: Path) -> int:
    store = SqliteStore(state)
    source = OtlpSource(Options(name="traces", grace_seconds=0.2))
    rules = IntakeRules(
        SamplingPlan(0.01, known_routes=frozenset({"search"})), {"embedded": 1.0}, Redactor(), max_pending=10**9
    )
    loop = IntakeLoop(source, LogReader(RecordRules("canonical")), rules, LoopContext(store, Telemetry(), time.time))
    handle = source.handlers["/v1/traces"]
    waiting = iter(bodies)
    headers = {"content-type": "application/x-protobuf"}

    async def client() -> None:
        for body in waiting:
            reply = await handle(IncomingRequest("/v1/traces", headers, _chunks(body)))
            if reply.status != 200:
                raise SystemExit(f"a request was answered with {reply.status}")

    clients = asyncio.gather(*(client() for _ in range(CLIENTS)))
    while not clients.done() or _assembled(store) < len(bodies):
        if not await loop.step():
            await asyncio.sleep(0.001)
    await clients
    seen = _assembled(store)
    source.close()
    store.close()
    return seen


async def _chunks(body: bytes):  # type: ignore[no-untyped-def]  # noqa: ANN202
    yield body


def _assembled(store: SqliteStore) -> int:
    return sum(int(value) for (tally, _), value in store.tallies().items() if tally == "seen")


def rate(work: Callable[[], int], traces: int) -> tuple[float, float]:
    """Traces a second of one round, by the clock and by the CPU time of all threads."""
    start, used = time.perf_counter(), time.process_time()
    if work() != traces:
        raise SystemExit("a round lost traces")
    return traces / (time.perf_counter() - start), traces / (time.process_time() - used)


def shares(bodies: list[bytes]) -> list[tuple[str, float]]:
    """Microseconds a trace of each part alone."""
    parts = []
    start = time.process_time()
    decoded = [spans_of(body).spans for body in bodies]
    parts.append(("decode", time.process_time() - start))
    start = time.process_time()
    payloads = [pieces_of(spans)[0].payload for spans in decoded]
    parts.append(("pack", time.process_time() - start))
    start = time.process_time()
    restored = [unpacked(payload) for payload in payloads]
    parts.append(("unpack", time.process_time() - start))
    start = time.process_time()
    for spans in restored:
        orjson.dumps(assemble(spans).records)
    parts.append(("assemble", time.process_time() - start))
    return [(name, seconds / len(bodies) * 1e6) for name, seconds in parts]


def main() -> None:
    """Run and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--traces", type=int, default=3_000)
    options.add_argument("--rounds", type=int, default=3)
    chosen = options.parse_args()
    bodies = [request(number) for number in range(chosen.traces)]
    folder = Path(tempfile.mkdtemp(prefix="ragwatch-bench-"))
    try:
        floors, clocks, cores = [], [], []
        for number in range(chosen.rounds):
            floors.append(rate(lambda: bare(bodies), chosen.traces)[1])
            state = folder / f"state{number}"
            by_clock, by_core = rate(lambda state=state: intake(bodies, state), chosen.traces)  # type: ignore[misc]
            clocks.append(by_clock)
            cores.append(by_core)
        low, high = statistics.median(floors), statistics.median(cores)
        size = sum(map(len, bodies)) / len(bodies)
        print(
            f"{chosen.traces} traces of nine spans and {size:.0f} bytes, medians of {chosen.rounds} interleaved rounds"
        )
        print(f"bare protobuf parsing  {low:>10,.0f} traces/s of one core  {1e6 / low:7.1f} us a trace")
        print(f"intake                 {high:>10,.0f} traces/s of one core  {1e6 / high:7.1f} us a trace")
        print(f"intake, by the clock   {statistics.median(clocks):>10,.0f} traces/s")
        print(f"ratio                  {high / low:>10.3f}")
        known = shares(bodies)
        for name, cost in known:
            print(f"  of which {name:<12}{cost:9.1f} us")
        print(f"  the rest (queue, store, admit){1e6 / high - sum(cost for _, cost in known):9.1f} us")
        if high < FLOOR:
            raise SystemExit(f"intake is slower than {FLOOR:g} traces a second of one core")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
