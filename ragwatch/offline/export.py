"""`ragwatch export`: writes stored verdicts as Parquet files, one for each day and route, or failing answers.

A file such as `verdicts/date=2026-11-23/route=search/verdicts.parquet` names the sequence number up to which it is
complete, so that a repeated run appends what is newer, whatever ended the one before. It is written under another name
and then renamed, so that readers see a whole one.
"""

from __future__ import annotations

import fcntl
import math
import os
import time
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import quote

import click
from click.core import ParameterSource

from ragwatch import __version__
from ragwatch.config import Config, load
from ragwatch.errors import ConfigError, StoreError, extra_for
from ragwatch.offline.failing_answers import NOTHING_STORED, export_failing
from ragwatch.offline.parquet_rows import COLUMNS, SCHEMA_VERSION, Column, RowRules, row_of
from ragwatch.offline.state_reader import state_reader
from ragwatch.redaction.redactor import Redactor
from ragwatch.stores.days import DayReader
from ragwatch.stores.engine import DAY
from ragwatch.stores.kept_texts import Texts
from ragwatch.terminal.given import require_route, seconds_of
from ragwatch.terminal.options.offline import ExportArguments
from ragwatch.terminal.output import file_name_in_errors, say

if TYPE_CHECKING:
    from pyarrow import DataType, Field
    from pyarrow.parquet import FileMetaData, ParquetFile


def export(given: ExportArguments) -> int:
    """Write the verdicts, or the failing answers, in a store. Returns 0, or 3 if there are none."""
    _check_kinds(given.parquet, given.kind, failing=given.failing, out=given.out)
    config = load(given.path)
    for route in given.routes:
        require_route(config, route)
    if given.kind is not None:
        return export_failing(config, given.kind, given)
    if given.parquet is None:
        raise ConfigError("--parquet: is missing; give the directory to write to, or --failing with --as")
    return _export_parquet(config, given.parquet, given)


def _check_kinds(parquet: Path | None, kind: str | None, *, failing: bool, out: Path | None) -> None:
    """Refuse options that do not say, or say twice, what to write."""
    if failing != (kind is not None):
        missing, given = ("--as", "--failing") if failing else ("--failing", "--as")
        raise ConfigError(f"{missing}: is missing; {given} needs it")
    if parquet is not None and (failing or out is not None):
        raise ConfigError("--parquet: writes all verdicts to its directory; leave --failing, --as and --out out")
    for name in ("judge", "quantity", "limit") if parquet is not None else ():
        if click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise ConfigError(f"--{name}: is for --failing, and --parquet writes all verdicts; leave it out")


def _export_parquet(config: Config, parquet: Path, given: ExportArguments) -> int:
    redact = None
    if given.texts != "none":
        if config.texts == Texts.NONE:
            raise ConfigError("--texts redacted: store.texts is none, so that no texts are kept; give --texts none")
        redact = (config.settings.redaction.redactor() or Redactor()).redact
    start = -math.inf
    if given.since is not None:  # files are of whole days
        start = math.floor((time.time() - seconds_of(f"--since {given.since}", given.since)) / DAY) * DAY
    dataset = ParquetDataset(parquet, RowRules(redact, config.texts, tuple(dict.fromkeys(given.metadata))))
    total: Counter[str] = Counter()
    with state_reader(config) as store, dataset.locked():
        reader = DayReader(store.engine)
        until = reader.newest_seq()  # what is settled meanwhile is left to the next run
        for day in reader.days(start):
            total += dataset.add_day(reader, day, until, frozenset(given.routes))
        unreadable = reader.unreadable
    if unreadable:
        say(f"{unreadable} damaged rows cannot be read and are left out")
    if not total:
        say("no verdict is stored yet, or none of these routes and days; nothing was written")
        return NOTHING_STORED
    click.echo(f"{total['rows']} verdicts added, {total['files']} files written, {total['unchanged']} unchanged")
    return 0


