"""Finds the answers of a person among stored records, and their texts in other rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ragwatch.errors import StoreError
from ragwatch.model.sample import Draw, Sample, value_at
from ragwatch.ports import Erasure
from ragwatch.statistics.verdict import Reading, Unjudged, UnjudgedReason
from ragwatch.stores.rows import pack, unpack

MIN_CHARS = 12  # of a text that is searched for in other rows: "yes" stands in many


@dataclass(frozen=True, slots=True)
class Selection:
    """The answers to erase: their keys, and their texts as far as they are stored."""

    keys: tuple[str, ...]
    texts: frozenset[str]


@dataclass(frozen=True, slots=True)
class OtherRow:
    """A row of runs, states or events that contains a text, with what is to stand there instead."""

    table: str
    id: int | str
    value: bytes | str


def selected(rows: Iterable[tuple[str, bytes]], erasure: Erasure) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield key and texts of the answers that an erasure selects among samples or verdict lines: (key, body)."""
    for row_key, body in rows:
        key = str(row_key)
        try:
            record = unpack(body)
        except StoreError:  # not kept, or damaged: it is erased if its key is given
            record = {}
        if key in erasure.ids or str(record.get("id")) in erasure.ids or _has_metadata(record, erasure.metadata):
            yield key, texts_of(record)


def rows_of_table(table: str, rows: Iterable[tuple[int | str, bytes | str]], texts: frozenset[str]) -> list[OtherRow]:
    """Find the rows, given as (id, body or detail), of runs, states or events that contain one of the texts."""
    wanted, others = Texts(texts), list[OtherRow]()
    for identity, body in rows:
        if isinstance(body, str):
            if table == "events" and wanted.in_(body):
                others.append(OtherRow(table, identity, ""))
            continue  # a state that is stored as plain JSON contains figures only
        try:
            record = unpack(body)
        except StoreError:
            continue
        kept = cleared(record, wanted)
        if kept != record:
            others.append(OtherRow(table, identity, pack(kept)))
    return others


def unjudged_of(row: tuple[str, str, float, str, str, float]) -> Unjudged:
    """Return the verdict of an erased draw that was pending: (judge, key, probability, source, route, at)."""
    judge, key, probability, source, route, at = row
    draw = Draw(key, Sample(key, None, (), ""), source, route, probability=probability, at=at)
    return Unjudged(draw, Reading(judge, kind="", version=""), UnjudgedReason.ERASED)


def without_notes(body: bytes) -> bytes | None:
    """Delete the notes of a stored label, earlier ones too; None for a damaged one."""
    try:
        record = unpack(body) | {"note": ""}
    except StoreError:
        return None
    if earlier := record.get("earlier"):
        record["earlier"] = [{**label, "note": ""} for label in earlier]
    return pack(record)


def _has_metadata(record: Mapping[str, object], wanted: Iterable[tuple[str, str]]) -> bool:
    metadata = record.get("metadata")
    return isinstance(metadata, Mapping) and any(value == _text(value_at(metadata, path)) for path, value in wanted)


def _text(value: object) -> str | None:
    """A metadata value as people write it on a command line.

    >>> _text("anna"), _text(7), _text(True), _text(None)
    ('anna', '7', 'true', None)
    """
    return value if isinstance(value, str) else None if value is None else json.dumps(value)


def texts_of(record: Mapping[str, object]) -> frozenset[str]:
    """Texts of a person in a sample: id, question, answer and conversation, without short ones.

    >>> sorted(texts_of({"id": "7", "question": "Where is my parcel?", "answer": "No."}))
    ['Where is my parcel?']
    """
    history = record.get("history")
    turns = [turn.get("text") for turn in history if isinstance(turn, Mapping)] if isinstance(history, list) else []
    texts = (record.get("id"), record.get("question"), record.get("answer"), *turns)
    return frozenset(text for text in texts if isinstance(text, str) and len(text.strip()) >= MIN_CHARS)


class Texts:
    """Texts to search for: the time depends on the length of what is searched, not on how many texts there are.

    >>> texts = Texts({"Where is my parcel?", "Where is my other parcel?"})
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


def cleared(record: Mapping[str, object], texts: Texts) -> dict[str, object]:
    """Replace every string that contains one of the texts by an empty one.

    >>> cleared({"query": "Where is my parcel?", "ranks": [1, "x"]}, Texts({"Where is my parcel?"}))
    {'query': '', 'ranks': [1, 'x']}
    """
    return {name: _cleared(item, texts) for name, item in record.items() if not texts.in_(str(name))}


def _cleared(value: object, texts: Texts) -> object:
    if isinstance(value, str):
        return "" if texts.in_(value) else value
    if isinstance(value, Mapping):
        return cleared(value, texts)
    return [_cleared(item, texts) for item in value] if isinstance(value, list) else value
