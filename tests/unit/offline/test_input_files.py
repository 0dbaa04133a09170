"""Files beside a configuration are read as its sources would read them: by `judge`, `gate` and `compare` alike."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from support.command_line import command, configured, log_of, refused

from ragwatch.errors import StoreError
from ragwatch.stores.sqlite.store import SqliteStore

MILL = "The old mill stands by the river."
GOOD = {"req": {"q": "Where is the mill?"}, "hits": [{"body": MILL}], "out": MILL, "path": "search"}
BAD = GOOD | {"out": "Zebras invented the telegraph."}
MAPPING = {"question": "req.q", "contexts": "hits[].{text: body}", "answer": "out", "route": "path"}


def configure(folder: Path, **sections: Any) -> Path:
    """A configuration with a custom source `app` for `*.app.jsonl`, and one of known shape for `*.plain.jsonl`."""
    app = {"kind": "tail", "name": "app", "path": f"{folder}/*.app.jsonl", "format": "custom", "mapping": MAPPING}
    plain = {"kind": "tail", "name": "plain", "path": [f"{folder}/*.plain.jsonl"], "skip_prefix": True}
    return configured(folder, **{"routes": ["search"], "sources": [app, plain]} | sections)


def judged(result: Result) -> list[dict[str, Any]]:
    """The verdict lines."""
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_all_commands_read_by_the_mapping(tmp_path: Path) -> None:
    """The custom mapping makes samples of rows that no known shape fits; routes and thresholds are the daemon's."""
    config = configure(tmp_path, thresholds={"faithfulness": 0.7, "answer_relevancy": 0.5})
    log = log_of(tmp_path / "a.app.jsonl", GOOD, BAD, GOOD | {"path": "/secret/42"})
    result = command("judge", "--config", config, log)
    assert result.return_value == 0
    assert [each["scores"]["faithfulness"] for each in judged(result)] == [1.0, 0.0, 1.0]
    assert "route: search 2, other 1" in result.stderr
    assert command("judge", log).return_value == 1
    asked = [{"req": {"q": f"Where is mill {number}?"}} for number in range(40)]
    good = log_of(tmp_path / "good.app.jsonl", *[GOOD | each for each in asked])
    bad = log_of(tmp_path / "bad.app.jsonl", *[BAD | each for each in asked])
    line = json.loads(command("gate", "--config", config, "--json", "--uncorrected", good).stdout)
    assert (line["verdict"], line["judged"], line["metrics"][0]["threshold"]) == ("PASS", 40, 0.7)
    assert command("gate", "--config", config, "--uncorrected", bad).return_value == 1
    result = command("compare", good, bad, "--config", config, "--json")
    line = json.loads(result.stdout)
    assert (result.return_value, line["shared"], line["warnings"]) == (1, 40, [])


def test_the_source_goes_by_the_path_of_the_file_or_is_named(tmp_path: Path) -> None:
    """The source whose path matches, else the first; --source names another, and --format overrules its shape."""
    config = configure(tmp_path)
    row = {"question": "Where?", "contexts": [MILL], "answer": MILL}
    plain = log_of(tmp_path / "a.plain.jsonl", f"2026-01-01 00:00:00 INFO {{app}} {json.dumps(row)}")
    assert len(judged(command("judge", "--config", config, plain))) == 1
    moved = log_of(tmp_path / "moved.txt", row)
    assert command("judge", "--config", config, moved).return_value == 1  # by the mapping of the first source
    assert command("judge", "--config", config, "--source", "plain", moved).return_value == 0
    assert command("judge", "--config", config, "--format", "auto", moved).return_value == 0


def test_what_is_refused(tmp_path: Path) -> None:
    """A source or judge that is not there is a usage error that names those that are."""
    config, log = configure(tmp_path, judges=[{"name": "ours", "kind": "lexical"}]), tmp_path / "a.app.jsonl"
    log_of(log, GOOD)
    for arguments, message in (
        (("--source", "app"), "name the configuration with --config"),
        (("--config", config, "--source", "nope"), "use one of: app, plain"),
        (("--format", "custom"), "format custom needs one"),
        (("--config", config, "--judge", "nope"), "use one of: ours, "),
        (("--config", config, "--judge", "ours", "--set", "support=0.4"), "change its options there"),
    ):
        assert message in refused(command("judge", *arguments, log))


