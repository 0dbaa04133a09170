"""`ragwatch export --parquet`: every verdict once, unknown is null, texts only where they may be."""

import json
import shutil
import sqlite3
import stat
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.command_line import command, configured, refused
from support.draws import draws
from support.kit import AT, a_claim, a_draw, a_verdict, an_admission, an_evidence, an_unjudged
from support.stores import open_store, settings_of

from ragwatch.errors import ConfigError, StoreError
from ragwatch.model.evidence import CriterionAnswer, CriterionReading
from ragwatch.model.quantities import Quantity
from ragwatch.offline.export import ParquetDataset
from ragwatch.offline.parquet_rows import COLUMNS, RowRules, row_of
from ragwatch.ports import Retention, Store
from ragwatch.stores.days import DayReader, DayVerdict
from ragwatch.stores.rows import verdict_of, verdict_row
from ragwatch.stores.sqlite.sqlite_engine import ReadConnection
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.stores.texts import pack

pytestmark = pytest.mark.servers

DAY = 86400.0
FIRST = AT - AT % DAY
NOTHING = (3, "no verdict is stored yet, or none of these routes and days; nothing was written\n")
EVERY = "* REPLACE (epoch_us(answered_at) AS answered_at)"  # DuckDB needs a library to convert it
PERSON = "anna@example.org"
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)


def written(config: Path, folder: Path, *options: str) -> tuple[int, str]:
    """Exit code and output of the command."""
    arguments = ["export", "--config", str(config), "--parquet", str(folder), *options]
    result = command(*arguments)
    if result.exception is not None:
        assert isinstance(result.exception, ConfigError | StoreError), result.exc_info
        return 1, str(result.exception)
    return int(result.return_value), result.output


def settle(store: Store, *names: str, at: float = FIRST, route: str = "search", **parts: Any) -> None:
    """Store judged answers."""
    for name in names:
        draw = a_draw(name, at=at, route=route, **parts)
        store.admit(an_admission(draw))
        store.settle([a_verdict(draw, an_evidence(a_claim((1, 0), evidence=f"Cats purr, says {PERSON}.")))])


