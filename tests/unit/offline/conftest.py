"""Fixtures of commands that read a state: the store of a daemon that runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ragwatch.stores.sqlite.store import SqliteStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """The store of a running daemon, in `state`; a module may fill it."""
    opened = SqliteStore(tmp_path / "state")
    yield opened
    opened.close()
