"""Fixtures of the PostgreSQL store: a real server, an empty schema, and workers on it."""

from collections.abc import Iterator
from typing import Any

import pytest
from support.postgres import Postgres, shared_server
from support.stores import WORKERS_SCHEMA, Workers, database, emptied

from ragwatch.stores.postgres import Options
from ragwatch.stores.postgres.postgres_store import PostgresStore


@pytest.fixture(scope="module")
def server() -> Postgres:
    """A real server."""
    return shared_server()


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
