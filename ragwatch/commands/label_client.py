"""Clients for labels and verdicts: the running daemon, or the state directory if none is running."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import SystemRandom

from ragwatch import stores
from ragwatch.commands.api_client import ApiClient, address_of, answer_chars_of, read_token
from ragwatch.config import Config
from ragwatch.daemon.state_secret import state_secret
from ragwatch.errors import StoreError
from ragwatch.pipeline.labels.tasks import LabelTasks
from ragwatch.ports import Query, Store
from ragwatch.statistics.sampling import SamplingHash
from ragwatch.statistics.verdict_line import VerdictRecord


class StateClient(LabelTasks):
    """What `ApiClient` says of labels, from an open store whose lock is held."""

    def verdicts(self, key: str) -> list[VerdictRecord]:
        """Return the verdicts on an answer."""
        return [stored.verdict for stored in self._store.find(Query(key=key))]

    def answer_chars(self, key: str) -> int | None:
        """Length of an answer in characters; None if its whole text is not available."""
        return next((answer_chars_of(stored.sample) for stored in self._store.find(Query(key=key, limit=1))), None)


LabelClient = ApiClient | StateClient


@contextmanager
def label_client(config: Config, url: str | None, token_file: Path | None = None) -> Iterator[LabelClient]:
    """Open a client: for `url` if given, else for the state directory, else for the daemon that has locked it.

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
        settings, judges = config.settings, [judge.place for judge in config.judges]
        versions = _judge_versions(config, store)
        yield StateClient(
            settings.labels.rules(judges, versions, settings.estimates.confidence, settings.criterion_rules),
            store=store,
            clock=time.time,
            uniform=SystemRandom().random,
            refuse=partial(config.require_texts, "labelling"),
            sampling=SamplingHash(state_secret(settings.state, store)),
        )
    finally:
        store.close()


def _judge_versions(config: Config, store: Store) -> dict[str, str]:
    """Version of each judge in its newest verdict. No judge is built, because that may need API keys."""
    names = [judge.place.name for judge in config.judges]
    newest = {name: store.find(Query(judge=name, outcome="judged", limit=1)) for name in names}
    if not newest[names[0]]:
        raise StoreError(f"state: judge {names[0]} has read nothing yet; run ragwatch until it has judged some samples")
    return {name: rows[0].verdict.judge_version for name, rows in newest.items() if rows}
