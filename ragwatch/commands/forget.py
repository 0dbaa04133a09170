"""`ragwatch forget`: erases what the state contains about a person, and lists copies that it cannot erase."""

from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import click

from ragwatch.audit import AuditLog, local_actor
from ragwatch.commands.api_client import ApiClient, address_of, lock_owner, read_token, reply_of_this_version
from ragwatch.config import Config, load
from ragwatch.config.model import Settings
from ragwatch.config.text import load_text
from ragwatch.config.validation import KindConfig
from ragwatch.daemon.process import KEY_FILE
from ragwatch.errors import ConfigError, StoreError
from ragwatch.offline.state_reader import is_shared, writable_store
from ragwatch.ports import Erased, Erasure
from ragwatch.ports.capabilities import HasLogFiles
from ragwatch.stores.encryption import check_keys
from ragwatch.stores.forgetting import select
from ragwatch.stores.rows import number
from ragwatch.stores.sqlite.opening import MARKER, TEMPORARY
from ragwatch.stores.sqlite.sqlite_engine import ReadConnection
from ragwatch.stores.sqlite.store import Options
from ragwatch.terminal.options import usual_config
from ragwatch.terminal.options.administration import ForgetArguments
from ragwatch.terminal.output import printable, say

OWN_FILES = (
    *("ragwatch.db", "ragwatch.db-wal", "ragwatch.db-shm", "ragwatch.lock", "ragwatch.worker"),
    *(MARKER, TEMPORARY, KEY_FILE),
)
MAX_SEARCHED_BYTES = 64 << 20
INCOMPLETE, NOTHING_STORED = 1, 3


def copies_elsewhere(config: Config, path: Path | None, texts: Collection[str]) -> Iterator[str]:
    """Yield one line for each place: files beside the database, logs, suites, anchors, providers, backups.

    Suites and anchors of the configuration, whose file is `path`, are searched for the texts.
    """
    state, audit = config.settings.state, config.settings.audit.file
    own = {*OWN_FILES, *(() if audit is None else (audit.name, f"{audit.name}.last"))}  # an audit log has no texts
    for file in sorted(state.iterdir() if state.is_dir() else ()):
        if file.name not in own:
            yield f"{file}: beside the database; delete it if it is a backup"
    if path is not None:
        yield from map(_source_line, config.sources)
        yield from (f"{file}: {_search(file, texts)}" for file in _referenced_files(config, path))
        for judge in config.judges:
            if getattr(judge.options, "base_url", None):
                yield f"judge {judge.place.name}: texts were sent to {judge.options.base_url}; see its retention"  # type: ignore[attr-defined]  # checked above
    yield "backups of the state, exported files (suggested suites, labels, qrels, reports): ragwatch does not know them"


def _source_line(source: KindConfig) -> str:
    if isinstance(source.options, HasLogFiles):
        patterns = ", ".join(source.options.patterns)
        return f"{patterns}: the logs of source {source.options.name}; what is not read yet will be stored"
    return f"source {getattr(source.options, 'name', source.kind)}: whoever sends it keeps its own copy"


def _referenced_files(config: Config, path: Path) -> Iterator[Path]:
    """Files that the configuration names: canary suites, anchors, rollout variants."""
    folder = path.resolve().parent
    suites = load_text(path).get("canaries")
    names = (suite.get("file") for suite in (suites if isinstance(suites, list) else ()) if isinstance(suite, dict))
    yield from (folder / name for name in names if isinstance(name, str))
    if config.settings.anchors is not None:
        yield folder / config.settings.anchors.file


def _search(file: Path, texts: Collection[str]) -> str:
    """Whether a file contains one of the texts, as text for people."""
    try:
        if file.stat().st_size > MAX_SEARCHED_BYTES:
            return "is too large to be searched; search it yourself"
        content = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    lines = [number for number, line in enumerate(content.splitlines(), 1) if any(text in line for text in texts)]
    return f"line {lines[0]} contains one of the texts; edit it" if lines else "contains none of the ids and texts"


