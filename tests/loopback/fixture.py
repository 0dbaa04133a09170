"""The server as fixtures: one process for a whole run of tests, and a new script for each test.

`from loopback.fixture import loopback, loopback_process` in a conftest makes them known to the tests beside it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from loopback.process import KEY, LoopbackProcess  # noqa: F401 - imported beside the fixtures


@pytest.fixture(scope="session")
def loopback_process() -> Iterator[LoopbackProcess]:
    """One process for all tests."""
    with LoopbackProcess() as found:
        yield found


@pytest.fixture
def loopback(loopback_process: LoopbackProcess) -> LoopbackProcess:
    """The process with an empty script and an empty record."""
    loopback_process.control()
    return loopback_process
