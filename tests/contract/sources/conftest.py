"""Fixtures of the sources' contract: brokers of each kind, and one store."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.all_brokers import Brokers

from ragwatch.stores.sqlite.store import SqliteStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """An empty store."""
    one = SqliteStore(tmp_path / "state")
    yield one
    one.close()


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """Servers of this module."""
    servers = Brokers(tmp_path_factory.mktemp("brokers"))
    yield servers
    servers.close()


@pytest.fixture
def queue(request: pytest.FixtureRequest, brokers: Brokers) -> Iterator[Any]:
    """A queue of the kind that the test asks for."""
    kind, options = request.param if isinstance(request.param, tuple) else (request.param, {})
    one = brokers.queue(kind, **options)
    yield one
    one.close()
