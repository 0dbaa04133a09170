"""Finds the answers of a person and every row with their texts, and deletes those. Counters stay balanced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing

from ragwatch.core.tally import Tallies
from ragwatch.ports import Erased, Erasure
from ragwatch.stores.answer_terms import Rules
from ragwatch.stores.erasing import (
    OtherRow,
    Selection,
    rows_of_table,
    samples_of,
    unjudged_of,
    with_lines,
    without_notes,
)
from ragwatch.stores.sqlite import feedback, statements
from ragwatch.stores.sqlite.dropping import erase_texts
from ragwatch.stores.sqlite.reader import ReadConnection
from ragwatch.stores.sqlite.sqlite_writer import SqliteWriter

_SAMPLES = "SELECT key, body FROM samples"
_LINES = "SELECT key, line FROM verdicts"
_PENDING = "SELECT judge, key, probability, source, route, at FROM work JOIN samples USING (key) WHERE key = ?"
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


def select(reader: ReadConnection, erasure: Erasure) -> Selection:
    """Find the answers that an erasure selects, one row at a time. Reads every stored sample.

    Raises:
        StoreError: The database cannot be read.
    """
    with closing(reader.walk(_SAMPLES)) as samples:
        selection = samples_of(samples, erasure)
    if erasure.ids:
        with closing(reader.walk(_LINES)) as lines:
            selection = with_lines(selection, lines, erasure)
    return selection


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
    found_rows: list[OtherRow] = []
    for table, sql in (("runs", _RUNS), ("states", _STATES), ("events", _EVENTS)):
        with closing(reader.walk(sql)) as rows:
            found_rows += rows_of_table(table, rows, texts)
    return found_rows


def clear(writer: SqliteWriter, rows: Iterable[OtherRow]) -> None:
    """Replace the values of rows with texts, within a transaction."""
    for row in rows:
        match row.table:
            case "events":
                writer.execute("UPDATE events SET detail = ? WHERE rowid = ?", (row.value, row.id))
            case "runs":
                writer.execute("UPDATE runs SET body = seal(?) WHERE id = ?", (row.value, row.id))
            case _:
                writer.execute("UPDATE states SET body = seal(?) WHERE name = ?", (row.value, row.id))


def erase(writer: SqliteWriter, selection: Selection, erasure: Erasure, rules: Rules, tallies: Tallies) -> Erased:
    """Erase the answers within a transaction, and count the pending ones as unjudged.

    The row of the sample remains without texts: its key, a hash, refuses the answer if a source delivers it again.
    """
    totals = [0] * KINDS_COUNTED
    for key in selection.keys:
        totals = [
            total + number for total, number in zip(totals, writer.execute(_COUNTS, (key,)).fetchone(), strict=True)
        ]
        statements.settle(writer, list(map(unjudged_of, writer.execute(_PENDING, (key,)).fetchall())), tallies)
        erase_texts(writer, key, rules, ids=False)
        feedback.erase(writer, key)
        if erasure.with_scores:
            writer.execute("DELETE FROM verdicts WHERE key = ?", (key,))
            writer.execute("DELETE FROM labels WHERE key = ?", (key,))
        else:
            _erase_notes(writer, key, rules)
    return _erased(selection, totals)


def _erase_notes(writer: SqliteWriter, key: str, rules: Rules) -> None:
    """Delete the notes of the labels on an answer, earlier ones too; a damaged label is deleted."""
    for annotator, body in writer.execute("SELECT annotator, body FROM labels WHERE key = ?", (key,)).fetchall():
        kept = without_notes(body if rules.cipher is None else rules.cipher.open(body))
        if kept is None:
            writer.execute("DELETE FROM labels WHERE key = ? AND annotator = ?", (key, annotator))
        else:
            writer.execute("UPDATE labels SET body = seal(?) WHERE key = ? AND annotator = ?", (kept, key, annotator))
