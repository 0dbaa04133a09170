"""Finds the answers of a person and every row with their texts, and deletes those. Counters stay balanced."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from ragwatch.core.sample import Draw, Sample
from ragwatch.core.tally import Tallies
from ragwatch.core.verdict import Reading, Unjudged, UnjudgedReason
from ragwatch.errors import StoreError
from ragwatch.ports import Erased, Erasure
from ragwatch.stores.sqlite import feedback, statements
from ragwatch.stores.sqlite.dropping import erase_texts
from ragwatch.stores.sqlite.encryption import TextCipher
from ragwatch.stores.sqlite.reader import ReadConnection
from ragwatch.stores.sqlite.rows import pack, unpack

MIN_CHARS = 12  # of a text that is searched for in other rows: "yes" stands in many
_SAMPLES = "SELECT key, body FROM samples"
_LINES = "SELECT key, line FROM verdicts"
_PENDING = "SELECT judge, w.key, probability, source, route, at FROM work w JOIN samples USING (key) WHERE w.key = ?"
_COUNTS = (
    "SELECT (SELECT COUNT(*) FROM work WHERE key = ?1), (SELECT COUNT(*) FROM verdicts WHERE key = ?1),"
    " (SELECT COUNT(*) FROM labels WHERE key = ?1),"
    " (SELECT COUNT(*) FROM feedback WHERE key = ?1 AND score IS NOT NULL),"
    " (SELECT COUNT(*) FROM work WHERE key = ?1 AND batch IS NOT NULL)"
)
KINDS_COUNTED = 5  # columns of _COUNTS
_RUNS = "SELECT id, body FROM runs"
_STATES = "SELECT name, body FROM states"
_EVENTS = "SELECT rowid, detail FROM events"


@dataclass(frozen=True, slots=True)
class Selection:
    """The answers to erase: their keys, and their texts as far as they are stored."""

    keys: tuple[str, ...]
    texts: frozenset[str]


@dataclass(frozen=True, slots=True)
class OtherRow:
    """A row of runs, states or events that contains a text, with what is to stand there instead."""

    table: str
    id: object
    value: bytes | str


def select(reader: ReadConnection, erasure: Erasure) -> Selection:
    """Find the answers that an erasure selects, one row at a time. Reads every stored sample.

    Raises:
        StoreError: The database cannot be read.
    """
    keys: dict[str, None] = {}
    texts: set[str] = set()
    for key, record in _records(reader, _SAMPLES):
        if key in erasure.ids or str(record.get("id")) in erasure.ids or _has_metadata(record, erasure.metadata):
            keys[key] = None
            texts |= texts_of(record)
    if erasure.ids:
        for key, record in _records(reader, _LINES):  # the texts of some are not stored
            if key in erasure.ids or str(record.get("id")) in erasure.ids:
                keys[key] = None
    return Selection(tuple(keys), frozenset(texts))


def _records(reader: ReadConnection, sql: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    with closing(reader.walk(sql)) as rows:
        for key, body in rows:
            try:
                yield str(key), unpack(body)
            except StoreError:  # not kept, or damaged: it is erased if its key is given
                yield str(key), {}


def _has_metadata(record: Mapping[str, Any], wanted: Iterable[tuple[str, str]]) -> bool:
    metadata = record.get("metadata") or {}
    return any(value == _text(_at(metadata, path)) for path, value in wanted)


def _at(metadata: Mapping[str, Any], path: str) -> object:
    """The value under a key, or else under a path of keys.

    >>> _at({"user": {"id": 7}}, "user.id"), _at({"user.id": 8}, "user.id"), _at({"user": "x"}, "user.id")
    (7, 8, None)
    """
    if path in metadata:
        return metadata[path]
    value: object = metadata
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _text(value: object) -> str | None:
    """A metadata value as people write it on a command line.

    >>> _text("anna"), _text(7), _text(True), _text(None)
    ('anna', '7', 'true', None)
    """
    return value if isinstance(value, str) else None if value is None else json.dumps(value)


def texts_of(record: Mapping[str, Any]) -> frozenset[str]:
    """Texts of a person in a sample: id, question, answer and conversation, without short ones.

    >>> sorted(texts_of({"id": "7", "question": "Where is my parcel?", "answer": "No."}))
    ['Where is my parcel?']
    """
    turns = [turn.get("text") for turn in record.get("history") or () if isinstance(turn, Mapping)]
    texts = (record.get("id"), record.get("question"), record.get("answer"), *turns)
    return frozenset(text for text in texts if isinstance(text, str) and len(text.strip()) >= MIN_CHARS)


def count(reader: ReadConnection, selection: Selection) -> Erased:
    """Count what is stored of the answers.

    Raises:
        StoreError: The database cannot be read.
    """
    counts = [reader.rows(_COUNTS, (key,))[0] for key in selection.keys]
    return _erased(selection, [sum(row[place] for row in counts) for place in range(KINDS_COUNTED)])


def _erased(selection: Selection, totals: Sequence[int]) -> Erased:
    pending, verdicts, labels, rated, batched = totals
    return Erased(selection.keys, selection.texts, pending, verdicts, labels, feedback=rated, batched=batched)


def rows_with(reader: ReadConnection, texts: frozenset[str]) -> list[OtherRow]:
    """Find the runs, states and events that contain one of the texts.

    Raises:
        StoreError: The database cannot be read.
    """
    if not texts:
        return []
    wanted = _Texts(texts)
    found_rows: list[OtherRow] = []
    for table, sql in (("runs", _RUNS), ("states", _STATES)):
        with closing(reader.walk(sql)) as rows:
            for identity, body in rows:
                if not isinstance(body, bytes):  # a state that SQL reads contains figures only
                    continue
                try:
                    record = unpack(body)
                except StoreError:
                    continue
                cleared = _cleared(record, wanted)
                if cleared != record:
                    found_rows.append(OtherRow(table, identity, pack(cleared)))
    with closing(reader.walk(_EVENTS)) as rows:
        found_rows += [OtherRow("events", identity, "") for identity, detail in rows if wanted.in_(str(detail))]
    return found_rows


class _Texts:
    """Texts to search for: the time depends on the length of what is searched, not on how many texts there are.

    >>> texts = _Texts({"Where is my parcel?", "Where is my other parcel?"})
    >>> texts.in_("Q: Where is my parcel? A: lost"), texts.in_("Where is my dog, and where the parcel?")
    (True, False)
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = frozenset(texts)
        self._lengths: dict[str, set[int]] = {}  # by the first characters of a text
        for text in self._texts:
            self._lengths.setdefault(text[:MIN_CHARS], set()).add(len(text))

    def in_(self, value: str) -> bool:
        """Whether a string contains one of the texts."""
        return any(
            value[start : start + length] in self._texts
            for start in range(len(value) - MIN_CHARS + 1)
            for length in self._lengths.get(value[start : start + MIN_CHARS], ())
        )


