"""Small commands of administration: `store`, `audit`, `config`, `completion`, `redact` and `detector`."""

from __future__ import annotations

import json
import secrets
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from ragwatch.audit import verify
from ragwatch.commands import cli
from ragwatch.config import load
from ragwatch.config.schema import json_schema
from ragwatch.daemon.process import stored_secret, write_secret
from ragwatch.errors import ConfigError, StoreError
from ragwatch.judges.detector.artefact import GRAPHS, PIECES
from ragwatch.judges.detector.fetch import HUB_HOSTS, Hub, RemoteFile, parse_hashes
from ragwatch.outgoing.addresses import checked_url
from ragwatch.redaction.redactor import Finding, Redactor
from ragwatch.stores import postgres
from ragwatch.stores.copying import copy_state
from ragwatch.stores.lock import StateLock
from ragwatch.stores.sqlite.sqlite_engine import ReadConnection, SqliteEngine
from ragwatch.telemetry import configure_logging
from ragwatch.terminal.event_loop import run_async
from ragwatch.terminal.options.administration import (
    AuditVerifyArguments,
    CompletionArguments,
    ConfigSchemaArguments,
    DetectorFetchArguments,
    RedactArguments,
    StoreCopyArguments,
    StoreViewsArguments,
)
from ragwatch.terminal.output import escape_line, file_name_in_errors, printable

BROKEN, NOTHING = 1, 3


def copy(given: StoreCopyArguments) -> int:
    """Copy a SQLite state into the store of a configuration, or that store into a new state. Returns 0."""
    back = given.source.is_file()
    path, state = (given.source, given.target) if back else (given.target, given.source)
    options = _postgres(path)
    counts = _to_state(options, state) if back else _from_state(state, options)
    for table, count in counts.items():
        click.echo(f"{count} rows of {table}")
    return 0


def _to_state(options: postgres.Options, state: Path) -> dict[str, int]:
    """Copy the database of a server to a new state directory."""
    with (
        closing(postgres.connected(options)) as store,
        closing(postgres.without_keys(options)) as source,
        closing(SqliteEngine(state)) as target,
    ):
        counts = copy_state(source, target)
        write_secret(state, store.shared_secret(stored_secret(state) or secrets.token_bytes(32)))
    return counts


def _from_state(state: Path, options: postgres.Options) -> dict[str, int]:
    """Copy the database of a state directory to a server."""
    with _read(state) as source, closing(postgres.connected(options)) as store:
        with closing(postgres.without_keys(options)) as target:
            counts = copy_state(source, target)
        if (secret := stored_secret(state)) is not None:
            store.shared_secret(secret)
    return counts


@contextmanager
def _read(state: Path) -> Iterator[ReadConnection]:
    """Open the database of a state directory, and lock it."""
    if not state.is_dir():
        raise StoreError(f"state: {state} does not exist; give the state directory of a SQLite store")
    database = state / "ragwatch.db"
    with closing(StateLock(state)):
        if not database.is_file():
            raise StoreError(f"state: {state} contains no ragwatch.db; give the state directory of a SQLite store")
        with closing(ReadConnection(database, tolerant=True)) as connection:
            yield connection


def views(given: StoreViewsArguments) -> int:
    """Create the views of the store of a configuration. Returns 0."""
    options = _postgres(given.path)
    if given.only_print:
        click.echo(postgres.views_text(options))
        return 0
    with closing(postgres.connected(options)):  # the tables exist from here on
        schema, every = postgres.make_views(options, given.readers)
    click.echo(f"views of schema {schema} are made; read by {', '.join(every) or 'their owner only: see --reader'}")
    return 0


def _postgres(path: Path) -> postgres.Options:
    configure_logging("error")
    config = load(path)
    options = config.store.options
    if not isinstance(options, postgres.Options):
        raise ConfigError(f"store.kind: is {config.store.kind}; name a configuration whose store is postgres")
    return options


def verify_audit(given: AuditVerifyArguments) -> int:
    """Check the chain. Returns 1 if a line was changed, deleted, inserted or moved, 3 if there is no line."""
    result = verify(given.files)
    if result.error is not None:
        click.echo(printable(f"broken: {result.error}"))
        return BROKEN
    if not result.lines:
        click.echo("no lines", err=True)
        return NOTHING
    earlier = f"; {result.first - 1} earlier ones are in other files" if result.first > 1 else ""
    click.echo(f"intact: {result.lines} lines, from {result.first} to {result.first + result.lines - 1}{earlier}")
    return 0


