"""Every kind of store over a state directory; with PostgreSQL, it stands for a schema that is emptied.

Also everything that can be read from the bytes of such a folder.
"""

import re
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ragwatch.model.evidence import Evidence
from ragwatch.model.sample import Draw
from ragwatch.ports import Assignment, FollowUp, Query, Retention, Store
from ragwatch.statistics.tally import Invariant, violations
from ragwatch.statistics.verdict import Verdict
from ragwatch.stores import KINDS
from ragwatch.stores.migrations import scripts_of
from ragwatch.stores.postgres import Options
from ragwatch.stores.postgres.connections import connect
from ragwatch.stores.postgres.postgres_store import PostgresStore
from support.kit import AT, JUDGE, a_verdict, an_admission
from support.postgres import shared_server

OLD_STATES = Path(__file__).parents[1] / "data" / "state"
SCHEMA, WORKERS_SCHEMA = "contract", "workers"
PARAMETERS = [pytest.param(kind, marks=[pytest.mark.costly] if kind == "postgres" else []) for kind in sorted(KINDS)]
"""Kinds as parameters of tests."""

DAY = 86400
AGES = Retention(days=30, failing_days=90, bytes=1 << 40)
KEEP_ALL = Retention(days=9999, failing_days=9999, bytes=1 << 40)
ONE_DAY = Retention(days=1, failing_days=1, bytes=1 << 40)

Workers = Callable[..., PostgresStore]
"""Starts workers on one schema, each with options of its own."""

_owners: dict[str, Path] = {}


def settings_of(kind: str, state: Path) -> dict[str, str]:
    """Settings of a store over a state: an empty one for a state that was not asked for last."""
    if kind != "postgres":
        return {}
    server = shared_server()
    if _owners.get(SCHEMA) != state:
        emptied(server.url, SCHEMA)
        _owners[SCHEMA] = state
    return {"url": server.url, "database_schema": SCHEMA}


def open_store(kind: str, state: Path, **options: Any) -> Store:
    """Open the store of a kind over a state directory."""
    return KINDS[kind].build(KINDS[kind].Options.model_validate({**settings_of(kind, state), **options}), state)


class Opened:
    """Opens the store of a kind, again and again over one state; closes the one before."""

    def __init__(self, kind: str, state: Path) -> None:
        self._kind, self._state, self._store = kind, state, list[Store]()

    def __call__(self, **options: Any) -> Any:
        """A store with options."""
        self.close()
        self._store.append(open_store(self._kind, self._state, **options))
        return self._store[0]

    def close(self) -> None:
        """Close the store that was opened last."""
        while self._store:
            self._store.pop().close()


def admit_and_settle(store: Store, *answers: Draw | Verdict, evidence: Evidence | None = None) -> None:
    """Admit answers for the judges of their verdicts, and settle them; the verdict on a draw has the evidence."""
    verdicts = [a_verdict(each, evidence) if isinstance(each, Draw) else each for each in answers]
    admitted: dict[str, tuple[Draw, tuple[Assignment, ...]]] = {}
    for each in verdicts:
        _, others = admitted.get(each.draw.key, (each.draw, ()))
        admitted[each.draw.key] = each.draw, (*others, Assignment(each.reading.judge, each.draw.probability))
    store.admit(replace(an_admission(), draws=list(admitted.values())))
    store.settle(verdicts)


def as_left_by(version: int, state: Path) -> Path:
    """A state of SQLite as that schema left it."""
    state.mkdir()
    with closing(sqlite3.connect(state / "ragwatch.db", isolation_level=None)) as connection:
        connection.executescript("PRAGMA page_size=16384; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL;")
        for script in scripts_of("sqlite")[:version]:
            connection.executescript(script)
        connection.executescript((OLD_STATES / f"schema_{version}.sql").read_text(encoding="utf-8"))
    return state


def found_by(store: Store, query: Query | None = None) -> list[str]:
    """Ids of the samples that are found, in order."""
    return [str(row.verdict.id) for row in store.find(query or Query())]


def follow_up(draw: Draw, judge: str = "second", *, probability: float = 0.25, at: float = AT) -> FollowUp:
    """Work for another judge behind the verdict of the first."""
    return FollowUp(draw.key, JUDGE, Assignment(judge, probability), at)


def balanced(store: Store) -> bool:
    """For each judge, assigned = judged + unjudged + pending."""
    return Invariant.ASSIGNED_ARE_SETTLED_OR_PENDING not in violations(*store.tallies_and_pending())


def emptied(url: str, schema: str) -> None:
    """Delete all rows of a schema, if it exists."""
    with psycopg.connect(url, autocommit=True) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename <> 'schema_version'", (schema,)
        ).fetchall()
        if tables:  # quicker than TRUNCATE, which makes new files
            deletions = [f'DELETE FROM "{schema}"."{table}"' for (table,) in tables]  # noqa: S608 - names of ours
            connection.execute("; ".join(deletions))


def database(url: str, schema: str, **options: Any) -> Options:
    """Options of a PostgreSQL store."""
    return Options.model_validate({"url": url, "database_schema": schema, **options})


def sql(target: Options, statement: str) -> list[Any]:
    """Rows of a statement."""
    with connect(target) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


STREAM = re.compile(rb"\x78[\x01\x5e\x9c\xda]")  # the beginning of a zlib stream


def readable(folder: Path) -> bytes:
    """The bytes of all files, followed by every compressed text or beginning of one, wherever it starts."""
    content = b"\0".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
    parts = [content]
    for match in STREAM.finditer(content):
        try:
            parts.append(zlib.decompressobj().decompress(content[match.start() : match.start() + (1 << 16)], 1 << 18))
        except zlib.error:  # no stream, or one that is cut: what comes before the cut
            parts.append(beginning(content[match.start() : match.start() + (1 << 14)]))
    return b"\0".join(parts)


def beginning(stream: bytes) -> bytes:
    """What can be read of a damaged stream."""
    decompressor, parts = zlib.decompressobj(), list[bytes]()
    try:
        for start in range(0, len(stream), 64):
            parts.append(decompressor.decompress(stream[start : start + 64]))
    except zlib.error:
        pass
    return b"".join(parts)
