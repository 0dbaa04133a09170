"""A damaged row in the state: it costs itself, is shown and counted, and stops neither pages nor judging."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from functional.daemon import JUDGED, RagwatchProcess, append_records, parse_series, write_config
from functional.forked import run_forked

UNJUDGED = 'ragwatch_samples_unjudged_total{judge="embedded",reason="damaged",route="search"}'


def a_state(folder: Path, count: int) -> Path:
    """A daemon has judged some answers, each bad in its generation, and ended. Returns the configuration."""
    config = write_config(folder)
    append_records(folder, range(count), answer="The tower fell into the sea in 1999.")
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        ragwatch.wait_for(JUDGED, count)
    return config


def harm(folder: Path, sql: str) -> None:
    """Change the state behind the program's back."""
    with closing(sqlite3.connect(folder / "state" / "ragwatch.db")) as database:
        with database:
            database.execute(sql)
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@pytest.mark.parametrize("place", ["samples SET body", "verdicts SET line"])
def test_pages_and_lists_stand(tmp_path: Path, place: str) -> None:
    """Every list shows every answer, the damaged one with its key and what is wrong; one series counts it."""
    config = a_state(tmp_path, 5)
    harm(tmp_path, f"UPDATE {place} = X'00ff' WHERE rowid = 3")
    with RagwatchProcess(config).wait_until_serving() as ragwatch:
        status, text = ragwatch.get("/api/v1/samples")
        rows = json.loads(text)["samples"]
        assert (status, len(rows)) == (200, 5)
        (damaged,) = [each for each in rows if "error" in each]
        key = damaged["verdict"]["key"]
        assert "a stored text is damaged" in damaged["error"]
        status, text = ragwatch.get("/api/v1/samples?texts=true")
        assert (status, ["error" in each for each in json.loads(text)["samples"]].count(True)) == (200, 1)
        for path in ("/samples", "/", f"/samples/{key}"):
            status, page = ragwatch.get(path)
            assert (path, status, key in page) == (path, 200, True)
            assert "a stored text is damaged" in page
        status, text = ragwatch.get(f"/api/v1/samples/{key}")
        assert (status, "a stored text is damaged" in json.loads(text)["errors"][0]) == (200, True)
        assert ragwatch.get("/api/v1/labels")[0] == 200
        assert ragwatch.get("/-/ready")[0] == 200
        assert ragwatch.wait_for("ragwatch_state_damaged_rows", 1)[JUDGED] == 5


def test_run_once_goes_on_behind_a_damaged_draw(tmp_path: Path) -> None:
    """A waiting draw whose text is damaged is unjudged for that reason; those behind it are judged; it ends well."""
    config = a_state(tmp_path, 5)
    for sql in (
        "INSERT INTO work (key, judge, probability, since) SELECT key, 'embedded', 1.0, at FROM samples LIMIT 1",
        "DELETE FROM verdicts WHERE key IN (SELECT key FROM work)",
        "UPDATE tallies SET value = value - 1 WHERE name = 'judged'",
        "UPDATE samples SET body = X'00ff' WHERE key IN (SELECT key FROM work)",
    ):
        harm(tmp_path, sql)
    append_records(tmp_path, [100])
    done = run_forked("run", "--once", "--config", config, "--state", tmp_path / "state")
    assert done.returncode == 0, done.stderr
    series = parse_series(done.stdout)
    assert (series[UNJUDGED], series[JUDGED], series["ragwatch_samples_pending"]) == (1, 5, 0)
    assert "Traceback" not in done.stderr
