"""Asks a running ragwatch to erase a person, and checks in the database that it has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ragwatch.commands.api_client import ApiClient
from ragwatch.config.validation import KindConfig
from ragwatch.errors import RagwatchError, StoreError
from ragwatch.ports import Erased, Erasure
from ragwatch.stores.encryption import TextCipher, check_keys
from ragwatch.stores.erasing import Selection
from ragwatch.stores.rows import number
from ragwatch.stores.sqlite import forgetting
from ragwatch.stores.sqlite.reader import ReadConnection
from ragwatch.stores.sqlite.store import Options

_COUNTS = ("pending", "verdicts", "labels", "others", "batched")


def forget_running(client: ApiClient, state: Path, store: KindConfig, erasure: Erasure, *, dry_run: bool) -> Erased:
    """Erase through the HTTP API. The texts, to search other files for them, are read from the database before.

    Raises:
        RagwatchError: The running ragwatch refused, has another state, or cannot be reached.
    """
    database = state / "ragwatch.db"
    cipher = store.options.cipher() if isinstance(store.options, Options) else None
    selected = _selected(database, cipher, erasure)
    body = {
        "ids": sorted(erasure.ids),
        "metadata": sorted(map(list, erasure.metadata)),
        "with_scores": erasure.with_scores,
        "dry_run": dry_run,
    }
    counts = client.forget(body)
    if selected.keys and (not counts["answers"] or (not dry_run and _remaining(database, selected.keys))):
        raise StoreError(
            f"state: {state} still contains these answers: the ragwatch that answered has another state directory; "
            "give the address of the one that uses this directory with --url, or stop it and run this again"
        )
    return _erased(counts, selected)


def _erased(counts: Mapping[str, object], selected: Selection) -> Erased:
    try:
        numbers = {name: int(number(counts[name])) for name in _COUNTS}
        keys = selected.keys or ("",) * int(number(counts["answers"]))
        return Erased(keys, selected.texts, complete=bool(counts["complete"]), **numbers)
    except (LookupError, TypeError, ValueError) as error:
        raise RagwatchError(
            f"--url: the response is not that of a ragwatch of this version ({error}); give its address"
        ) from error


def _selected(database: Path, cipher: TextCipher | None, erasure: Erasure) -> Selection:
    reader = ReadConnection(database, cipher=cipher)
    try:
        check_keys(reader.rows, cipher)
        return forgetting.select(reader, erasure)
    finally:  # an open reader would keep the write-ahead log from being truncated
        reader.close()


def _remaining(database: Path, keys: tuple[str, ...]) -> bool:
    reader = ReadConnection(database)
    try:
        return any(reader.rows("SELECT 1 FROM samples WHERE key = ? AND body <> x'00'", (key,)) for key in keys)
    finally:
        reader.close()
