"""A log, and what follows it."""

from pathlib import Path

import pytest
from support.tail_reader import LIVE, Reader


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a log will be written."""
    return tmp_path / LIVE


@pytest.fixture
def reader(path: Path) -> Reader:
    """What reads that log from its beginning; nothing is looked at before its first step."""
    return Reader(path)
