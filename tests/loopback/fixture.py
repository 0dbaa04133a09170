"""The server as fixtures: one process for a whole run of tests, a new script for each test, and clients that ask it.

`from loopback.fixture import loopback, loopback_process` in a conftest makes them known to the tests beside it.
"""

from collections.abc import Iterator

import anthropic
import httpx
import pytest
from support.patience import DEADLINE

from loopback.process import KEY, LoopbackProcess


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


@pytest.fixture
def claude(loopback: LoopbackProcess) -> Iterator[anthropic.Anthropic]:
    """The real client, which repeats nothing."""
    with anthropic.Anthropic(api_key=KEY, base_url=loopback.address, max_retries=0, timeout=DEADLINE) as client:
        yield client


@pytest.fixture
def web(loopback: LoopbackProcess) -> Iterator[httpx.Client]:
    """A plain client with the key."""
    with httpx.Client(
        base_url=loopback.address, headers={"authorization": f"Bearer {KEY}"}, timeout=DEADLINE
    ) as client:
        yield client
