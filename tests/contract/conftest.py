"""Fixtures of the store's contract: each kind, opened again and again over one state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ragwatch.ports import Kind, Store
from ragwatch.stores import KINDS


@pytest.fixture(params=sorted(KINDS))
def store_kind(request: pytest.FixtureRequest) -> Kind[Store]:
    """Each kind of store."""
    return KINDS[request.param]


@pytest.fixture
def opened(store_kind: Kind[Store], tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Opens the store of one kind, again and again over the same state; closes the one before."""
    stores = list[Store]()

    def open_() -> Store:
        if stores:
            stores.pop().close()
        stores.append(store_kind.build(store_kind.Options(), tmp_path / "state"))
        return stores[-1]

    yield open_
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Callable[[], Store]) -> Store:
    """An empty store of one kind."""
    return opened()
