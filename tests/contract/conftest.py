"""Fixtures of the store's contract: each kind, opened again and again over one state."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.stores import PARAMETERS, open_store

from ragwatch.ports import Store


@pytest.fixture(params=PARAMETERS)
def store_kind(request: pytest.FixtureRequest) -> str:
    """Each kind of store."""
    return str(request.param)


@pytest.fixture
def opened(store_kind: str, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Opens the store of one kind, again and again over the same state; closes the one before."""
    stores = list[Store]()

    def open_() -> Store:
        if stores:
            stores.pop().close()
        stores.append(open_store(store_kind, tmp_path / "state"))
        return stores[-1]

    yield open_
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Callable[[], Store]) -> Store:
    """An empty store of one kind."""
    return opened()
