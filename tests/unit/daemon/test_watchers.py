"""Drift detection starts and continues when the store can be read but not written."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import LogCapture
from support.kit import AT, Clock

from ragwatch.board import Board
from ragwatch.config import parse
from ragwatch.daemon.runtime import Runtime, build
from ragwatch.daemon.shared import SharedState
from ragwatch.errors import StoreError
from ragwatch.pipeline.drift.scores import KIND
from ragwatch.pipeline.drift.traffic import KIND as TRAFFIC
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry


def runtime(folder: Path, store: SqliteStore, telemetry: Telemetry, support: float) -> Runtime:
    """Build a runtime, as a reload does."""
    data = {
        "sources": [{"kind": "tail", "name": "app", "path": str(folder / "app.jsonl")}],
        "judges": [{"name": "embedded", "kind": "lexical", "support": support}],
    }
    return build(parse(data, folder=folder), SharedState(store, Board(), telemetry, Clock(AT)), tuple)


@pytest.mark.parametrize("lived", [False, True])
async def test_a_full_disk_does_not_stop_drift_detection(
    tmp_path: Path, store: SqliteStore, telemetry: Telemetry, log: LogCapture, *, lived: bool
) -> None:
    """On a full disk a start, or a reload with another judge, succeeds; changes are stored when space is free."""
    if lived:
        first = runtime(tmp_path, store, telemetry, 0.5)
        first.resume(store)
        first.watchers.drift._save()
    store.engine._writer.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError):
        store.remember("anything", {})
    second = runtime(tmp_path, store, telemetry, 0.9)
    second.resume(store)
    assert [entry["kind"] for entry in log.entries if entry["event"] == "event"] == ["judge"] * lived
    store.engine._writer.execute("PRAGMA query_only = OFF")
    again = runtime(tmp_path, store, telemetry, 0.9)
    again.resume(store)
    assert (store.recall(TRAFFIC) is not None, len(store.events(0.0))) == (True, int(lived))
    assert (store.recall(KIND) or {}).get("version") == (again.watchers.drift.rules.version if lived else None)
