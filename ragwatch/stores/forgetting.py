"""Deletes texts: those of settled answers, as `store.texts` says, and everything about a person on request.

The row of a sample remains, with a zero byte as its body: its key, a hash, is needed to recognise an answer that is
delivered again. Scores, offsets and counts remain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace

from ragwatch.errors import StoreError
from ragwatch.ports import Erased, Erasure
from ragwatch.statistics.causes import traits
from ragwatch.statistics.tally import Tallies
from ragwatch.stores import feedback, replies
from ragwatch.stores.codec.kept_texts import Texts, without_texts
from ragwatch.stores.counting import add_tallies
from ragwatch.stores.engine import Component, Reader, Writer
from ragwatch.stores.erasing import (
    OtherRow,
    Selection,
    rows_of_table,
    selected,
    unjudged_of,
    without_notes,
)
from ragwatch.stores.rows import pack, unpack
from ragwatch.stores.search.answer_terms import Rules, stored_terms
from ragwatch.stores.search.indexing import FAILS, SearchIndex
from ragwatch.stores.settling import settle

MAX_SAMPLES_PER_STEP = 500
_PENDING_TEXT = "EXISTS (SELECT 1 FROM work w WHERE w.key = s.key)"
_FAILING_TEXT = f"EXISTS (SELECT 1 FROM verdicts v WHERE v.key = s.key AND {FAILS})"  # noqa: S608 - constants
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


class Forgetting(Component):
    """Deletes texts."""

    rules: Rules
    index: SearchIndex

    def drop_settled(self, writer: Writer, keys: Iterable[str]) -> int:
        """Delete the texts of those settled answers that no judge has to read any more. Returns their number.

        An answer fails if any judge names a stage at fault. The caller holds the lock of sequences: of two workers that
        settle the last two verdicts on an answer, the later one sees both.
        """
        given = sorted(set(keys))
        if self.rules.texts is Texts.ALL or not given:
            return 0
        sql = f"SELECT s.key FROM samples s WHERE s.key = LIST(:keys) AND {self._droppable()} ORDER BY s.key"  # noqa: S608 - constants
        dropped = [key for (key,) in writer.rows(sql, {"keys": given})]
        erase_texts(writer, dropped, self.rules, self.index)
        return len(dropped)

    def drop_earlier(self, writer: Writer) -> int:
        """Delete texts that were stored under another `store.texts`, of some answers. Returns the number."""
        sql = f"SELECT s.key FROM samples s WHERE s.body <> DROPPED AND {self._droppable()} LIMIT :limit"  # noqa: S608 - constants
        dropped = sorted(key for (key,) in writer.rows(sql, {"limit": MAX_SAMPLES_PER_STEP}))
        erase_texts(writer, dropped, self.rules, self.index)
        return len(dropped)

    def _droppable(self) -> str:
        failing = f" AND NOT {_FAILING_TEXT}" if self.rules.texts is Texts.FAILING else ""
        return f"NOT {_PENDING_TEXT}{failing}"

    def forget(self, erasure: Erasure, *, dry_run: bool = False, seconds: float = 0.0) -> Erased:
        """See `Store.forget`."""
        pages = self.engine.pages
        selection = select(pages, erasure)
        others = _rows_with(pages, selection.texts)
        if dry_run or not selection.keys:
            return replace(_counted(pages, selection), others=len(others))
        tallies: Tallies = Counter()
        self.erasure_begins()
        with self.engine.transaction() as writer:
            self.note_erasure(writer)
            erased = self._erase(writer, selection, erasure, tallies)
            _clear(writer, others)
            add_tallies(writer, tallies)
        complete = self.rewritten()
        if later := _rows_with(pages, selection.texts):  # by a write that was under way
            with self.engine.transaction() as writer:
                _clear(writer, later)
            complete = self.rewritten()
        complete = self.erasure_ended(complete=complete, seconds=seconds)
        return replace(erased, others=len(others) + len(later), complete=complete)

    def erasure_begins(self) -> None:
        """Prepare an erasure."""

    def note_erasure(self, writer: Writer) -> None:
        """Note, within the transaction of an erasure, that it is under way."""

    def rewritten(self) -> bool:
        """Write again what may contain deleted texts. Returns False if some of it is in use."""
        raise NotImplementedError

    def erasure_ended(self, *, complete: bool, seconds: float) -> bool:  # noqa: ARG002 - of other engines
        """Note that an erasure has ended, once readers are out of the way. Returns whether it is complete."""
        return complete

    def _erase(self, writer: Writer, selection: Selection, erasure: Erasure, tallies: Tallies) -> Erased:
        """Erase the answers within a transaction, and count the pending ones as unjudged."""
        keys = {"keys": list(selection.keys)}
        erased = _counted(writer, selection)
        settle(writer, list(map(unjudged_of, writer.rows(_PENDING, keys))), tallies)
        erase_texts(writer, keys["keys"], self.rules, self.index, ids=False)
        feedback.erase(writer, keys["keys"])
        if erasure.with_scores:
            writer.execute("DELETE FROM verdicts WHERE key = LIST(:keys)", keys)
            writer.execute("DELETE FROM labels WHERE key = LIST(:keys)", keys)
            return erased
        for key, annotator, body in writer.rows(_LABELS, keys):
            label, kept = {"key": key, "annotator": annotator}, without_notes(body)
            if kept is None:  # damaged
                writer.execute("DELETE FROM labels WHERE key = :key AND annotator = :annotator", label)
            else:
                sql = "UPDATE labels SET body = :body WHERE key = :key AND annotator = :annotator"
                writer.execute(sql, label | {"body": writer.seal(kept)})
        return erased


def select(reader: Reader, erasure: Erasure) -> Selection:
    """Find the answers that an erasure selects, one row at a time. Reads every stored sample."""
    keys, texts = set[str](), set[str]()
    with closing(reader.walk("SELECT key, body FROM samples")) as samples:
        for key, own in selected(samples, erasure):
            keys.add(key)
            texts |= own
    if erasure.ids:  # some have no stored text
        with closing(reader.walk("SELECT key, line FROM verdicts")) as lines:
            keys.update(key for key, _ in selected(lines, erasure))
    return Selection(tuple(sorted(keys)), frozenset(texts))


def _counted(reader: Reader | Writer, selection: Selection) -> Erased:
    ((pending, verdicts, labels, rated, batched),) = reader.rows(_COUNTS, {"keys": list(selection.keys)})
    return Erased(selection.keys, selection.texts, pending, verdicts, labels, feedback=rated, batched=batched)


def _rows_with(reader: Reader, texts: frozenset[str]) -> list[OtherRow]:
    """Find the runs, states and events that contain one of the texts."""
    others: list[OtherRow] = []
    for table, (name, column) in _OTHERS.items() if texts else ():
        with closing(reader.walk(f"SELECT {name}, {column} FROM {table}")) as rows:  # noqa: S608 - constants
            others += rows_of_table(table, rows, texts)
    return others


def _clear(writer: Writer, rows: Iterable[OtherRow]) -> None:
    """Replace the values of rows with texts, within a transaction."""
    for row in rows:
        name, column = _OTHERS[row.table]
        value = row.value if isinstance(row.value, str) else writer.seal(row.value)
        sql = f"UPDATE {row.table} SET {column} = :value WHERE {name} = :name"  # noqa: S608 - constants
        writer.execute(sql, {"value": value, "name": row.id})


def erase_texts(writer: Writer, keys: Sequence[str], rules: Rules, index: SearchIndex, *, ids: bool = True) -> None:
    """Delete the texts of answers and of their verdicts, within a transaction; scores, offsets and counts remain.

    Without `ids`, those of the answers, their contexts and their traces are deleted too.
    """
    if not keys:
        return
    given = {"keys": list(keys)}
    if ids:
        index.remove_words(writer, keys)
    else:
        index.remove(writer, keys)
    writer.execute("UPDATE samples SET body = DROPPED WHERE key = LIST(:keys)", given)
    if ids:
        _reduce_traits(writer, keys, rules, index)
    else:
        writer.execute("DELETE FROM traits WHERE key = LIST(:keys)", given)
    replies.remove(writer, keys)
    lines = writer.rows("SELECT seq, key, line FROM verdicts WHERE key = LIST(:keys) ORDER BY seq", given)
    kept = [{"line": writer.seal(_kept(line, None if ids else key)), "seq": seq} for seq, key, line in lines]
    writer.executemany("UPDATE verdicts SET line = :line WHERE seq = :seq", kept)
    if not ids:
        writer.execute("UPDATE verdicts SET trace_id = NULL WHERE key = LIST(:keys)", given)


def _kept(line: bytes, identity: str | None) -> bytes:
    try:
        return pack(without_texts(unpack(line), identity))
    except StoreError:  # a damaged text is deleted as well; the figures are in the columns
        return b""


def _reduce_traits(writer: Writer, keys: Sequence[str], rules: Rules, index: SearchIndex) -> None:
    """Delete the texts in the traits of answers and in the index of searches."""
    sql = "SELECT key, body FROM traits WHERE key = LIST(:keys) ORDER BY key"
    before: dict[str, bytes] = dict(writer.rows(sql, {"keys": list(keys)}))
    kept = {key: smaller for key, body in before.items() if (smaller := _reduced(body)) is not None}
    rows = [{"body": writer.seal(body), "key": key} for key, body in kept.items()]
    writer.executemany("UPDATE traits SET body = :body WHERE key = :key", rows)
    index.set_terms(writer, {key: stored_terms(body, None, rules) for key, body in (before | kept).items()})


def _reduced(body: bytes) -> bytes | None:
    """Stored traits without texts; None if they contain none. Damaged traits become empty."""
    try:
        stored = unpack(body)
        kept = traits.without_texts(stored)
    except (StoreError, LookupError, TypeError, AttributeError):
        return b""
    return None if kept == stored else pack(kept)
