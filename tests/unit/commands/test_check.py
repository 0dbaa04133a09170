"""`ragwatch check`: a good configuration passes, every problem is reported; what `run --once` says."""

import os
import socket
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from support.command_line import command, configured, log_of
from support.retrievers import FaultyRetriever, serving

from ragwatch.commands.check_settings import setting_notes
from ragwatch.commands.run import run
from ragwatch.config import parse
from ragwatch.ports import Admission
from ragwatch.stores.lock import StateLock
from ragwatch.stores.sqlite import opening
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.terminal.options.administration import RunArguments

WEIGHTS = Path(__file__).parents[2] / "data" / "local"
GOOD = {"question": "Where?", "contexts": ["By the river."], "answer": "By the river."}


def _check(
    folder: Path, *rows: object, listen: str = "127.0.0.1:0", flags: Sequence[str] = (), **sections: Any
) -> Result:
    log = log_of(folder / "rag.jsonl", *rows)
    source = {"kind": "tail", "name": "app", "path": str(log)}
    parts = {"state": f"{folder}/state/deep", "web": {"listen": listen}, "sources": [source], **sections}
    return command("check", *flags, "--config", configured(folder, **parts))


def _said(result: Result) -> str:
    """The text of the table, with its lines joined."""
    return " ".join(result.stdout.replace("│", " ").split())


def test_a_good_configuration_passes(tmp_path: Path) -> None:
    """Everything is tested, nothing is created; dates of documents are asked for; brackets are no markup."""
    result = _check(tmp_path, GOOD, GOOD)
    assert result.return_value == 0
    assert "2 of 2 records of" in _said(result)
    assert "lexical-" in result.stdout
    assert not (tmp_path / "state").exists()
    without = _said(_check(tmp_path, GOOD, flags=["--all"]))
    assert "stale documents that the answer follows: nothing; " in without
    assert "and `updated_at` in the contexts of the log" in without
    dated = GOOD | {"contexts": [{"text": "By the river.", "updated_at": "2026-05-01"}]}
    assert "stale documents that the answer follows: ticket, " in _said(_check(tmp_path, dated))
    folder = tmp_path / "[red]logs"
    folder.mkdir()
    result = _check(folder, GOOD)
    assert result.return_value == 0
    assert "[red]logs" in "".join(letter for letter in result.stdout if letter not in "│ \n")


def test_existing_records_that_will_not_be_read_are_told(tmp_path: Path) -> None:
    """With `start: end` and no state yet, how many they are; not once the daemon has begun, or with `beginning`."""
    result = _check(tmp_path, GOOD, GOOD, GOOD)
    assert result.return_value == 0
    assert "sources[0].start" in result.stdout
    assert "0 of 3 existing records read: `start: end`" in _said(result)
    (tmp_path / "state" / "deep").mkdir(parents=True)
    database = tmp_path / "state" / "deep" / "ragwatch.db"
    database.write_bytes(b"damaged")
    assert "0 of 3 existing" in _said(_check(tmp_path, GOOD, GOOD, GOOD))
    database.unlink()
    with closing(SqliteStore(tmp_path / "state" / "deep")) as store:
        store.admit(Admission("app", "started", "{}", [], Counter(), 1.0, {}))
    assert "existing records" not in _said(_check(tmp_path, GOOD, GOOD, GOOD))


def test_a_judge_without_its_model_is_a_warning(tmp_path: Path) -> None:
    """It falls back to the lexical judge and says why; with its model the check passes."""
    for weights, state in (("absent", "warning"), (str(WEIGHTS), "ok")):
        result = _check(tmp_path, GOOD, judges=[{"name": "reader", "kind": "local", "weights": weights}])
        message = next(line for line in result.stdout.splitlines() if "judges[0]" in line)
        assert result.return_value == 0
        assert state in message
        assert ("falls back to the lexical judge:" in _said(result)) == (weights == "absent")


