"""`ragwatch forget`: erases what the state contains about a person, and lists copies that it cannot erase."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from ragwatch import stores
from ragwatch.audit import AuditLog, local_actor
from ragwatch.commands.forget_elsewhere import copies_elsewhere
from ragwatch.commands.log_warnings import lock_owner
from ragwatch.commands.terminal import printable
from ragwatch.config import Config, KindConfig, load
from ragwatch.config.model import Settings
from ragwatch.errors import ConfigError, StoreError
from ragwatch.ports import Erased, Erasure, Store
from ragwatch.stores import postgres
from ragwatch.telemetry import configure_logging

NOTHING_STORED = 3
INCOMPLETE = 1


@dataclass(frozen=True, slots=True)
class _Target:
    """The store to erase from, and the configuration that it belongs to, if one is given."""

    state: Path
    store: KindConfig
    config: Config | None


def forget(
    ids: Sequence[str],
    *,
    metadata: Sequence[str],
    path: Path | None,
    state: Path | None,
    with_scores: bool,
    dry_run: bool,
) -> int:
    """Erase answers from the state. Returns 0, 3 if none is stored, 1 if something remains in free space."""
    configure_logging("error")
    target = _target(path, state)
    redactor = (Settings() if target.config is None else target.config.settings).redaction.redactor()
    pairs = {_pair(text) for text in metadata}
    if not ids and not pairs:
        raise ConfigError("ID: is missing; give ids of answers, or --metadata KEY=VALUE")
    if redactor is not None:  # the store contains what redaction has left of a value
        pairs |= {(key, redactor.redact(value)) for key, value in pairs}
    names = {*ids, *(() if redactor is None else map(redactor.redact, ids))}
    erasure = Erasure(frozenset(names), frozenset(pairs), with_scores)
    store = _open(target)
    try:
        erased = store.forget(erasure, dry_run=dry_run)
    finally:
        store.close()
    if not erased.keys:
        click.echo("no stored answer matches; nothing was erased", err=True)
        return NOTHING_STORED
    for line in _summary(erased, with_scores=with_scores, dry_run=dry_run):
        click.echo(line)
    for line in copies_elsewhere(target.state, target.config, path, erased.texts | erasure.ids):
        click.echo(printable(f"not erased: {line}"))
    if not dry_run:
        _record(target.config, erased)
    if not erased.complete:
        click.echo("bytes of the texts remain in the write-ahead log, because another program reads it", err=True)
        return INCOMPLETE
    return 0


def _target(path: Path | None, state: Path | None) -> _Target:
    if path is None and state is None:
        raise ConfigError("--config: is missing; give the configuration, or the directory with --state")
    if path is None:
        options = stores.KINDS["sqlite"].Options()
        return _Target(state or Path(), KindConfig("sqlite", options), None)
    config = load(path)
    return _Target(state or config.settings.state, config.store, config)


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key or not value:
        raise ConfigError(f"--metadata {text}: is not a key and a value; write one such as user=anna")
    return key, value


def _open(target: _Target) -> Store:
    if isinstance(target.store.options, postgres.Options):  # other workers may go on
        return postgres.connected(target.store.options)
    if not (target.state / "ragwatch.db").is_file():
        raise StoreError(f"state: {target.state} contains no ragwatch.db; give the directory with --state")
    owner = lock_owner(target.state)
    if owner is not None:
        raise StoreError(
            f"state: {target.state} is in use by a running ragwatch (process {owner}); stop it, run this again, and "
            "start it: it continues where it stopped"
        )
    store: Store = stores.KINDS[target.store.kind].build(target.store.options, target.state)
    return store


def _summary(erased: Erased, *, with_scores: bool, dry_run: bool) -> Iterator[str]:
    verb = "would be erased" if dry_run else "erased"
    what = "scores and labels" if with_scores else "texts, metadata, ids and notes; scores and labels remain"
    yield f"{len(erased.keys)} answers {verb}: {what}"
    yield f"{erased.verdicts} verdicts, {erased.labels} labels"
    if erased.pending:
        yield f'{erased.pending} pending draws: {"would become" if dry_run else "became"} unjudged{{reason="erased"}}'
    if erased.others:
        yield f"{erased.others} canary runs, states and events with these texts"
    if erased.batched:
        yield f"{erased.batched} of them are in a message batch at the provider, which keeps it for its own time"


def _record(config: Config | None, erased: Erased) -> None:
    """Write the erasure to the audit log, if one is configured."""
    if config is not None and config.settings.audit.file is not None:
        log = AuditLog(config.settings.audit.file)
        log.record(actor=local_actor(), action="forget", keys=erased.keys)