def rows(folder: Path, columns: str = EVERY) -> list[dict[str, Any]]:
    """All exported rows, as DuckDB reads them."""
    files = f"read_parquet('{folder}/verdicts/**/*.parquet', hive_partitioning = true)"
    with duckdb.connect() as connection:
        cursor = connection.execute(f"SELECT {columns} FROM {files} ORDER BY seq")  # noqa: S608 - ours
        names = [name for name, *_ in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def test_every_verdict_is_exported_once(store: SqliteStore, tmp_path: Path) -> None:
    """By day and route; a repeated run changes nothing, a later one adds what is new, also to earlier days."""
    config, out = configured(tmp_path), tmp_path / "out"
    assert written(config, out) == NOTHING
    settle(store, "r1", "r2")
    settle(store, "r3", at=FIRST + DAY, route="a/b=c %ü")
    assert written(config, out) == (0, "3 verdicts added, 2 files written, 0 unchanged\n")
    times = {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
    assert sorted(str(path.relative_to(out)) for path in times) == [
        "verdicts/date=2023-11-14/route=search/verdicts.parquet",
        "verdicts/date=2023-11-15/route=a%2Fb%3Dc%20%25%C3%BC/verdicts.parquet",
    ]
    assert written(config, out) == (0, "0 verdicts added, 0 files written, 2 unchanged\n")
    assert times == {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
    settle(store, "late")
    assert written(config, out) == (0, "1 verdicts added, 1 files written, 1 unchanged\n")
    found = rows(out, "seq, id, route, CAST(date AS VARCHAR) AS day")
    assert [row["id"] for row in found] == ["r1", "r2", "r3", "late"]
    places = [("search", "2023-11-14")] * 2 + [("a/b=c %ü", "2023-11-15"), ("search", "2023-11-14")]
    assert [(row["route"], row["day"]) for row in found] == places


def test_what_retention_deletes_stays_in_the_files(store: SqliteStore, tmp_path: Path) -> None:
    """Files only grow: they are what remains of old answers."""
    config, out = configured(tmp_path), tmp_path / "out"
    settle(store, "old")
    assert written(config, out)[0] == 0
    store.prune(Retention(days=30, failing_days=90, bytes=1 << 40), now=FIRST + 100 * DAY)
    assert written(config, out) == NOTHING
    settle(store, "new")
    assert written(config, out)[0] == 0
    assert [row["id"] for row in rows(out, "seq, id")] == ["old", "new"]


def test_unknown_is_null(store: SqliteStore, tmp_path: Path) -> None:
    """An unjudged answer has no scores, claims and contexts; a quantity that was not read is null, never 0 or NaN."""
    config, out = configured(tmp_path), tmp_path / "out"
    draw = a_draw("r1", at=FIRST, probability=0.25)
    store.admit(an_admission(draw))
    store.settle([an_unjudged(draw, "timeout")])
    settle(store, "r2")
    readings = (CriterionReading("polite", CriterionAnswer.NO), CriterionReading("priced", None))
    store.admit(an_admission(a_draw("r3", at=FIRST)))
    store.settle([a_verdict(a_draw("r3", at=FIRST), an_evidence((1, 0), criteria=readings))])
    assert written(config, out)[0] == 0
    unjudged, judged, read = rows(out)
    assert (judged["criteria"], read["criteria"]) == (None, {"polite": 0.0})
    assert (unjudged["outcome"], unjudged["reason"], unjudged["probability"]) == ("unjudged", "timeout", 0.25)
    assert [unjudged[str(quantity)] for quantity in Quantity] == [None] * len(Quantity)
    assert (unjudged["claims"], unjudged["contexts"], unjudged["missing"]) == (None, None, None)
    assert (judged["faithfulness"], judged["need_recall"], judged["context_recall"]) == (1.0, None, None)
    assert judged["claims"][0]["verdict"] == "supported"
    assert [context["relevant"] for context in judged["contexts"]] == [True, False]


def test_texts_only_where_they_are_asked_for(store: SqliteStore, tmp_path: Path) -> None:
    """Without --texts no text is in the files; with it they are redacted, and readable by the owner only."""
    config = configured(tmp_path)
    settle(store, "r1", question=f"Who is {PERSON}?", metadata={"release": 7, "user": {"tier": "free"}})
    assert written(config, tmp_path / "bare")[0] == 0
    (row,) = rows(tmp_path / "bare")
    assert "purr" not in str(row)
    assert (row["question"], row["missing"], row["metadata"]) == (None, None, None)
    options = ("--texts", "redacted", "--metadata", "release", "--metadata", "user.tier", "--metadata", "none")
    assert written(config, tmp_path / "full", *options)[0] == 0
    (row,) = rows(tmp_path / "full")
    assert row["answer"] == row["claims"][0]["text"] == "Cats purr."
    assert row["contexts"][1]["text"] == "Dogs bark."
    assert "[EMAIL:" in row["question"]
    assert PERSON not in str(row)
    assert dict(row["metadata"]) == {"release": "7", "user.tier": "free"}
    (file,) = (tmp_path / "full").rglob("*.parquet")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "has --texts redacted, this run has none" in written(config, tmp_path / "full")[1]


def test_store_texts_is_respected(store: SqliteStore, tmp_path: Path) -> None:
    """Texts that the store still has, but must not keep, are not exported."""
    settle(store, "good", metadata={"release": "1"})
    bad = a_draw("bad", at=FIRST)
    store.admit(an_admission(bad))
    store.settle([a_verdict(bad, an_evidence((0, 0)))])
    options = ("--texts", "redacted", "--metadata", "release")
    config = configured(tmp_path, store={"kind": "sqlite", "texts": "failing"})
    assert written(config, tmp_path / "out", *options)[0] == 0
    good, failing = rows(tmp_path / "out")
    assert (good["answer"], good["metadata"], good["claims"][0]["text"]) == (None, None, None)
    assert failing["answer"] == "Cats purr."
    config = configured(tmp_path, store={"kind": "sqlite", "texts": "none"})
    assert "store.texts is none" in written(config, tmp_path / "out", *options)[1]


def test_routes_and_days_can_be_chosen(store: SqliteStore, tmp_path: Path) -> None:
    """Other files stay as they are; what is left out now is added by a later run."""
    config, out = configured(tmp_path, routes=["search", "support"]), tmp_path / "out"
    settle(store, "r1")
    settle(store, "r2", route="support")
    unknown = "--route nope: is not configured; use one of: search, support, other"
    assert written(config, out, "--route", "nope") == (1, unknown)
    assert written(config, out, "--route", "support") == (0, "1 verdicts added, 1 files written, 0 unchanged\n")
    assert written(config, out, "--since", "2d")[0] == 3
    assert "--since soon" in written(config, out, "--since", "soon")[1]
    assert written(config, out) == (0, "1 verdicts added, 1 files written, 1 unchanged\n")


def test_what_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options that would seem to select, a directory that cannot be made or is not named, and a missing extra."""
    config, out = configured(tmp_path), tmp_path / "out"
    for name, value in (("judge", "embedded"), ("quantity", "faithfulness"), ("limit", "200")):
        assert f"--{name}: is for --failing" in written(config, out, f"--{name}", value)[1]
    SqliteStore(tmp_path / "state").close()
    assert written(config, config / "out") == (1, f"--parquet {config / 'out'}: cannot be written: Not a directory")
    assert "is a file" in command("export", "--config", config, "--parquet", config).exception.format_message()  # type: ignore[union-attr]
    assert "--parquet: is missing; give the directory" in refused(command("export", "--config", config))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install 'ragwatch-exporter[parquet]'" in written(config, out)[1]


def test_files_of_another_store_are_refused(tmp_path: Path) -> None:
    """Sequence numbers of two states mean different verdicts: nothing is mixed, and the message says what to do."""
    config, out = configured(tmp_path), tmp_path / "out"
    for name in ("first", "second"):
        opened = SqliteStore(tmp_path / "state")
        settle(opened, name)
        opened.close()
        code, text = written(config, out)
        shutil.rmtree(tmp_path / "state")
    assert (code, "was exported from another store; give another directory" in text) == (1, True)
    (file,) = out.rglob("*.parquet")
    file.write_bytes(b"PAR1")
    opened = SqliteStore(tmp_path / "state")
    settle(opened, "third")
    opened.close()
    assert "is not an exported file; delete it" in written(config, out)[1]


def test_postgres_gives_the_same(tmp_path: Path) -> None:
    """The same answers in either kind of store give the same rows, beside a worker that is open."""
    found = []
    for kind in ("sqlite", "postgres"):
        (tmp_path / kind).mkdir()
        state = tmp_path / kind / "state"
        with closing(open_store(kind, state)) as opened:
            settle(opened, "r1", "r2", metadata={"release": "1"}, probability=0.5)
            settle(opened, "r3", at=FIRST + DAY)
            config = configured(tmp_path / kind, store={"kind": kind, **settings_of(kind, state)})
            out = tmp_path / kind / "out"
            options = ("--texts", "redacted", "--metadata", "release")
            assert written(config, out, *options) == (0, "3 verdicts added, 2 files written, 0 unchanged\n")
            assert written(config, out, *options) == (0, "0 verdicts added, 0 files written, 2 unchanged\n")
            found.append(rows(out))
    for row in (*found[0], *found[1]):
        del row["seq"]
    assert found[0] == found[1]


class _Ended(Exception):  # noqa: N818 - what a test raises
    """Ends a run in the middle."""


class _EndingReader(DayReader):
    """Ends after some verdicts."""

    def verdicts(self, seqs: Any) -> Iterator[DayVerdict]:
        """Yield one, then end."""
        yield next(super().verdicts(seqs))
        raise _Ended


def test_a_run_that_ends_in_the_middle(store: SqliteStore, tmp_path: Path) -> None:
    """A reader of the directory never sees a part of a file, and the next run completes it."""
    config, out = configured(tmp_path), tmp_path / "out"
    settle(store, "r1")
    assert written(config, out)[0] == 0
    settle(store, "r2", "r3")
    dataset = ParquetDataset(out, RowRules())
    connection = ReadConnection(tmp_path / "state" / "ragwatch.db")
    with pytest.raises(_Ended), dataset.locked(), closing(connection):
        dataset.add_day(_EndingReader(connection), int(FIRST // DAY), 99, frozenset())
    assert [row["id"] for row in rows(out, "seq, id")] == ["r1"]
    left = out / "verdicts" / "date=2023-11-14" / "route=search" / ".verdicts-1"
    left.write_bytes(b"half")  # of a run that was killed
    with dataset.locked():
        assert "another run writes to" in written(config, out)[1]
    assert written(config, out)[0] == 0
    assert [row["id"] for row in rows(out, "seq, id")] == ["r1", "r2", "r3"]
    assert [path.name for path in left.parent.iterdir()] == ["verdicts.parquet"]


def test_memory_is_limited(store: SqliteStore, tmp_path: Path) -> None:
    """Rows are written in groups of a limited number and size, and all of them arrive."""
    settle(store, *(f"r{number}" for number in range(7)))
    with closing(ReadConnection(tmp_path / "state" / "ragwatch.db")) as connection:
        reader = DayReader(connection)
        for until, limits in ((5, {"group_rows": 3}), (7, {"group_chars": 1})):
            dataset = ParquetDataset(tmp_path, RowRules(), **limits)
            with dataset.locked():
                dataset.add_day(reader, int(FIRST // DAY), until, frozenset())
    file = pyarrow.parquet.ParquetFile(dataset.path_of(int(FIRST // DAY), "search"))
    assert [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)] == [3, 2, 1, 1]
    assert [row["id"] for row in rows(tmp_path, "seq, id")] == [f"r{number}" for number in range(7)]


def test_damaged_texts_leave_what_columns_hold(store: SqliteStore, tmp_path: Path) -> None:
    """A verdict whose line is damaged keeps its scores; its claims are unknown, not none."""
    settle(store, "r1", "r2")
    with closing(sqlite3.connect(tmp_path / "state" / "ragwatch.db", isolation_level=None)) as writer:
        writer.execute("UPDATE verdicts SET line = x'00' WHERE seq = 1")
        writer.execute("UPDATE verdicts SET judge = x'ff' WHERE seq = 2")
    config, out = configured(tmp_path), tmp_path / "out"
    assert "1 damaged rows cannot be read and are left out" in written(config, out)[1]
    (row,) = rows(out)
    assert (row["damaged"], row["claims"], row["faithfulness"], row["judge_kind"]) == (True, None, 1.0, None)


def test_the_schema_is_written_down(tmp_path: Path, store: SqliteStore) -> None:
    """Files name the version of their schema, and have its columns; those that are never null say so."""
    settle(store, "r1")
    assert written(configured(tmp_path), tmp_path / "out")[0] == 0
    (path,) = (tmp_path / "out").rglob("*.parquet")
    schema = pyarrow.parquet.read_schema(path)
    assert schema.metadata[b"ragwatch.schema_version"] == b"1"
    assert schema.names == [column.name for column in COLUMNS]
    assert [field.nullable for field in schema] == [not column.required for column in COLUMNS]


@settings(max_examples=draws(40))
@given(metadata=st.dictionaries(st.text(max_size=4), JSON_VALUES, max_size=3), text=st.text(max_size=20))
def test_any_text_can_be_written(metadata: dict[str, Any], text: str) -> None:
    """Whatever stands in metadata and texts, lone surrogates included, a row can be encoded."""
    draw = a_draw("r\ud800", answer=text + "\udfff", metadata=metadata)
    line = json.dumps(draw.sample.to_record())
    stored = verdict_of(_stored_row(draw, line))
    row = row_of(DayVerdict(1, stored, "app"), RowRules(lambda value: value, metadata=tuple(metadata)))
    json.dumps(row, ensure_ascii=False).encode("utf-8")
    assert len(row["metadata"] or ()) == sum(value is not None for value in metadata.values())


def _stored_row(draw: Any, body: str) -> tuple[Any, ...]:
    """A row as a store returns it."""
    row = verdict_row(a_verdict(draw))
    names = ("key", "judge", "version", "at", "route", "probability", "outcome", "reason", "stage", "fault", "scores")
    return (1, *(row[name] for name in names), row["trace_id"], row["line"], pack(json.loads(body)))
