"""What `ragwatch check` says of traces that were received so far."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from support.command_line import findings
from support.kit import an_admission

from ragwatch.core.tally import Tally, TallyKey
from ragwatch.stores.sqlite.store import SqliteStore

ASSEMBLED, REFUSED = (Tally.TRACES, ("traces", "assembled")), (Tally.TRACES, ("traces", "refused"))


def test_where_calls_are_received_and_whether_anybody_may_send(tmp_path: Path) -> None:
    """The address over gRPC is tested; a source to which nobody may send is a warning that says what to write."""
    pytest.importorskip("grpc", reason="needs the package grpcio: pip install 'ragwatch-exporter[grpc]'")
    sources = [{"kind": "otlp", "name": "traces", "grpc": {"listen": "127.0.0.1:0"}}]
    states = findings(tmp_path, sources=sources)
    assert states["sources.traces.grpc"].detail == "127.0.0.1:0 is free"
    assert "calls over gRPC at 127.0.0.1:0" in states["sources[0]"].detail
    web = {"listen": "127.0.0.1:0", "tokens": [{"name": "ci", "token": "0" * 16, "rights": ["write"]}]}
    refused = findings(tmp_path, sources=sources, web=web)["sources[0]"]
    assert refused.state == "warning"
    assert "rights: [ingest]" in refused.detail


@pytest.mark.parametrize(
    ("tallies", "state", "says"),
    [
        (None, "ok", "no request in a trace is complete yet"),
        ({ASSEMBLED: 1200, REFUSED: 3}, "ok", "requests in traces: 1,200 assembled, 3 refused"),
        ({(Tally.TRACES, ("traces", "unrelated")): 7}, "warning", "7 unrelated"),
        ({ASSEMBLED: 1, (Tally.SILENT, ("traces", "traceloop")): 2}, "warning", ("2 hold no texts, because content "
         "capture is off: set TRACELOOP_TRACE_CONTENT=true")),
    ],
)  # fmt: skip
def test_traces_so_far(tmp_path: Path, tallies: dict[TallyKey, float] | None, state: str, says: str) -> None:
    """Counts by outcome, and the switch of each instrumentation that sends no texts; before any, that it waits."""
    if tallies is not None:
        store = SqliteStore(tmp_path / "state")
        store.admit(an_admission(tallies=Counter(tallies)))
        store.close()
    finding = findings(tmp_path, sources=[{"kind": "otlp", "name": "traces"}])["sources[0]"]
    assert finding.state == state
    assert says in finding.detail
