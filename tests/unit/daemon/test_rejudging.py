"""What is behind `POST /v1/rejudge`: a judge of the daemon reads stored answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.kit import a_draw, a_verdict, an_admission

from ragwatch.config import load
from ragwatch.daemon import Daemon
from ragwatch.daemon.actions import rejudge_with
from ragwatch.errors import ConfigError
from ragwatch.pipeline.rejudging import outcome_of
from ragwatch.ports import Query
from ragwatch.web import ParameterError

FIELDS: dict[str, Any] = {
    "judge": "second",
    "of": "embedded",
    "share": 0.5,
    "keys": (a_draw("a").key, a_draw("b").key),
    "charted_before": 0.0,
}


def a_daemon(folder: Path, texts: str = "all") -> Daemon:
    """A daemon with two judges, which does not run, and with one answer that the first one has read."""
    path = folder / "ragwatch.yaml"
    path.write_text(
        f"state: {folder}/state\nweb: {{listen: '127.0.0.1:0'}}\nstore: {{kind: sqlite, texts: {texts}}}\n"
        f"sources: [{{kind: tail, name: app, path: '{folder}/*.jsonl'}}]\n"
        "judges: [{name: embedded, kind: lexical}, {name: second, kind: lexical, probability: 0.1}]\n"
    )
    daemon = Daemon(load(path), path=path)
    daemon.store.admit(an_admission(a_draw("a")))
    daemon.store.settle([a_verdict(a_draw("a"))])
    return daemon


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[Daemon]:
    """One that keeps all texts."""
    one = a_daemon(tmp_path)
    yield one
    await one.runtime.close()
    one.store.close()


async def test_the_judge_in_force_reads(daemon: Daemon) -> None:
    """The share is part of the stored probability; what is not there is left out."""
    reply = await rejudge_with(daemon.in_force, daemon.store, daemon.telemetry)(FIELDS)
    outcome = outcome_of(reply)
    assert (outcome.stored, outcome.skipped, outcome.left) == (1, 1, ())
    (row,) = daemon.store.find(Query(judge="second"))
    assert row.verdict.probability == 0.5


async def test_a_judge_must_be_configured(daemon: Daemon) -> None:
    """The names are listed."""
    with pytest.raises(ParameterError, match="judge: 'third' is not configured; use one of: embedded, second"):
        await rejudge_with(daemon.in_force, daemon.store, daemon.telemetry)({**FIELDS, "judge": "third"})


async def test_texts_must_be_kept(tmp_path: Path) -> None:
    """As for the command."""
    daemon = a_daemon(tmp_path, "failing")
    with pytest.raises(ConfigError, match="is failing, and rejudging needs"):
        await rejudge_with(daemon.in_force, daemon.store, daemon.telemetry)(FIELDS)
    await daemon.runtime.close()
    daemon.store.close()