def test_a_state_in_use_is_told(tmp_path: Path) -> None:
    """While a daemon runs, it holds the state and the address: a warning; an address of another server is a failure."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        lock = StateLock(tmp_path / "state" / "deep")
        try:
            result = _check(tmp_path, GOOD, listen=listen)
        finally:
            lock.close()
        assert result.return_value == 0
        assert f"in use by a running ragwatch (process {os.getpid()})" in _said(result)
        assert "is in use, as it is while ragwatch runs" in _said(result)
        taken_by_another = _check(tmp_path, GOOD, listen=listen)
        assert (taken_by_another.return_value, "web.listen" in taken_by_another.stdout) == (1, True)


def test_what_needs_a_hand_comes_first(tmp_path: Path) -> None:
    """Failures, then warnings, then what is fine; the last line counts them."""
    result = _check(tmp_path, {"question": "Where?"}, GOOD, state=str(tmp_path / "rag.jsonl"))
    states = [cells[2].strip() for line in result.stdout.splitlines() if len(cells := line.split("│")) > 2]
    found = [state for state in states if state]
    assert found == sorted(found, key=["failed", "suspect", "warning", "ok"].index)
    assert {"failed", "warning", "ok"} <= set(found)
    counts = ", ".join(f"{found.count(state)} {state}" for state in ("failed", "suspect", "warning", "ok"))
    assert result.stdout.splitlines()[-1] == f"in all: {counts}"


@pytest.mark.parametrize(("flags", "end"), [([], ", "), (["--all"], "; ")])
def test_what_cannot_page_is_named(tmp_path: Path, flags: Sequence[str], end: str) -> None:
    """In one line, or each with its key; and links of alerts that only this machine could open are a warning."""
    result = _check(tmp_path, GOOD, routes=["search"], thresholds={}, flags=flags)
    said = _said(result)
    assert "pages on every route: invention, wrong documents, refusals, empty answers, other language, source" in said
    for told in (f"one tenant: nothing{end}", f"canaries: nothing{end}", f"silence: ticket{end}"):
        assert told in said
    assert result.stdout.count("│ alerts") == (1 if not flags else 11)
    assert ("needs a suite in `canaries`" in said) == bool(flags)
    assert "`routes` is empty" not in said
    assert "web.external_url warning is not set: alerts carry no link to the answers" in said


def test_canaries_with_an_unusual_number_of_contexts_are_named(tmp_path: Path) -> None:
    """Requirements item 47: a procedural canary with one expected context is a warning, and no failure."""
    items = [
        {"query": "cats", "expected": ["d1"]},
        *({"query": f"How {step}?", "expected": ["d1"], "category": "procedural"} for step in range(7)),
        {"query": "news", "expected": ["d2"], "category": "temporal", "name": "news"},
    ]
    with serving(*FaultyRetriever().routes()) as address:
        probe = {"kind": "http", "url": f"{address}/search", "body": {"query": "{{ query }}"}, "contexts": "hits"}
        suite = {"suite": "docs", "items": items, "probe": probe}
        result = _check(tmp_path, GOOD, canaries=[suite])
    said = _said(result)
    assert result.return_value == 0
    assert "canaries[0].category warning docs: 8 of 9 canaries expect an unusual number of contexts" in said
    assert "how-0 expects 1, procedural queries 5 to 10" in said
    assert "and 3 more. Complete `expected`, or correct `category`" in said
    assert "canaries[0].category" not in _said(_check(tmp_path, GOOD))


def _files(state: Path) -> list[Path]:
    return [path for path in sorted(state.iterdir()) if not path.name.endswith(("-shm", "-wal"))]


def _newer(state: Path) -> None:
    with closing(sqlite3.connect(state / "ragwatch.db")) as database:
        database.execute("PRAGMA user_version=9999")


def _as_directory(state: Path) -> None:
    (state / "ragwatch.db").unlink()
    (state / "ragwatch.state").unlink()
    (state / "ragwatch.db").mkdir()


@pytest.mark.parametrize(
    ("breaks", "message"),
    [
        (lambda state: (state / "ragwatch.db").unlink(), "was created here and is missing or empty"),
        (lambda state: (state / "ragwatch.db").write_bytes(b"x"), "was created here and is missing or empty"),
        (lambda state: (state / "ragwatch.db").write_bytes(b"damaged" * 5000), "file is not a database"),
        (_as_directory, "Is a directory"),
        (_newer, f"newer ragwatch (schema 9999, this one knows {opening.VERSION}); run that version, or point `state`"),
        (lambda state: (state / "ragwatch.secret").write_text(""), "is damaged: it holds no 64 hexadecimal digits"),
    ],
)
def test_a_state_with_which_nothing_starts_fails(
    tmp_path: Path, breaks: Callable[[Path], object], message: str
) -> None:
    """As `run` finds out, in its words; nothing is changed. A good one passes."""
    state = tmp_path / "state" / "deep"
    SqliteStore(state).close()
    assert _check(tmp_path, GOOD).return_value == 0
    breaks(state)
    before = _files(state)
    result = _check(tmp_path, GOOD)
    assert result.return_value == 1
    assert message in _said(result)
    assert _files(state) == before


def test_a_window_longer_than_retention_is_named() -> None:
    """Estimates of such a window contain less than their name says after a restart; the warning says what to do."""
    for windows, days, names in (
        (["1h"], 30, None),
        (["1h", "30d"], 30, None),
        (["90d"], 90, None),
        (["1h", "45d", "90d"], 30, "45d, 90d"),
        (["15m", "1d"], 0.5, "1d"),
    ):
        sections = {"estimates": {"windows": windows}, "retention": {"days": days}}
        config = parse({"sources": [{"kind": "push", "name": "app"}], **sections}, folder=Path())
        notes = [note.detail for note in setting_notes(config) if note.subject == "estimates.windows"]
        told = [f"over {names} contain" in note and "set retention.days" in note for note in notes]
        assert told == [True] * bool(names)


def test_few_sampled_answers_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sampled at a millionth, the key to change is named; where all of a small log are sampled, nothing is said."""
    row = {"question": "What do cats do?", "contexts": ["Cats purr."], "answer": "Cats purr."}
    log = log_of(tmp_path / "app.jsonl", *(row | {"id": f"r{number}"} for number in range(12)))
    sources = [{"kind": "tail", "name": "app", "path": str(log)}]
    reports = []
    for probability in (0.000001, 1.0):
        config = configured(tmp_path, sources=sources, sampling={"probability": probability})
        assert run(RunArguments(path=config, once=True, state=None)) == 0
        reports.append(capsys.readouterr())
    assert "0 of 12 answers were sampled" in reports[0].err
    assert "sampling.probability: 1.0" in reports[0].err
    assert reports[1].err == ""
    assert 'ragwatch_samples_judged_total{judge="embedded",route="other"} 12.0' in reports[1].out
