"""Gets the texts of contexts that a log names by id, from a file with the corpus: the option `resolve` of a source.

SQLite is asked for each record. JSONL, a JSON array and CSV with a header are kept in memory, and read again when an id
is missing and the file has changed.
"""

import csv
import io
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import orjson

from ragwatch.errors import ConfigError, FormatError, SourceError
from ragwatch.formats import fields
from ragwatch.model.sample import RejectReason

_MAX_BYTES = 256 << 20
"""Size of the largest file that is kept in memory."""
_SQLITE = b"SQLite format 3\x00"
_MAX_ID_CHARS = 200
_KEYS = ("file", "id", "text", "table")


class Corpus:
    """Texts by id.

    Args:
        option: Value of the option `resolve`: the `file`, the fields or columns `id` and `text` (by default of these
            names), and the `table` of a SQLite file.
    """

    def __init__(self, option: Mapping[str, str]) -> None:
        for key in option:
            if key not in _KEYS:
                raise ConfigError(f"resolve.{key}: unknown, use {', '.join(_KEYS)}")
        path = Path(option.get("file", ""))
        if not path.is_file():
            raise ConfigError(f"resolve.file: {str(path)!r} is no file; write the path of a JSONL, CSV or SQLite file")
        try:
            with path.open("rb") as file:
                self._is_database = file.read(len(_SQLITE)) == _SQLITE
        except OSError as error:
            raise ConfigError(f"resolve.file: {path} cannot be read: {error.strerror}") from error
        self._file, self._table = path, option.get("table", "")
        self._id, self._text = option.get("id", "id"), option.get("text", "text")
        if self._is_database and not self._table:
            raise ConfigError("resolve.table: is missing; name the table with the texts")
        if self._table and not self._is_database:
            raise ConfigError(f"resolve.table: is for SQLite, not for {path}")
        self._texts: dict[str, str] = {}
        self._read_at: tuple[int, int] | None = None
        self._database: sqlite3.Connection | None = None

    def with_texts(self, record: Mapping[str, object]) -> Mapping[str, object]:
        """Return a record whose contexts have texts in place of ids; a `SourceError` if the corpus cannot be read."""
        items = fields.embedded(record.get("contexts"))
        if not isinstance(items, list):
            return record
        ids = [_id_in(item) for item in items]
        wanted = [name for name in ids if name is not None]
        texts = self._texts_of(wanted)
        if absent := [name for name in wanted if name not in texts]:
            message = f"{len(absent)} of {len(items)} ids are not in {self._file}; the first is {absent[0]!r}"
            raise FormatError(RejectReason.CONTEXT_IDS, "contexts", message)
        resolved = [
            item if name is None else _with_text(item, name, texts[name]) for item, name in zip(items, ids, strict=True)
        ]
        return {**record, "contexts": resolved}

    def _texts_of(self, ids: Sequence[str]) -> Mapping[str, str]:
        try:
            if self._is_database:
                return self._selected(ids)
            if any(name not in self._texts for name in ids):
                self._load()
        except (OSError, sqlite3.Error, ValueError, csv.Error) as error:
            raise SourceError(f"resolve.file: {self._file} cannot be read: {error}") from error
        return self._texts

    def _selected(self, ids: Sequence[str]) -> dict[str, str]:
        if self._database is None:
            address = f"{self._file.resolve().as_uri()}?mode=ro"
            self._database = sqlite3.connect(address, uri=True, check_same_thread=False)
        table, key, text = ('"' + name.replace('"', '""') + '"' for name in (self._table, self._id, self._text))
        query = f"SELECT {text} FROM {table} WHERE {key} = ?"  # noqa: S608 - names of the configuration, quoted
        rows = ((name, self._database.execute(query, (name,)).fetchone()) for name in ids)
        return {name: row[0] for name, row in rows if row is not None and isinstance(row[0], str)}

    def _load(self) -> None:
        """Read a file again, if it has changed."""
        status = self._file.stat()
        if (status.st_mtime_ns, status.st_size) == self._read_at:
            return
        if status.st_size > _MAX_BYTES:
            raise SourceError(f"resolve.file: {self._file} is larger than {_MAX_BYTES >> 20} MiB; use a SQLite file")
        rows = _rows(self._file.read_bytes())
        self._texts = {
            str(row[self._id]): str(row[self._text]) for row in rows if self._id in row and row.get(self._text)
        }
        self._read_at = (status.st_mtime_ns, status.st_size)


def _rows(content: bytes) -> list[Mapping[str, object]]:
    """The rows of JSONL, of a JSON array, or of CSV with a header."""
    text = content.decode("utf-8-sig", "replace")
    start = text.lstrip()[:1]
    if start == "{":
        rows: list[object] = []
        for line in text.split("\n"):
            with suppress(orjson.JSONDecodeError):  # blank or torn
                rows.append(orjson.loads(line))
    else:
        rows = orjson.loads(text) if start == "[" else list(csv.DictReader(io.StringIO(text)))
    return [row for row in rows if isinstance(row, dict)]


def _id_in(item: object) -> str | None:
    """The id that stands for a context; None if it has a text."""
    if isinstance(item, dict):
        if str(fields.first(item, fields.TEXT_KEYS)[1] or "").strip():
            return None
        item = fields.first(item, fields.CONTEXT_ID_KEYS)[1]
    if isinstance(item, int) and not isinstance(item, bool):
        return str(item)
    is_id = isinstance(item, str) and 0 < len(item) <= _MAX_ID_CHARS and "\n" not in item
    return str(item) if is_id else None


def _with_text(item: object, name: str, text: str) -> dict[str, object]:
    rest = {key: value for key, value in item.items() if key not in fields.TEXT_KEYS} if isinstance(item, dict) else {}
    return {**rest, "id": name, "text": text}
