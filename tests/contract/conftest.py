"""Fixtures of the store's contract: each kind, opened again and again over one state."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.stores import PARAMETERS, Opened

from ragwatch.ports import Store


@pytest.fixture(params=PARAMETERS)
def store_kind(request: pytest.FixtureRequest) -> str:
    """Each kind of store."""
    return str(request.param)


@pytest.fixture
def opened(store_kind: str, tmp_path: Path) -> Iterator[Opened]:
    """Opens the store of one kind, again and again over the same state; closes the one before."""
    with closing(Opened(store_kind, tmp_path / "state")) as open_:
        yield open_


@pytest.fixture
def store(opened: Callable[[], Store]) -> Store:
    """An empty store of one kind."""
    return opened()