def _cleared(value: Any, texts: _Texts) -> Any:  # noqa: ANN401 - JSON
    """Replace every string that contains one of the texts by an empty one.

    >>> _cleared({"query": "Where is my parcel?", "ranks": [1, "x"]}, _Texts({"Where is my parcel?"}))
    {'query': '', 'ranks': [1, 'x']}
    """
    if isinstance(value, str):
        return "" if texts.in_(value) else value
    if isinstance(value, Mapping):
        return {name: _cleared(item, texts) for name, item in value.items() if not texts.in_(str(name))}
    return [_cleared(item, texts) for item in value] if isinstance(value, list) else value


def clear(writer: sqlite3.Connection, rows: Iterable[OtherRow]) -> None:
    """Replace the values of rows with texts, within a transaction."""
    for row in rows:
        match row.table:
            case "events":
                writer.execute("UPDATE events SET detail = ? WHERE rowid = ?", (row.value, row.id))
            case "runs":
                writer.execute("UPDATE runs SET body = seal(?) WHERE id = ?", (row.value, row.id))
            case _:
                writer.execute("UPDATE states SET body = seal(?) WHERE name = ?", (row.value, row.id))


def erase(
    writer: sqlite3.Connection, selection: Selection, erasure: Erasure, cipher: TextCipher | None, tallies: Tallies
) -> Erased:
    """Erase the answers within a transaction, and count the pending ones as unjudged.

    The row of the sample remains without texts: its key, a hash, refuses the answer if a source delivers it again.
    """
    totals = [0] * KINDS_COUNTED
    for key in selection.keys:
        totals = [
            total + number for total, number in zip(totals, writer.execute(_COUNTS, (key,)).fetchone(), strict=True)
        ]
        statements.settle(writer, list(_unjudged(writer, key)), tallies)
        erase_texts(writer, key, cipher, ids=False)
        feedback.erase(writer, key)
        if erasure.with_scores:
            writer.execute("DELETE FROM verdicts WHERE key = ?", (key,))
            writer.execute("DELETE FROM labels WHERE key = ?", (key,))
        else:
            _erase_notes(writer, key, cipher)
    return _erased(selection, totals)


def _unjudged(writer: sqlite3.Connection, key: str) -> Iterator[Unjudged]:
    for judge, _, probability, source, route, at in writer.execute(_PENDING, (key,)).fetchall():
        draw = Draw(key, Sample(key, None, (), ""), source, route, probability=probability, at=at)
        yield Unjudged(draw, Reading(judge, kind="", version=""), UnjudgedReason.ERASED)


def _erase_notes(writer: sqlite3.Connection, key: str, cipher: TextCipher | None) -> None:
    """Delete the notes of the labels on an answer, earlier ones too; a damaged label is deleted."""
    for annotator, body in writer.execute("SELECT annotator, body FROM labels WHERE key = ?", (key,)).fetchall():
        try:
            record = unpack(body if cipher is None else cipher.open(body)) | {"note": ""}
            if earlier := record.get("earlier"):
                record["earlier"] = [{**label, "note": ""} for label in earlier]
        except StoreError:
            writer.execute("DELETE FROM labels WHERE key = ? AND annotator = ?", (key, annotator))
            continue
        writer.execute(
            "UPDATE labels SET body = seal(?) WHERE key = ? AND annotator = ?", (pack(record), key, annotator)
        )
