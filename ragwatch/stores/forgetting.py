"""Deletes everything about a person on request: the texts of their answers, and of other rows that contain these.

Rows of samples remain as `dropping` leaves them; scores, offsets and counts remain.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import replace

from ragwatch.errors import StoreError
from ragwatch.model.sample import Draw, Sample, value_at
from ragwatch.ports import Erased, Erasure
from ragwatch.statistics.tally import Tallies
from ragwatch.statistics.verdict import Reading, Unjudged, UnjudgedReason
from ragwatch.stores import feedback
from ragwatch.stores.counting import add_tallies
from ragwatch.stores.dropping import erase_texts
from ragwatch.stores.engine import Component, Reader, Writer
from ragwatch.stores.search_index import SearchIndex
from ragwatch.stores.settling import settle
from ragwatch.stores.texts import pack, unpack

MIN_CHARS = 12  # of a text that is searched for in other rows: "yes" stands in many
_OTHERS = {"runs": ("id", "body"), "states": ("name", "body"), "events": ("ROW_ID", "detail")}
_COUNTS = (
    "SELECT (SELECT COUNT(*) FROM work WHERE key = LIST(:keys)),"
    " (SELECT COUNT(*) FROM verdicts WHERE key = LIST(:keys)),"
    " (SELECT COUNT(*) FROM labels WHERE key = LIST(:keys)),"
    " (SELECT COUNT(*) FROM feedback WHERE key = LIST(:keys) AND score IS NOT NULL),"
    " (SELECT COUNT(*) FROM work WHERE key = LIST(:keys) AND batch IS NOT NULL)"
)
_PENDING = (
    "SELECT w.judge, w.key, w.probability, s.source, s.route, s.at FROM work w JOIN samples s ON s.key = w.key"
    " WHERE w.key = LIST(:keys) ORDER BY w.seq"
)
_LABELS = "SELECT key, annotator, body FROM labels WHERE key = LIST(:keys) ORDER BY key, annotator"


OtherRow = tuple[str, int | str, bytes | str]
"""Table and id of a row of runs, states or events that contains a text, with what is to stand there instead."""


class Forgetting(Component):
    """Deletes everything about a person."""

    index: SearchIndex

    def forget(self, erasure: Erasure, *, dry_run: bool = False, seconds: float = 0.0) -> Erased:
        pages = self.engine.pages
        keys, texts = select(pages, erasure)
        others = _rows_with(pages, texts)
        if dry_run or not keys:
            return replace(_counted(pages, keys, texts), others=len(others))
        tallies: Tallies = Counter()
        with self.engine.transaction() as writer:
            self.erasure_begins(writer)
            erased = _counted(writer, keys, texts)
            self._erase(writer, list(keys), tallies, with_scores=erasure.with_scores)
            _clear(writer, others)
            add_tallies(writer, tallies)
        complete = self.rewritten()
        if later := _rows_with(pages, texts):  # by a write that was under way
            with self.engine.transaction() as writer:
                _clear(writer, later)
            complete = self.rewritten()
        complete = self.erasure_ended(complete=complete, seconds=seconds)
        return replace(erased, others=len(others) + len(later), complete=complete)

    def erasure_begins(self, writer: Writer) -> None:
        """Prepare an erasure within its transaction, and note that it is under way."""

    def rewritten(self) -> bool:
        """Write again what may contain deleted texts. Returns False if some of it is in use."""
        raise NotImplementedError

    def erasure_ended(self, *, complete: bool, seconds: float) -> bool:  # noqa: ARG002 - of other engines
        """Note that an erasure has ended, once readers are out of the way. Returns whether it is complete."""
        return complete

    def _erase(self, writer: Writer, keys: list[str], tallies: Tallies, *, with_scores: bool) -> None:
        """Erase the answers within a transaction, and count the pending ones as unjudged."""
        given = {"keys": keys}
        settle(writer, [_unjudged_of(row) for row in writer.rows(_PENDING, given)], tallies)
        erase_texts(writer, keys, self.rules, self.index, ids=False)
        feedback.erase(writer, keys)
        if with_scores:
            writer.execute("DELETE FROM verdicts WHERE key = LIST(:keys)", given)
            writer.execute("DELETE FROM labels WHERE key = LIST(:keys)", given)
            return
        for key, annotator, body in writer.rows(_LABELS, given):
            label, kept = {"key": key, "annotator": annotator}, _without_notes(body)
            if kept is None:  # damaged
                writer.execute("DELETE FROM labels WHERE key = :key AND annotator = :annotator", label)
            else:
                sql = "UPDATE labels SET body = :body WHERE key = :key AND annotator = :annotator"
                writer.execute(sql, label | {"body": writer.seal(kept)})


def select(reader: Reader, erasure: Erasure) -> tuple[tuple[str, ...], frozenset[str]]:
    """Find the answers that an erasure selects, one row at a time: their keys, and their texts as far as they are kept.

    Reads every stored sample; with ids also every verdict line, because some answers have no stored text.
    """
    keys, texts = set[str](), set[str]()
    for table, column in (("samples", "body"), ("verdicts", "line"))[: 2 if erasure.ids else 1]:
        with closing(reader.walk(f"SELECT key, {column} FROM {table}")) as rows:  # noqa: S608 - constants
            for stored_key, body in rows:
                key = str(stored_key)
                try:
                    record = unpack(body)
                except StoreError:  # not kept, or damaged: it is erased if its key is given
                    record = {}
                ids = {key, str(record.get("id"))}
                if not ids.isdisjoint(erasure.ids) or _has_metadata(record, erasure.metadata):
                    keys.add(key)
                    texts |= texts_of(record) if table == "samples" else set()
    return tuple(sorted(keys)), frozenset(texts)


def _counted(reader: Reader | Writer, keys: tuple[str, ...], texts: frozenset[str]) -> Erased:
    ((pending, verdicts, labels, rated, batched),) = reader.rows(_COUNTS, {"keys": list(keys)})
    return Erased(keys, texts, pending, verdicts, labels, feedback=rated, batched=batched)


def _rows_with(reader: Reader, texts: frozenset[str]) -> list[OtherRow]:
    """Find the runs, states and events that contain one of the texts."""
    wanted, others = SearchedTexts(texts), list[OtherRow]()
    for table, (name, column) in _OTHERS.items() if texts else ():
        with closing(reader.walk(f"SELECT {name}, {column} FROM {table}")) as rows:  # noqa: S608 - constants
            for identity, value in rows:
                if isinstance(value, str):  # a state that is stored as plain JSON contains figures only
                    if table == "events" and wanted.in_(value):
                        others.append((table, identity, ""))
                    continue
                with suppress(StoreError):
                    record = unpack(value)
                    if (kept := cleared(record, wanted)) != record:
                        others.append((table, identity, pack(kept)))
    return others


def _clear(writer: Writer, rows: Iterable[OtherRow]) -> None:
    for table, identity, new in rows:
        name, column = _OTHERS[table]
        value = new if isinstance(new, str) else writer.seal(new)
        sql = f"UPDATE {table} SET {column} = :value WHERE {name} = :name"  # noqa: S608 - constants
        writer.execute(sql, {"value": value, "name": identity})


def _unjudged_of(row: tuple[str, str, float, str, str, float]) -> Unjudged:
    """The verdict of an erased draw that was pending."""
    judge, key, probability, source, route, at = row
    draw = Draw(key, Sample(key, None, (), ""), source, route, probability=probability, at=at)
    return Unjudged(draw, Reading(judge, kind="", version=""), UnjudgedReason.ERASED)


def _without_notes(body: bytes) -> bytes | None:
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


class SearchedTexts:
    """Texts to search for: the time depends on the length of what is searched, not on how many texts there are.

    >>> texts = SearchedTexts({"Where is my parcel?", "Where is my other parcel?"})
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


def cleared(record: Mapping[str, object], texts: SearchedTexts) -> dict[str, object]:
    """Replace every string that contains one of the texts by an empty one.

    >>> cleared({"query": "Where is my parcel?", "ranks": [1, "x"]}, SearchedTexts({"Where is my parcel?"}))
    {'query': '', 'ranks': [1, 'x']}
    """
    return {name: _cleared(item, texts) for name, item in record.items() if not texts.in_(str(name))}


def _cleared(value: object, texts: SearchedTexts) -> object:
    if isinstance(value, str):
        return "" if texts.in_(value) else value
    if isinstance(value, Mapping):
        return cleared(value, texts)
    return [_cleared(item, texts) for item in value] if isinstance(value, list) else value
