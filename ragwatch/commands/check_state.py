"""Tests whether ragwatch can start with a state as it is, as `run` would find out. Nothing is changed."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from ragwatch.commands.state_reader import refuse_newer
from ragwatch.config import Config
from ragwatch.daemon.state_secret import stored_secret
from ragwatch.errors import StoreError
from ragwatch.stores.sqlite import Options
from ragwatch.stores.sqlite.disk import FAILURES, advice, reason, refuse_network
from ragwatch.stores.sqlite.opening import MARKER, check_content, refuse_missing
from ragwatch.stores.sqlite.schema import version_of


def check_state(config: Config) -> None:
    """Make the checks that the daemon makes of its state before it changes anything.

    Raises:
        StoreError: The daemon would not start.
    """
    directory = config.settings.state
    if isinstance(config.store.options, Options):
        refuse_network(directory)
        _check_database(directory / "ragwatch.db")
    stored_secret(directory)


def _check_database(path: Path) -> None:
    marker = path.with_name(MARKER)
    try:
        refuse_missing(path, marker)
        if not path.exists():
            return
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))  # whether it could be written
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as reader:
            check_content(reader, path, marker)
            refuse_newer(version_of(reader))
    except FAILURES as error:
        raise StoreError(f"state: cannot open {path}: {reason(error)}; {advice(error)}") from error
    except OSError as error:
        raise StoreError(
            f"state: cannot open {path}: {error.strerror}; it must be a file on a writable disk with free space"
        ) from error
