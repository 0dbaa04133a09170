"""Fixtures of probes: a retriever that goes wrong on demand, and where it listens."""

from collections.abc import Iterator

import pytest
from support.retrievers import FaultyRetriever, serving


@pytest.fixture
def retriever() -> FaultyRetriever:
    """A retriever that goes wrong on demand."""
    return FaultyRetriever()


@pytest.fixture
def address(retriever: FaultyRetriever) -> Iterator[str]:
    """Where it listens."""
    with serving(*retriever.routes()) as address:
        yield address