EXTRA = "parquet"
TABLE, FILE, LOCK = "verdicts", "verdicts.parquet", ".ragwatch.lock"
TEMPORARY = ".verdicts-"  # readers of datasets skip names that begin with a dot
NO_ROUTE = "__HIVE_DEFAULT_PARTITION__"
MAX_GROUP_ROWS, MAX_GROUP_CHARS = 5_000, 8 << 20
_TEXTS, _METADATA, _LAST, _LAST_KEY = "ragwatch.texts", "ragwatch.metadata", "ragwatch.last_seq", "ragwatch.last_key"
_VERSION = "ragwatch.schema_version"


class ParquetDataset:
    """A directory of Parquet files that verdicts are added to, which is created.

    A row group, which is collected in memory, ends at its numbers of rows and of characters.
    """

    def __init__(
        self, folder: Path, rules: RowRules, *, group_rows: int = MAX_GROUP_ROWS, group_chars: int = MAX_GROUP_CHARS
    ) -> None:
        with extra_for("--parquet", EXTRA):
            import pyarrow as pa  # noqa: PLC0415 - an extra
            from pyarrow import parquet  # noqa: PLC0415 - the same
        self._arrow: ModuleType = pa
        self._parquet: ModuleType = parquet
        self._folder, self._rules = folder, rules
        self._group_rows, self._group_chars = group_rows, group_chars
        self._schema = pa.schema([_field(pa, column) for column in COLUMNS])
        self._settings = {
            _VERSION: str(SCHEMA_VERSION),
            _TEXTS: "none" if rules.redact is None else "redacted",
            _METADATA: ",".join(sorted(rules.metadata)),
        }

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out of the directory, with `StoreError`, and delete what ended ones have left."""
        table = self._folder / TABLE
        try:
            table.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"--parquet {self._folder}: cannot be written: {error.strerror}") from error
        with (table / LOCK).open("wb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise StoreError(f"--parquet: another run writes to {self._folder}; wait until it has ended") from error
            for left in table.glob(f"date=*/route=*/{TEMPORARY}*"):
                left.unlink()
            yield

    def add_day(self, reader: DayReader, day: int, until_seq: int, routes: frozenset[str]) -> Counter[str]:
        """Add the verdicts of a day, given in days since 1970-01-01, that its files lack.

        Those after the sequence number `until_seq` are left to the next run; no routes are all routes. Returns how many
        `rows` and `files` were written, and how many files were complete already (`unchanged`). `StoreError` if a file
        is of another store, or of other options.
        """
        written: Counter[str] = Counter()
        for route, seqs in reader.of_day(day, until_seq).items():
            if routes and route not in routes:
                continue
            path = self.path_of(day, route)
            with file_name_in_errors(str(path)):
                added = self._add(path, reader, seqs)
            written.update({"unchanged": 1} if added is None else {"files": 1, "rows": added})
        return written

    def path_of(self, day: int, route: str) -> Path:
        """Return the path of the file of a day and a route."""
        folder = self._folder / TABLE / f"date={date(1970, 1, 1) + timedelta(days=day)}"
        return folder / f"route={quote(route, safe='') if route else NO_ROUTE}" / FILE

    def _add(self, path: Path, reader: DayReader, seqs: array[int]) -> int | None:
        """Write a file with the rows that it has and those that it lacks. Returns their number; None for none."""
        old = self._opened(path, reader)
        if old is not None:
            complete = int(_settings_of(old)[_LAST])
            seqs = array("q", (seq for seq in seqs if seq > complete))
            if not seqs:
                old.close()
                return None
        try:
            return self._write(path, reader, seqs, old)
        finally:
            if old is not None:
                old.close()

    def _write(self, path: Path, reader: DayReader, seqs: array[int], old: ParquetFile | None) -> int:
        path.parent.mkdir(parents=True, exist_ok=True)
        name = reader.name_of(seqs[-1])
        last = {_LAST: str(seqs[-1]), _LAST_KEY: "" if name is None else "/".join(name)}
        schema = self._schema.with_metadata({**self._settings, **last, "ragwatch.version": __version__})
        rows = 0
        temporary = path.with_name(f"{TEMPORARY}{os.getpid()}")
        try:
            with temporary.open("wb") as file:
                if self._rules.redact is not None:
                    temporary.chmod(0o600)
                with self._parquet.ParquetWriter(file, schema, compression="zstd") as writer:
                    if old is not None:
                        for groups in self._joined(old.metadata):
                            writer.write_table(old.read_row_groups(groups).replace_schema_metadata(schema.metadata))
                    for group in self._groups(reader, seqs):
                        rows += len(group)
                        writer.write_table(self._arrow.Table.from_pylist(group, schema=schema))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return rows

    def _joined(self, metadata: FileMetaData) -> Iterator[list[int]]:
        """Yield the numbers of the row groups of a file; of small ones, as many together as fit into memory."""
        joined: list[int] = []
        rows, size = 0, 0
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            if joined and (
                rows + group.num_rows > self._group_rows or size + group.total_byte_size > self._group_chars
            ):
                yield joined
                joined, rows, size = [], 0, 0
            joined.append(number)
            rows, size = rows + group.num_rows, size + group.total_byte_size
        if joined:
            yield joined

    def _groups(self, reader: DayReader, seqs: array[int]) -> Iterator[list[dict[str, object]]]:
        """Yield lists of rows that fit into memory."""
        group: list[dict[str, object]] = []
        chars = 0
        for item in reader.verdicts(seqs):
            group.append(row_of(item, self._rules))
            chars += _chars(group[-1].values())
            if len(group) >= self._group_rows or chars >= self._group_chars:
                yield group
                group, chars = [], 0
        if group:
            yield group

    def _opened(self, path: Path, reader: DayReader) -> ParquetFile | None:
        """Open an existing file; None if there is none, `StoreError` if it cannot be added to."""
        if not path.exists():
            return None
        try:
            old: ParquetFile = self._parquet.ParquetFile(path)
            settings = _settings_of(old)
            last = int(settings[_LAST])
        except (self._arrow.ArrowException, LookupError, ValueError) as error:
            raise StoreError(
                f"--parquet: {path} is not an exported file; delete it, and it is written again"
            ) from error
        for name, option in ((_VERSION, "schema"), (_TEXTS, "--texts"), (_METADATA, "--metadata")):
            if settings.get(name) != self._settings[name]:
                old.close()
                raise StoreError(
                    f"--parquet: {path} has {option} {settings.get(name) or 'none'}, this run has "
                    f"{self._settings[name] or 'none'}; give the same options, or another directory"
                )
        stored = reader.name_of(last)
        if last > reader.highest_seq() or (stored is not None and "/".join(stored) != settings[_LAST_KEY]):
            old.close()
            raise StoreError(f"--parquet: {path} was exported from another store; give another directory")
        return old


def _settings_of(file: ParquetFile) -> dict[str, str]:
    metadata: Mapping[bytes, bytes] = file.schema_arrow.metadata or {}
    return {name.decode(): value.decode() for name, value in metadata.items()}


def _chars(values: Iterable[object]) -> int:
    """Roughly the number of characters in values."""
    total = 0
    for value in values:
        inner = value.values() if isinstance(value, dict) else value
        total += len(inner) if isinstance(inner, str) else _chars(inner) if isinstance(inner, Iterable) else 8
    return total


def _field(arrow: ModuleType, column: Column) -> Field:
    return arrow.field(column.name, _type(arrow, column), nullable=not column.required)


def _type(arrow: ModuleType, column: Column) -> DataType:
    if isinstance(column.type, tuple):
        return arrow.list_(arrow.struct([_field(arrow, inner) for inner in column.type]))
    return {
        "bool": arrow.bool_(),
        "double": arrow.float64(),
        "int32": arrow.int32(),
        "int64": arrow.int64(),
        "string": arrow.string(),
        "timestamp": arrow.timestamp("us", tz="UTC"),
        "list<int32>": arrow.list_(arrow.int32()),
        "list<string>": arrow.list_(arrow.string()),
        "map<string, double>": arrow.map_(arrow.string(), arrow.float64()),
        "map<string, string>": arrow.map_(arrow.string(), arrow.string()),
    }[column.type]