def schema(_: ConfigSchemaArguments) -> int:
    """Print the JSON schema of the configuration file. Returns 0."""
    click.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))
    return 0


def completion(given: CompletionArguments) -> int:
    """Print the completion script of a shell. Returns 0."""
    kind = get_completion_class(given.shell)
    if kind is None:
        raise AssertionError(f"click has no completion for {given.shell}")
    click.echo(kind(cli, {}, "ragwatch", "_RAGWATCH_COMPLETE").source())
    return 0


MAX_BYTES = 64 << 20
_SHOWN_CHARS = 2  # of a value of at least `_MIN_SHOWN` characters, at its start
_MIN_SHOWN = 12


def redact(given: RedactArguments) -> int:
    """Print rule, place and a masked excerpt of every value. Returns the exit code: 1 when there is one."""
    name = getattr(given.file, "name", "<stdin>")
    with file_name_in_errors(name):
        data = given.file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise click.UsageError(f"{name}: is larger than {MAX_BYTES >> 20} MiB; split it")
    text = data.decode("utf-8", "replace")
    redactor = (None if given.path is None else load(given.path).settings.redaction.redactor()) or Redactor()
    rows = list(_rows(text, redactor.findings(text)))
    counts = Counter(str(row["rule"]) for row in rows)
    if given.as_json:
        click.echo(json.dumps({"file": str(name), "findings": rows, "counts": dict(counts.most_common())}))
    else:
        for row in rows:
            click.echo(printable(f"{name}:{row['line']}:{row['column']}: {row['rule']}: {row['excerpt']}"))
        for rule, times in counts.most_common():
            click.echo(f"{rule}: {times}", err=True)
        click.echo(f"{len(rows)} values would be redacted" if rows else "nothing would be redacted", err=True)
    return 1 if rows else 0


def _rows(text: str, findings: list[Finding]) -> list[dict[str, object]]:
    starts = [0, *(place + 1 for place, char in enumerate(text) if char == "\n")]
    rows = []
    for finding in findings:
        line = bisect_right(starts, finding.start)
        value = text[finding.start : finding.end]
        rows.append(
            {
                "rule": finding.rule,
                "kind": str(finding.kind),
                "line": line,
                "column": finding.start - starts[line - 1] + 1,
                "length": len(value),
                "excerpt": _masked(value),
            }
        )
    return rows


def _masked(value: str) -> str:
    """The first characters of a long value; the others, and all of a short one, as asterisks.

    >>> _masked("correct horse battery"), _masked("hunter2")
    ('co*** (21 characters)', '*** (7 characters)')
    """
    shown = value[:_SHOWN_CHARS] if len(value) >= _MIN_SHOWN else ""
    return f"{' '.join(shown.split())}*** ({len(value)} characters)"


_MEGABYTE = 1_000_000


def fetch(given: DetectorFetchArguments) -> int:
    """Download a model into a folder. Returns 0."""
    run_async(_fetch(given))
    return 0


async def _fetch(given: DetectorFetchArguments) -> None:
    try:
        address = checked_url(given.hub)
        hashes = parse_hashes(given.hashes.read_text(encoding="utf-8")) if given.hashes else None
    except UnicodeDecodeError as error:
        raise ConfigError(f"--hashes: is not a text: {error}") from error
    except ValueError as error:
        raise ConfigError(f"--hub: {error}") from error
    hub = Hub(address, max_bytes=given.max_mb * _MEGABYTE, hosts=(*HUB_HOSTS, *given.hosts))
    try:
        model = await hub.model(given.model, given.revision, names=given.names, hashes=hashes)
        click.echo(f"{model.name} at commit {printable(model.commit)}", err=True)
        licence = "not stated; read its card" if model.licence is None else printable(model.licence)
        click.echo(f"licence: {licence}", err=True)
        await hub.fetch(model, given.folder, _show)
    finally:
        await hub.close()
    if not (given.folder / PIECES).exists():
        click.echo(f"the model has no {PIECES}: docs/judges.md says where to get one", err=True)
    if not any((given.folder / name).exists() for name in GRAPHS):
        click.echo("it has no ONNX graph: export one (docs/judges.md), or install the extra detector-torch", err=True)
    click.echo(f"wrote {given.folder}; use it with {{kind: detector, model: {given.folder}}}", err=True)


def _show(file: RemoteFile, there: bool) -> None:  # noqa: FBT001 - a callback
    size = "" if file.size is None else f" ({file.size / _MEGABYTE:.1f} MB)"
    click.echo(f"{'kept' if there else 'fetching'} {escape_line(file.name)}{size}", err=True)
