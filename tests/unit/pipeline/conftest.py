"""Fixtures of the pipeline: an export of scores to a backend."""

from collections.abc import Iterator

import pytest
from support.otlp_backend import Exporting, OtlpBackend

from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry


@pytest.fixture
def backend() -> Iterator[OtlpBackend]:
    """A backend that accepts everything."""
    found = OtlpBackend()
    yield found
    found.close()


@pytest.fixture
def exporting(backend: OtlpBackend, store: SqliteStore, telemetry: Telemetry) -> Exporting:
    """Export to `backend`."""
    return Exporting(backend, store, telemetry)
