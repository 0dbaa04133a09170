"""Upgrades: the daemon opens a state and a configuration as an earlier version wrote them, and loses nothing."""

import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from functional.daemon import RagwatchProcess, parse_series
from support.callers import canned
from support.patience import pauses

from ragwatch.ports import Query
from ragwatch.statistics.tally import violations
from ragwatch.stores.migrations import scripts_of
from ragwatch.stores.sqlite.store import SqliteStore

OLD = Path(__file__).parents[1] / "data" / "upgrade"
SCHEMAS = {"0.1.0": 0, "0.2.0": 8}
"""By version: the schema whose scripts make the tables that its dump fills; 0 where it makes them itself."""
ANSWERS = 12
# Withdrawn: the sum of scores that may be negative is no counter, and OpenMetrics allows no count without it.
WITHDRAWN = ("ragwatch_traffic_top_context_score_count{", "ragwatch_traffic_top_context_score_sum{")


@pytest.mark.parametrize("version", SCHEMAS)
def test_nothing_is_lost_in_an_upgrade(version: str, tmp_path: Path) -> None:
    """Counters and canary figures are those of before; labels, verdicts, cursors and waiting draws are still there."""
    (tmp_path / "log").mkdir()
    (tmp_path / "state").mkdir(mode=0o700)
    with closing(sqlite3.connect(tmp_path / "state" / "ragwatch.db", isolation_level=None)) as connection:
        connection.executescript("PRAGMA page_size=16384; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL;")
        for script in scripts_of("sqlite")[: SCHEMAS[version]]:
            connection.executescript(script)
        connection.executescript((OLD / version / "state.sql").read_text(encoding="utf-8"))
        cursors = dict(connection.execute("SELECT stream, cursor FROM cursors WHERE source = 'app'"))
    with closing(SqliteStore(tmp_path / "state")) as store:
        assert store.cursors("app") == cursors  # the daemon deletes that of a file which is gone
    old = parse_series((OLD / version / "figures.prom").read_text(encoding="utf-8"))
    figures = {name: value for name, value in old.items() if not name.startswith(WITHDRAWN)}
    with canned((401, {}, {})) as (refusing, _):
        text = (OLD / "0.1.0" / "ragwatch.yaml").read_text(encoding="utf-8")
        for name, value in (("FOLDER", str(tmp_path)), ("LLM", refusing), ("RETRIEVER", refusing)):
            text = text.replace(f"${{{name}}}", value)
        (tmp_path / "ragwatch.yaml").write_text(text, encoding="utf-8")
        with RagwatchProcess(tmp_path / "ragwatch.yaml").wait_until_serving() as ragwatch:
            for _ in pauses():
                if figures.items() <= (series := ragwatch.series()).items():
                    break
            assert {name: series.get(name) for name in figures} == figures
            assert any("scores are not comparable" in str(line.get("detail")) for line in ragwatch.log)
            ragwatch.signal(signal.SIGTERM)
            assert ragwatch.end() == 0
    with closing(SqliteStore(tmp_path / "state")) as store:
        assert [label.annotator for label in store.labels(0.0)] == ["ann"] * ANSWERS
        verdicts = store.find(Query(judge="embedded"))
        assert [stored.sample is not None for stored in verdicts] == [True] * ANSWERS
        assert len(store.runs("canary", "docs", 9)) == 1
        assert violations(*store.tallies_and_pending()) == {}
        assert len(store.lease("local-llm", 99, now=9e9, seconds=60)) == ANSWERS
