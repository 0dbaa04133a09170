"""Fixtures of all tests: a store in a directory of its own, a telemetry that keeps its log, and Hypothesis settled."""

import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("GOGC", "400")  # a quarter less CPU for promtool, Prometheus and Alertmanager, for some memory
os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # for tests that import onnxruntime themselves; ragwatch sets it by itself

import pytest
import structlog
from hypothesis import HealthCheck, settings
from structlog.testing import LogCapture
from support.draws import EXAMPLES
from support.parsed import trees

from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.telemetry import Telemetry

_HOUSE = Path(__file__).parent / "house"

collect_ignore = ["traced"]  # programs that run in an environment of their own, with the frameworks that they use
pytest_plugins = (
    "support.counting",  # first: others import it
    "support.isolation",
    "support.workers",
    "support.alone",
    "support.stuck",
    "support.postgres",
)

settings.register_profile(
    "house",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=EXAMPLES,
)
settings.load_profile("house")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Parse the package before workers are forked, if several modules of house tests will look at its code."""
    if len({item.path for item in session.items if item.path.parent == _HOUSE}) > 1:
        trees()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """An empty store."""
    found = SqliteStore(tmp_path / "state")
    yield found
    found.close()


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """A test that configures logging leaves none of it to the next."""
    yield
    structlog.reset_defaults()


@pytest.fixture(autouse=True)
def own_interrupts() -> Iterator[None]:
    """A test that runs the command line in this process leaves Ctrl-C to the next as it was."""
    handler, hook = signal.getsignal(signal.SIGINT), sys.unraisablehook
    yield
    signal.signal(signal.SIGINT, handler)
    sys.unraisablehook = hook


@pytest.fixture
def log() -> LogCapture:
    """Everything that `telemetry` logs."""
    return LogCapture()


@pytest.fixture
def telemetry(log: LogCapture) -> Telemetry:
    """Telemetry that logs into `log`."""
    whole = structlog.make_filtering_bound_logger(logging.NOTSET)
    return Telemetry(structlog.wrap_logger(None, processors=[log], wrapper_class=whole))
