"""`ragwatch check`: a good configuration passes, and every problem is reported before the daemon starts."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import Result
from support.command_line import command, log_of
from support.retrievers import FaultyRetriever, serving

from ragwatch.ports import Admission
from ragwatch.stores.lock import StateLock
from ragwatch.stores.sqlite.store import SqliteStore

WEIGHTS = Path(__file__).parents[2] / "data" / "local"
GOOD = {"question": "Where?", "contexts": ["By the river."], "answer": "By the river."}


def _check(folder: Path, *rows: object, listen: str = "127.0.0.1:0", path: str | None = None, more: str = "") -> Result:
    log_of(folder / "rag.jsonl", *rows)
    config = folder / "ragwatch.yaml"
    config.write_text(
        f"state: {folder}/state/deep\nweb: {{listen: '{listen}'}}\n"
        f"sources: [{{kind: tail, name: app, path: '{path or folder / 'rag.jsonl'}'}}]\n{more}"
    )
    return command("check", "--config", config)


def _said(result: Result) -> str:
    """The text of the table, with its lines joined."""
    return " ".join(result.stdout.replace("│", " ").split())


def test_a_good_configuration_passes(tmp_path: Path) -> None:
    """Everything is tested, and nothing is created: no state directory, no cursor."""
    result = _check(tmp_path, GOOD, GOOD)
    assert result.return_value == 0
    assert "2 of 2 records of" in _said(result)
    assert "lexical-" in result.stdout
    assert not (tmp_path / "state").exists()


def test_what_stale_documents_lead_to_depends_on_the_log(tmp_path: Path) -> None:
    """A ticket where contexts have the date of their document, else nothing, and what to log."""
    without = _said(_check(tmp_path, GOOD))
    assert "stale documents that the answer follows: nothing; " in without
    assert "and `updated_at` in the contexts of the log" in without
    dated = GOOD | {"contexts": [{"text": "By the river.", "updated_at": "2026-05-01"}]}
    assert "stale documents that the answer follows: ticket; " in _said(_check(tmp_path, dated))


def test_records_that_cannot_be_read_fail(tmp_path: Path) -> None:
    """A log of another shape fails with the first fault; a few bad lines are a warning."""
    assert _check(tmp_path, {"level": "info"}).return_value == 1
    result = _check(tmp_path, GOOD, {"question": "x", "answer": "y"})
    assert result.return_value == 0
    assert "warning" in result.stdout
    assert "missing_field" in result.stdout


def test_a_log_without_contexts_fails(tmp_path: Path) -> None:
    """Content must be captured: ids alone cannot be judged."""
    result = _check(tmp_path, {**GOOD, "contexts": []})
    assert result.return_value == 1
    assert "none has a context with text" in _said(result)


def test_nothing_to_read_yet_is_a_warning(tmp_path: Path) -> None:
    """A glob that matches nothing may match tomorrow."""
    result = _check(tmp_path, path=f"{tmp_path}/absent-*.jsonl")
    assert result.return_value == 0
    assert "nothing to read yet" in _said(result)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Beside one that can: the first of them, and how many there are."""
    for name in (b"caf\xe9.jsonl", b"caf\xea.jsonl"):
        (tmp_path / os.fsdecode(name)).write_text("{}\n")
    result = _check(tmp_path, GOOD, path=f"{tmp_path}/*.jsonl")
    assert result.return_value == 0
    assert r"caf\xe9.jsonl: its name is not UTF-8; rename it and 1 more" in _said(result)


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


def test_a_missing_directory_fails(tmp_path: Path) -> None:
    """It is named, with what to do; an empty one is a warning."""
    result = _check(tmp_path, path=f"{tmp_path}/nowhere/*.jsonl")
    assert result.return_value == 1
    assert "no such directory; create or mount it" in _said(result)
    assert f"{tmp_path}/nowhere:" in _said(result).replace(" ", "")