def test_what_a_source_skips_and_joins_holds_for_files(tmp_path: Path) -> None:
    """What is skipped is no reject, and is told; so are parts without the others of their request."""
    item = {"kind": "tail", "name": "app", "path": f"{tmp_path}/*.jsonl", "where": "answer", "split": "numbered"}
    config = configure(tmp_path, sources=[item])
    row = {"question": "Where is it?", "contexts": f"[1] {MILL}\n[2] Tea is green.", "answer": MILL}
    result = command("judge", "--config", config, log_of(tmp_path / "a.jsonl", row, {"event": "health"}, "Traceback:"))
    assert (result.return_value, len(judged(result))) == (0, 1)
    assert "lines skipped: where 1, no_json 1" in result.stderr
    assert judged(result)[0]["scores"]["faithfulness"] == 1.0
    part = {"kind": "tail", "where": "rid"}
    of = [part | {"name": name, "path": f"{tmp_path}/{name}.jsonl"} for name in ("asked", "answered")]
    config = configure(tmp_path, sources=[{"kind": "join", "name": "app", "by": "rid", "of": of}])
    asked = [{"rid": n, "question": f"Where is mill {n}?", "contexts": [MILL]} for n in range(3)]
    answered = [{"rid": n, "answer": MILL} for n in range(2)]
    files = log_of(tmp_path / "asked.jsonl", *asked), log_of(tmp_path / "answered.jsonl", {"level": "info"}, *answered)
    result = command("judge", "--config", config, *files)
    assert (result.return_value, [line["id"] for line in judged(result)]) == (0, ["0", "1"])
    assert "parts: without the others of their request 1" in result.stderr


def test_redaction_comes_from_the_configuration(tmp_path: Path) -> None:
    """What the daemon would not store, verdict lines do not show either, unless redaction is off there."""
    log = log_of(tmp_path / "a.app.jsonl", GOOD | {"out": "Write to jane.doe@example.com about the mill."})
    assert "jane.doe" not in command("judge", "--config", configure(tmp_path), log).stdout
    off = configure(tmp_path, redaction={"enabled": False})
    assert "jane.doe" in command("judge", "--config", off, log).stdout


def test_errors_are_told_once_with_their_number_and_not_without_end(tmp_path: Path) -> None:
    """702 records that lack one field are one line, commonest first; of others some twenty, and a count."""
    rows = [GOOD, "{torn 1", {"req": {}, "out": 3, "hits": []}, *[{"req": {}, "hits": []}] * 702]
    config = configure(tmp_path)
    result = command("judge", "--config", config, log_of(tmp_path / "a.app.jsonl", *rows))
    message = [line for line in result.stderr.splitlines() if "a.app.jsonl" in line]
    assert len(message) == 3
    told = "a.app.jsonl:4: missing_field: answer: is missing (702 records of this file, the first at line 4)"
    assert message[0].endswith(told)
    assert [":2: torn_json" in message[1], ":3: wrong_type: answer" in message[2]] == [True, True]
    assert "missing_field 702" in result.stderr
    rows = [{f"key {chr(97 + number // 26)}{chr(97 + number % 26)}": 1} for number in range(60)]
    result = command("judge", log_of(tmp_path / "a.jsonl", *rows))
    message = [line for line in result.stderr.splitlines() if "a.jsonl" in line]
    assert len(message) == 21
    assert "40 more records are rejected" in message[-1]


@pytest.mark.parametrize(
    "line",
    [
        *("causes", "export --failing --as gate", "backtest", "diagnose", "rules --from-baseline", "canary suggest"),
        "compare a b --live",
    ],
)
def test_a_state_that_would_be_misread_is_refused(tmp_path: Path, line: str) -> None:
    """None is made where there is none; one without tables is named; a newer one is told in the words of the daemon."""
    words = line.split()
    config, database = configured(tmp_path), tmp_path / "state" / "ragwatch.db"
    assert "ragwatch.db does not exist" in refused(command(*words, "--config", config), StoreError)
    assert not database.parent.exists()
    database.parent.mkdir()
    database.touch()  # the disk was full, or the process was killed, while it was made
    message = refused(command(*words, "--config", config), StoreError)
    assert message == f"state: {database} holds nothing yet; run ragwatch until it has judged some samples"
    SqliteStore(tmp_path / "state").close()
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA user_version=9999")
    with pytest.raises(StoreError, match="written by a newer ragwatch") as daemons:
        SqliteStore(tmp_path / "state")
    assert refused(command(*words, "--config", config), StoreError) == str(daemons.value)
