"""Fixtures of stores: one that is opened again and again; of PostgreSQL a server, an empty schema, and its workers."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.postgres import Postgres, shared_server
from support.stores import WORKERS_SCHEMA, Opened, Workers, database, emptied

from ragwatch.stores.postgres import Options
from ragwatch.stores.postgres import migrations as schema
from ragwatch.stores.postgres.connections import connect
from ragwatch.stores.postgres.postgres_store import PostgresStore


@pytest.fixture
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Opens SQLite, or the kind that a parameter names, again and again over one state; closes the one before."""
    with closing(Opened(getattr(request, "param", "sqlite"), tmp_path / "state")) as open_:
        yield open_


@pytest.fixture(scope="module")
def server() -> Postgres:
    """A real server."""
    return shared_server()


@pytest.fixture
def section(server: Postgres) -> dict[str, str]:
    """The section `store` of a configuration."""
    return {"kind": "postgres", "url": server.url, "database_schema": WORKERS_SCHEMA}


@pytest.fixture
def target(server: Postgres) -> Options:
    """An empty schema."""
    emptied(server.url, WORKERS_SCHEMA)
    return database(server.url, WORKERS_SCHEMA, connections=3, timeout_seconds=20.0)


@pytest.fixture
def worker(target: Options) -> Iterator[Workers]:
    """Starts workers on one schema, and ends them."""
    workers = list[PostgresStore]()

    def start(name: str | None = None, **options: Any) -> PostgresStore:
        workers.append(PostgresStore(target.model_copy(update=options), name=name))
        return workers[-1]

    yield start
    for one in workers:
        one.close()


@pytest.fixture
def before(server: Postgres) -> Iterator[Options]:
    """A database of schema 1."""
    target = database(server.url, "before", connections=3, timeout_seconds=20.0)
    server.sql("DROP SCHEMA IF EXISTS before CASCADE")
    with connect(target) as connection:
        schema.prepare(connection, "before", schema.SCRIPTS[:1])
    yield target
    server.sql("DROP SCHEMA before CASCADE")