def test_a_judge_without_its_model_is_a_warning(tmp_path: Path) -> None:
    """It falls back to the lexical judge and says why; with its model the check passes."""
    for weights, state in (("absent", "warning"), (str(WEIGHTS), "ok")):
        judges = f"judges: [{{name: reader, kind: local, weights: '{weights}'}}]\n"
        result = _check(tmp_path, GOOD, more=judges)
        message = next(line for line in result.stdout.splitlines() if "judges[0]" in line)
        assert result.return_value == 0
        assert state in message
        assert ("falls back to the lexical judge:" in _said(result)) == (weights == "absent")


def test_a_taken_address_fails(tmp_path: Path) -> None:
    """The port of another server is named."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = _check(tmp_path, GOOD, listen=f"127.0.0.1:{taken.getsockname()[1]}")
    assert result.return_value == 1
    assert "web.listen" in result.stdout


def test_what_is_told_is_told_whole(tmp_path: Path) -> None:
    """Brackets in what was found (an extra's name, a path) are no markup to be swallowed."""
    folder = tmp_path / "[red]logs"
    folder.mkdir()
    result = _check(folder, GOOD)
    assert result.return_value == 0
    assert "[red]logs" in "".join(letter for letter in result.stdout if letter not in "│ \n")


PASSAGE = "The old mill stands by the river. Its wheel was built by monks."


def _row(context: str, **more: object) -> dict[str, object]:
    return {"question": "Where does the old mill stand?", "contexts": [context], "answer": "By the river.", **more}


def test_ids_in_place_of_contexts_are_refused(tmp_path: Path) -> None:
    """Names of passages support nothing; passages of one word beside real ones are passages."""
    result = _check(tmp_path, _row("doc-17#3"), _row("6f1c2b"))
    assert result.return_value == 1
    assert "contexts: hold ids instead of texts" in _said(result)
    assert "hold ids" not in _said(_check(tmp_path, _row("Yes."), _row(PASSAGE)))


def test_records_that_all_fall_into_other_are_a_warning(tmp_path: Path) -> None:
    """Routes that are not configured are named; one that is listed, with a slash, is enough."""
    rows = [_row(PASSAGE, route="/search"), _row(PASSAGE, route="/chat")]
    for routes in ("", "routes: [support]\n"):
        said = _said(_check(tmp_path, *rows, more=routes))
        assert "every record is counted in route other" in said
        assert "'/search', '/chat'" in said
    assert "route other" not in _said(_check(tmp_path, *rows, more="routes: [/search, '/v1/items/{id}']\n"))
    assert "the records name none" in _said(_check(tmp_path, _row(PASSAGE), more="routes: [search]\n"))
    assert "route other" not in _said(_check(tmp_path, _row(PASSAGE)))


def test_an_array_that_is_not_ended_is_told(tmp_path: Path) -> None:
    """Neither no file nor an empty one: the file is named, with what to write instead."""
    for text, what in (("[" + json.dumps(GOOD) + ",", "an incomplete JSON array"), ("{", "has no complete line")):
        (tmp_path / "array.json").write_text(text)
        said = _said(_check(tmp_path, path=f"{tmp_path}/array.json"))
        assert what in said
        assert "array.json" in said.replace(" ", "")
        assert "no file matches" not in said
    (tmp_path / "array.json").write_text(json.dumps([GOOD]) + "\n")
    assert "write one JSON object per line" in _said(_check(tmp_path, path=f"{tmp_path}/array.json"))


def test_text_before_the_json_names_its_cure(tmp_path: Path) -> None:
    """The option that passes over it, and with that all is well."""
    (tmp_path / "app.log").write_text(f"2026-01-01 INFO {json.dumps(GOOD)}\n" * 3)
    assert "set prefix: auto" in _said(_check(tmp_path, path=f"{tmp_path}/app.log"))
    result = _check(tmp_path, path=f"{tmp_path}/app.log', skip_prefix: true, format: 'auto")
    assert "3 of 3 records" in _said(result)


def test_skipped_lines_are_told(tmp_path: Path) -> None:
    """Beside the samples, with the reasons; a condition that leaves nothing fails."""
    health = {"level": "info"}
    log = f"{tmp_path}/rag.jsonl', where: 'answer"
    result = _check(tmp_path, *[GOOD] * 5, health, health, path=log)
    assert result.return_value == 0
    assert "5 of 5 records of" in _said(result)
    assert "2 lines are skipped (where 2)" in _said(result)
    result = _check(tmp_path, *[GOOD] * 5, path=log.replace("answer", "anwser"))
    assert result.return_value == 1
    assert "no line is a record" in _said(result)


def test_rejects_above_the_alert_are_told(tmp_path: Path) -> None:
    """Health checks in the log would keep an alert firing; below its threshold there is no warning."""
    health = {"level": "info", "msg": "GET /healthz 200"}
    said = _said(_check(tmp_path, *[GOOD] * 90, *[health] * 7))
    assert "7.2% of the records are rejected, above alerts.rejects (5.0%)" in said
    assert "alerts.rejects" not in _said(_check(tmp_path, *[GOOD] * 90, *[health] * 3))
    assert "alerts.rejects" not in _said(_check(tmp_path, *[GOOD] * 90, health, more="alerts: {rejects: 0.5}\n"))


def test_answers_in_another_language_are_a_warning(tmp_path: Path) -> None:
    """What has no level, and what will be unknown, each with its languages; English answers are no warning."""
    german = {**GOOD, "answer": "Die Erstattung dauert fünf Tage, und der Versand ist kostenlos."}
    assert "no measured accuracy (und: 2;" in _said(_check(tmp_path, GOOD, german, german))
    read = {**german, "question": "Wie lange dauert die Erstattung?", "contexts": [german["answer"]]}
    assert "read for changes alone (de: 1)" in _said(_check(tmp_path, GOOD, read))
    assert "are in a language" not in _said(_check(tmp_path, GOOD))


def test_a_state_in_use_is_told(tmp_path: Path) -> None:
    """While a daemon runs, it holds the state and the address: a warning, and no failure."""
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
        assert _check(tmp_path, GOOD, listen=listen).return_value == 1


def test_what_cannot_page_is_named(tmp_path: Path) -> None:
    """Each with its key; and links of alerts that only this machine could open are a warning."""
    said = _said(_check(tmp_path, GOOD, more="routes: [search]\nthresholds: {}\n"))
    assert "pages on every route: invention, wrong documents, refusals, empty answers, other language, source" in said
    for told in ("one tenant: nothing", "canaries: nothing", "silence: ticket"):
        assert told in said
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
        result = _check(tmp_path, GOOD, more=f"canaries: {json.dumps([suite])}\n")
    said = _said(result)
    assert result.return_value == 0
    assert "canaries[0].category warning docs: 8 of 9 canaries expect an unusual number of contexts" in said
    assert "how-0 expects 1, procedural queries 5 to 10" in said
    assert "and 3 more. Complete `expected`, or correct `category`" in said
    assert "canaries[0].category" not in _said(_check(tmp_path, GOOD))


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
        (_newer, "written by a newer ragwatch (schema 9999"),
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
    before = sorted(state.iterdir())
    result = _check(tmp_path, GOOD)
    assert result.return_value == 1
    assert message in _said(result)
    assert [path for path in sorted(state.iterdir()) if not path.name.endswith(("-shm", "-wal"))] == [
        path for path in before if not path.name.endswith(("-shm", "-wal"))
    ]


def test_times_that_look_shifted_are_a_warning(tmp_path: Path) -> None:
    """In the future, or whole hours before the file was written; `timezone` mends that."""
    moment = datetime.now(UTC)
    for hours in (2, -3):
        local = (moment + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%S")
        assert "set timezone" in _said(_check(tmp_path, _row(PASSAGE, at=local)))
        path = f"{tmp_path}/rag.jsonl', timezone: 'Etc/GMT{-hours:+d}"
        assert "set timezone" not in _said(_check(tmp_path, _row(PASSAGE, at=local), path=path))


def test_a_wrong_optional_field_is_a_warning(tmp_path: Path) -> None:
    """With the first error; the record is a sample."""
    result = _check(tmp_path, _row(PASSAGE, at=0), _row(PASSAGE, at=0))
    assert result.return_value == 0
    assert "2 values of the field at are left out (implausible_time" in _said(result)
