"""Export loops of a configuration: one for each form, none without an export, and what they are told of judges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.exporting import traced
from support.kit import AT, Clock, an_admission
from support.otlp_backend import OtlpBackend, plain

from ragwatch.board import Board
from ragwatch.config import parse
from ragwatch.daemon.runtime import Runtime, build
from ragwatch.daemon.shared import SharedState
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry


def runtime(folder: Path, store: SqliteStore, telemetry: Telemetry, **otlp: Any) -> Runtime:
    """The runtime of a configuration with this export."""
    raw = {
        "routes": ["search"],
        "sources": [{"kind": "push", "name": "app"}],
        "judges": [{"name": "embedded", "kind": "lexical", "quantities": ["faithfulness"]}],
        "thresholds": {"faithfulness": 0.5, "routes": {"search": {"faithfulness": None}}},
        **({"export": {"otlp": otlp}} if otlp else {}),
    }
    return build(parse(raw, folder=folder), SharedState(store, Board(), telemetry, Clock(AT + 60)), lambda: ())


async def test_one_loop_for_each_form(tmp_path: Path, store: SqliteStore, telemetry: Telemetry) -> None:
    """Events come with what the judge judges, and with the thresholds of the route; without the section nothing is."""
    backend = OtlpBackend()
    built = runtime(tmp_path, store, telemetry, endpoint=backend.url)
    verdict = traced()
    store.admit(an_admission(verdict.draw))
    store.settle([verdict])
    for export in built.exports:
        await export.step()
    await built.close()
    (event,) = backend.logs()
    backend.close()
    assert [export.signal for export in built.exports] == ["logs", "spans"]
    assert plain(event.attributes)["gen_ai.evaluation.name"] == "faithfulness"
    assert "gen_ai.evaluation.score.label" not in plain(event.attributes)
    plainly = runtime(tmp_path, store, telemetry)
    await plainly.close()
    assert plainly.exports == ()