def forget(given: ForgetArguments) -> int:
    """Erase answers from the state. Returns 0, 3 if none is stored, 1 if something remains in free space."""
    path = given.path or (usual_config() if given.state is None else None)
    config = _config(path, given.state)
    state = config.settings.state
    if not given.ids and not given.metadata:
        raise ConfigError("ID: is missing; give ids of answers, or --metadata KEY=VALUE")
    redactor = config.settings.redaction.redactor()
    erasure = Erasure(frozenset(given.ids), frozenset(map(_pair, given.metadata)), given.with_scores)
    if redactor is not None:
        erasure = erasure.redacted(redactor.redact)
    shared = is_shared(config.store)
    if not shared and not (state / "ragwatch.db").is_file():
        raise StoreError(f"state: {state} contains no ragwatch.db; give the directory with --state")
    address = None if shared else _running(config, path, given.url)  # workers that share a database go on
    if address is None:
        erased = _erase(config, erasure, dry_run=given.dry_run)
    else:
        client = ApiClient(address, read_token(given.token_file))
        erased = _forget_running(client, config, erasure, dry_run=given.dry_run)
    if not erased.keys:
        say("no stored answer matches; nothing was erased")
        return NOTHING_STORED
    for line in _summary(erased, with_scores=given.with_scores, dry_run=given.dry_run):
        click.echo(line)
    for line in copies_elsewhere(config, path, erased.texts | erasure.ids):
        click.echo(printable(f"not erased: {line}"))
    if not erased.complete:
        say("bytes of the texts remain in the write-ahead log, because another program reads it")
        return INCOMPLETE
    return 0


def _config(path: Path | None, state: Path | None) -> Config:
    """The configuration, of which `--state` replaces the state directory, or the defaults for that directory."""
    if path is not None:
        config = load(path)
    elif state is not None:
        config = Config(Settings(), (), (), KindConfig("sqlite", Options()))
    else:
        raise ConfigError("--config: is missing; give the configuration, or the directory with --state")
    update = {} if state is None else {"state": state}
    return replace(config, settings=config.settings.model_copy(update=update))


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key or not value:
        raise ConfigError(f"--metadata {text}: is not a key and a value; write one such as user=anna")
    return key, value


def _running(config: Config, path: Path | None, url: str | None) -> str | None:
    """Address of the ragwatch that uses the state directory; None if none does."""
    owner = lock_owner(config.settings.state)
    if url is not None or owner is None:
        return url
    if path is None:
        raise StoreError(
            f"state: {config.settings.state} is in use by a running ragwatch (process {owner}); give --config or "
            "--url, so that it can be asked, or stop it"
        )
    return address_of(config)


def _erase(config: Config, erasure: Erasure, *, dry_run: bool) -> Erased:
    """Erase from a state directory that nobody uses, or from a database that workers share."""
    with writable_store(config.store, config.settings.state) as store:
        erased = store.forget(erasure, dry_run=dry_run)
    audit = config.settings.audit.file
    if erased.keys and not dry_run and audit is not None:
        AuditLog(audit).record(actor=local_actor(), action="forget", keys=erased.keys)
    return erased


def _summary(erased: Erased, *, with_scores: bool, dry_run: bool) -> Iterator[str]:
    verb = "would be erased" if dry_run else "erased"
    what = "scores and labels" if with_scores else "texts, metadata, ids and notes; scores and labels remain"
    yield f"{len(erased.keys)} answers {verb}: {what}"
    yield f"{erased.verdicts} verdicts, {erased.labels} labels"
    if erased.feedback:
        yield f"feedback of users on {erased.feedback} of them"
    if erased.pending:
        yield f'{erased.pending} pending draws: {"would become" if dry_run else "became"} unjudged{{reason="erased"}}'
    if erased.others:
        yield f"{erased.others} canary runs, states and events with these texts"
    if erased.batched:
        yield f"{erased.batched} of them are in a message batch at the provider, which keeps it for its own time"


_COUNTS = ("pending", "verdicts", "labels", "others", "batched")


def _forget_running(client: ApiClient, config: Config, erasure: Erasure, *, dry_run: bool) -> Erased:
    """Erase through the HTTP API. The texts, to search other files for them, are read from the database before."""
    state, options = config.settings.state, config.store.options
    database = state / "ragwatch.db"
    cipher = options.cipher() if isinstance(options, Options) else None
    with closing(ReadConnection(database, cipher=cipher)) as reader:  # an open one would keep the log from shrinking
        check_keys(reader.rows, cipher)
        selected, texts = select(reader, erasure)
    body = {
        "ids": sorted(erasure.ids),
        "metadata": sorted(map(list, erasure.metadata)),
        "with_scores": erasure.with_scores,
        "dry_run": dry_run,
    }
    counts = client.operate("forget", body)
    with closing(ReadConnection(database)) as reader:
        stored = "SELECT 1 FROM samples WHERE key = ? AND body <> x'00'"
        remain = not dry_run and any(reader.rows(stored, (key,)) for key in selected)
    if selected and (remain or counts.get("answers") == 0):
        raise StoreError(
            f"state: {state} still contains these answers: the ragwatch that answered has another state directory; "
            "give the address of the one that uses this directory with --url, or stop it and run this again"
        )
    with reply_of_this_version(client.address):
        numbers = {name: int(number(counts[name])) for name in _COUNTS}
        keys = selected or ("",) * int(number(counts["answers"]))
        return Erased(keys, texts, complete=bool(counts["complete"]), **numbers)
