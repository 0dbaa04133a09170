"""Every kind of store over a state directory; with PostgreSQL, it stands for a schema that is emptied.

Also everything that can be read from the bytes of such a folder.
"""

import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ragwatch.model.evidence import Evidence
from ragwatch.model.sample import Draw
from ragwatch.ports import Store
from ragwatch.statistics.tally import Invariant, violations
from ragwatch.stores import KINDS
from ragwatch.stores.postgres import Options
from ragwatch.stores.postgres.connections import connect
from ragwatch.stores.postgres.postgres_store import PostgresStore
from support.kit import a_verdict, an_admission
from support.postgres import shared_server

SCHEMA, WORKERS_SCHEMA = "contract", "workers"
PARAMETERS = [pytest.param(kind, marks=[pytest.mark.costly] if kind == "postgres" else []) for kind in sorted(KINDS)]
"""Kinds as parameters of tests."""

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


def admit_and_settle(store: Store, *draws: Draw, evidence: Evidence | None = None) -> None:
    """Admit draws, and settle them with one evidence."""
    store.admit(an_admission(*draws))
    store.settle([a_verdict(draw, evidence) for draw in draws])


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
