"""SQL statements that find the answers of a person and every row with their texts, and delete those."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ragwatch.core.tally import Tallies
from ragwatch.ports import Erased, Erasure
from ragwatch.stores.answer_terms import Rules
from ragwatch.stores.erasing import OtherRow, Selection, unjudged_of, without_notes
from ragwatch.stores.postgres import feedback, statements
from ragwatch.stores.postgres.connections import Writer
from ragwatch.stores.postgres.dropping import erase_texts

SAMPLES = "SELECT key, body FROM samples"
LINES = "SELECT key, line FROM verdicts"
OTHERS = {
    "runs": "SELECT id, body FROM runs",
    "states": "SELECT name, body FROM states",
    "events": "SELECT id, detail FROM events",
}
REWRITTEN = ("samples", "traits", "answer_index", "replies", "verdicts", "labels", "runs", "states", "events", "parts")
COUNTS = (
    "SELECT (SELECT COUNT(*) FROM work WHERE key = ANY(k.keys)),"
    " (SELECT COUNT(*) FROM verdicts WHERE key = ANY(k.keys)),"
    " (SELECT COUNT(*) FROM labels WHERE key = ANY(k.keys)),"
    " (SELECT COUNT(*) FROM feedback WHERE key = ANY(k.keys) AND score IS NOT NULL),"
    " (SELECT COUNT(*) FROM work WHERE key = ANY(k.keys) AND batch IS NOT NULL) FROM (SELECT %b::text[] AS keys) AS k"
)
_PENDING = (
    "SELECT judge, key, probability, source, route, at FROM work JOIN samples USING (key)"
    " WHERE key = ANY(%b::text[]) ORDER BY seq"
)
_REPLACE = {
    "runs": "UPDATE runs SET body = %s WHERE id = %s",
    "states": "UPDATE states SET body = %s WHERE name = %s",
    "events": "UPDATE events SET detail = %s WHERE id = %s",
}

Cell = Callable[[bytes], bytes]


def erased(selection: Selection, counts: Sequence[int]) -> Erased:
    """Return how much was erased: counts as of `COUNTS`."""
    pending, verdicts, labels, rated, batched = map(int, counts)
    return Erased(selection.keys, selection.texts, pending, verdicts, labels, feedback=rated, batched=batched)


def erase(
    writer: Writer,
    selection: Selection,
    erasure: Erasure,
    tallies: Tallies,
    rules: Rules,
    *,
    seal: Cell,
    unseal: Cell,
    part: statements.Part,
) -> Erased:
    """Erase the answers within a transaction, and count the pending ones as unjudged.

    The row of the sample remains without texts: its key, a hash, refuses the answer if a source delivers it again.
    """
    keys = sorted(selection.keys)
    (counts,) = writer.execute(COUNTS, (keys,)).fetchall()
    pending = writer.execute(_PENDING, (keys,)).fetchall()
    statements.settle(writer, list(map(unjudged_of, pending)), tallies, seal=seal, part=part)
    erase_texts(writer, keys, rules, seal=seal, unseal=unseal, ids=False)
    feedback.erase(writer, keys)
    if erasure.with_scores:
        writer.execute("DELETE FROM verdicts WHERE key = ANY(%b::text[])", (keys,))
        writer.execute("DELETE FROM labels WHERE key = ANY(%b::text[])", (keys,))
    else:
        _erase_notes(writer, keys, seal=seal, unseal=unseal)
    return erased(selection, counts)


def clear(writer: Writer, rows: Iterable[OtherRow], seal: Cell) -> None:
    """Replace the values of rows with texts, within a transaction."""
    for row in rows:
        value = row.value if isinstance(row.value, str) else seal(row.value)
        writer.execute(_REPLACE[row.table].encode(), (value, row.id))


def _erase_notes(writer: Writer, keys: Sequence[str], *, seal: Cell, unseal: Cell) -> None:
    """Delete the notes of the labels on answers, earlier ones too; a damaged label is deleted."""
    labels = writer.execute(
        "SELECT key, annotator, body FROM labels WHERE key = ANY(%b::text[]) ORDER BY key, annotator", (list(keys),)
    ).fetchall()
    for key, annotator, body in labels:
        kept = without_notes(unseal(body))
        if kept is None:
            writer.execute("DELETE FROM labels WHERE key = %s AND annotator = %s", (key, annotator))
        else:
            writer.execute(
                "UPDATE labels SET body = %s WHERE key = %s AND annotator = %s", (seal(kept), key, annotator)
            )
