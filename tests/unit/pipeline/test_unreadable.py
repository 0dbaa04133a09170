"""Unreadable files: files that cannot be read while others can are logged once for each change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from structlog.testing import LogCapture
from support.kit import AT, JUDGE, Clock, ListSource

from ragwatch.core.sampling import SamplingPlan
from ragwatch.core.snapshot import Lag
from ragwatch.formats import canonical
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules
from ragwatch.pipeline.unreadable_files import SETTLE_SECONDS, UnreadableFiles
from ragwatch.sources.tail.source import Options, TailSource
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

DENIED, SICK = {"a": "Permission denied"}, {"a": "Input/output error"}


def told(log: LogCapture) -> list[tuple[str, Any]]:
    """What the log says of files, and of which."""
    return [(entry["event"], entry["first"]) for entry in log.entries]


def test_once_for_each_change(telemetry: Telemetry, log: LogCapture) -> None:
    """A file that stays closed is told once; another reason and another file are news, and so is that it is well."""
    unreadable = UnreadableFiles("app", telemetry)
    for at, failing in enumerate([{}, DENIED, DENIED, SICK, SICK | {"b": "gone"}, {"b": "gone"}]):
        unreadable.update(failing, AT + at)
    assert told(log) == [("files cannot be read", reasons) for reasons in (DENIED, SICK, {"b": "gone"})]
    unreadable.update({}, AT + 5 + SETTLE_SECONDS)
    unreadable.update({}, AT + 6 + SETTLE_SECONDS)
    assert told(log)[3:] == [("files no longer unreadable", ["a", "b"])]


def test_what_comes_and_goes_is_told_once(telemetry: Telemetry, log: LogCapture) -> None:
    """A sick disk opens a file on each scan, and fails where it is read."""
    unreadable = UnreadableFiles("app", telemetry)
    for at in range(500):
        unreadable.update(SICK if at % 2 else {}, AT + at)
    assert told(log) == [("files cannot be read", SICK)]


async def test_intake_tells_while_others_are_read(store: SqliteStore, telemetry: Telemetry, log: LogCapture) -> None:
    """Nothing fails, so that no step says so: the lag does, and the log."""
    source = ListSource([])
    source.lag = lambda: Lag(0, 0.0, DENIED)  # type: ignore[method-assign]
    rules = IntakeRules(SamplingPlan(1.0), {JUDGE: 1.0}, None, 1000)
    intake = IntakeLoop(source, canonical.read, rules, store=store, telemetry=telemetry, clock=Clock(AT))
    assert [await intake.step(), await intake.step()] == [False, False]
    assert told(log) == [("files cannot be read", DENIED)]


def test_the_tail_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lag names the file that cannot be opened beside one that can."""
    for name in ("good.jsonl", "shut.jsonl"):
        (tmp_path / name).write_bytes(b"{}\n")
    source = TailSource(Options(name="app", path=str(tmp_path / "*.jsonl"), start="beginning"))
    opened = source._files.opener.open

    def shut(path: str, ino: int | None = None) -> Any:
        if path.endswith("shut.jsonl"):
            raise PermissionError(13, "Permission denied")
        return opened(path, ino)

    monkeypatch.setattr(source._files.opener, "open", shut)
    assert source.read() is not None
    assert source.lag().unreadable == {str(tmp_path / "shut.jsonl"): "Permission denied"}
    source.close()
