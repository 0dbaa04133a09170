"""Clients for labels and verdicts: the running daemon, or the state directory if none is running."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import SystemRandom
from typing import Protocol

from ragwatch import stores
from ragwatch.commands.api_client import ApiClient, address_of, answer_chars_of, read_token
from ragwatch.config import Config
from ragwatch.core.labels.label import LabelTask
from ragwatch.core.sampling import SamplingHash
from ragwatch.core.verdict_line import VerdictRecord
from ragwatch.daemon.state_secret import state_secret
from ragwatch.errors import StoreError
from ragwatch.pipeline.labels.tasks import LabelTasks
from ragwatch.pipeline.labels.verdicts import LabelRules
from ragwatch.ports import Query, Store


class LabelClient(Protocol):
    """Reads and stores labels as JSON values."""

    def tasks(self, annotator: str, count: int) -> Sequence[LabelTask]:
        """Samples for an annotator, in the order in which to show them."""
        ...

    def put(self, records: Iterable[Mapping[str, object]]) -> Mapping[str, int]:
        """Store labels. Returns how many are new, replaced and unmatched."""
        ...

    def revoke(self, key: str, annotator: str | None) -> int:
        """Take labels on a sample back, of one annotator or of all. Returns how many."""
        ...

    def labels(self) -> Sequence[Mapping[str, object]]:
        """All labels, oldest first."""
        ...

    def pruned_until(self) -> float | None:
        """Instant up to which retention has deleted a part of the answers; None where it has deleted none."""
        ...

    def verdicts(self, key: str) -> list[VerdictRecord]:
        """The verdicts on an answer."""
        ...

    def answer_chars(self, key: str) -> int | None:
        """Length of an answer in characters; None if its whole text is not available."""
        ...


class StateClient:
    """Client of the state directory, for use while no daemon is running.

    Args:
        store: Open, with its lock held.
        rules: Names the judges and their versions.
        refuse: See `LabelTasks`.
        secret: Secret of the state.
    """

    def __init__(
        self, store: Store, rules: LabelRules, refuse: Callable[[], None] = lambda: None, secret: bytes = b""
    ) -> None:
        self._store = store
        self._tasks = LabelTasks(
            rules,
            store=store,
            clock=time.time,
            uniform=SystemRandom().random,
            refuse=refuse,
            sampling=SamplingHash(secret),
        )

    def tasks(self, annotator: str, count: int) -> Sequence[LabelTask]:
        """See `LabelClient`."""
        return self._tasks.tasks(annotator, count)

    def put(self, records: Iterable[Mapping[str, object]]) -> Mapping[str, int]:
        """See `LabelClient`."""
        return self._tasks.put(records)

    def revoke(self, key: str, annotator: str | None) -> int:
        """See `LabelClient`."""
        return self._tasks.revoke(key, annotator)

    def labels(self) -> Sequence[Mapping[str, object]]:
        """See `LabelClient`."""
        return list(self._tasks.labels())

    def pruned_until(self) -> float | None:
        """See `LabelClient`."""
        return self._tasks.pruned_until()

    def verdicts(self, key: str) -> list[VerdictRecord]:
        """See `LabelClient`."""
        return [stored.verdict for stored in self._store.find(Query(key=key))]

    def answer_chars(self, key: str) -> int | None:
        """See `LabelClient`."""
        return next((answer_chars_of(stored.sample) for stored in self._store.find(Query(key=key, limit=1))), None)


@contextmanager
def label_client(config: Config, url: str | None, token_file: Path | None = None) -> Iterator[LabelClient]:
    """Open a client: for `url` if given, else for the state directory, else for the daemon that has locked it.

    Args:
        config: The configuration.
        url: Address of the running ragwatch.
        token_file: File of the bearer token, for a running ragwatch.

    Raises:
        RagwatchError: The state directory does not exist, or the default judge has no verdicts.
    """
    if url is not None:
        yield ApiClient(url, read_token(token_file))
        return
    if not config.settings.state.is_dir():
        raise StoreError(f"state: {config.settings.state} does not exist; nothing has been judged yet")
    try:
        store = stores.KINDS[config.store.kind].build(config.store.options, config.settings.state)
    except StoreError as error:
        if "is locked" not in str(error):
            raise
        yield ApiClient(address_of(config), read_token(token_file))
        return
    try:
        yield StateClient(
            store,
            _label_rules(config, _judge_versions(config, store)),
            partial(config.require_texts, "labelling"),
            state_secret(config.settings.state, store),
        )
    finally:
        store.close()


def _label_rules(config: Config, versions: Mapping[str, str]) -> LabelRules:
    judges = [judge.place for judge in config.judges]
    settings = config.settings
    return settings.labels.rules(judges, versions, settings.estimates.confidence, settings.criterion_rules)


def _judge_versions(config: Config, store: Store) -> dict[str, str]:
    """Version of each judge in its newest verdict. No judge is built, because that may need API keys.

    Raises:
        StoreError: The default judge has none.
    """
    names = [judge.place.name for judge in config.judges]
    newest = {name: store.find(Query(judge=name, outcome="judged", limit=1)) for name in names}
    if not newest[names[0]]:
        raise StoreError(f"state: judge {names[0]} has read nothing yet; run ragwatch until it has judged some samples")
    return {name: rows[0].verdict.judge_version for name, rows in newest.items() if rows}
