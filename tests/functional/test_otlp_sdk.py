"""The real OpenTelemetry SDK with its OTLP exporters, and real instrumentations, end to end into the store."""

import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from functional.daemon import RagwatchProcess, write_config
from support.patience import DEADLINE

from ragwatch.formats import canonical
from ragwatch.model.sample import Context
from ragwatch.ports import Query
from ragwatch.stores.sqlite.store import SqliteStore

ROOT = Path(__file__).parents[2]
TRACERS = ROOT / ".venv" / "tracers" / "bin" / "python"
SOURCES = {
    "http": "[{kind: otlp, name: traces, grace_seconds: 0.5, route: service.name}]",
    "grpc": "[{kind: otlp, name: traces, grace_seconds: 0.5, route: service.name, grpc: {listen: '127.0.0.1:0'}}]",
}
TEXTS = ("Paris is the capital of France.\n\nIt lies on the Seine.", "Lyon is a city in France.")


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize(
    ("service", "answer"), [("langchain_service", "Paris."), ("llamaindex_service", "text text text text")]
)
def test_a_traced_service_becomes_samples(tmp_path: Path, service: str, answer: str, protocol: str) -> None:
    """Question, answer and contexts of a service that is only traced are judged, with ids and texts."""
    if not TRACERS.exists():
        pytest.skip("needs the services of tests/traced/tracers.lock: make .venv/tracers.stamp")
    if protocol == "grpc":
        pytest.importorskip("grpc", reason="needs the package grpcio: pip install 'ragwatch-exporter[grpc]'")
    config = write_config(tmp_path, routes="[shop]", sources=SOURCES[protocol])
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        calls = [str(event["address"]) for event in ragwatch.log if event.get("source") == "traces"]
        address = calls[0] if calls else f"{ragwatch.address}/v1/traces"
        command = [str(TRACERS), f"{service}.py", address]
        subprocess.run(command, cwd=ROOT / "tests" / "traced", check=True, timeout=DEADLINE)
        ragwatch.wait_for('ragwatch_samples_judged_total{judge="embedded",route="shop"}', 1)
        assert ragwatch.series()['ragwatch_otlp_requests_total{outcome="assembled",source="traces"}'] == 1
    with closing(SqliteStore(tmp_path / "state")) as store:
        (stored,) = store.find(Query(limit=2))
    assert stored.sample is not None
    sample = canonical.read(stored.sample, "")
    assert (sample.question, sample.answer) == ("What is the capital of France?", answer)
    contexts = [Context(context.text, context.id) for context in sample.contexts]
    assert sorted(contexts, reverse=True) == [Context(TEXTS[0], "d0"), Context(TEXTS[1], "d1")]
    assert sample.trace_id == sample.id
