"""Watchers: they begin and go on where the store can be read but not written."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit import AT, Clock
from structlog.testing import LogCapture

from ragwatch.board import Board
from ragwatch.config import parse
from ragwatch.daemon.runtime import Runtime, build
from ragwatch.daemon.shared import SharedState
from ragwatch.errors import StoreError
from ragwatch.pipeline.drift.scores import KIND
from ragwatch.pipeline.drift.traffic import KIND as TRAFFIC
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry


def rooms(folder: Path, store: SqliteStore, telemetry: Telemetry, support: float) -> Runtime:
    """A set of rooms, as a reload builds it."""
    data = {
        "sources": [{"kind": "tail", "name": "app", "path": str(folder / "app.jsonl")}],
        "judges": [{"name": "embedded", "kind": "lexical", "support": support}],
    }
    return build(parse(data, folder=folder), SharedState(store, Board(), telemetry, Clock(AT)), tuple)


@pytest.mark.parametrize("lived", [False, True])
async def test_what_cannot_be_noted_ends_nobody(
    tmp_path: Path, store: SqliteStore, telemetry: Telemetry, log: LogCapture, *, lived: bool
) -> None:
    """On a full disk a start, or a reload with another judge, goes on; what is new is noted once there is room."""
    if lived:
        first = rooms(tmp_path, store, telemetry, 0.5)
        first.resume(store)
        first.watchers.drift._keep()
    store._writer.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError):
        store.remember("anything", {})
    second = rooms(tmp_path, store, telemetry, 0.9)
    second.resume(store)
    assert [each["kind"] for each in log.entries if each["event"] == "event"] == ["judge"] * lived
    store._writer.execute("PRAGMA query_only = OFF")
    again = rooms(tmp_path, store, telemetry, 0.9)
    again.resume(store)
    assert (store.recall(TRAFFIC) is not None, len(store.events(0.0))) == (True, int(lived))
    assert (store.recall(KIND) or {}).get("version") == (again.watchers.drift.rules.version if lived else None)
