"""Deletes the texts of settled answers and keeps their scores, as `store.texts` says.

The row of a sample remains, with a zero byte as its body: its key is needed to recognise an answer that is delivered
again.
"""

from __future__ import annotations

from collections.abc import Iterable

from ragwatch.errors import StoreError
from ragwatch.stores.answer_terms import Rules
from ragwatch.stores.kept_texts import Texts, without_texts
from ragwatch.stores.rows import pack, unpack
from ragwatch.stores.sqlite import indexing, replies
from ragwatch.stores.sqlite.sqlite_writer import SqliteWriter
from ragwatch.stores.traits import reduced

MAX_SAMPLES_PER_STEP = 500
_FAILS = "EXISTS (SELECT 1 FROM verdicts v WHERE v.key = {} AND v.outcome = 'judged' AND v.stage NOT IN ('none'))"
_PENDING = "EXISTS (SELECT 1 FROM work w WHERE w.key = {})"
_LINES = "SELECT seq, line FROM verdicts WHERE key = ?"


def drop_settled(writer: SqliteWriter, keys: Iterable[str], rules: Rules) -> int:
    """Delete the texts of those answers that no judge has to read any more. Returns the number of answers.

    An answer fails if any judge names a stage at fault.
    """
    reasons = [_PENDING.format("?1"), *([_FAILS.format("?1")] if rules.texts is Texts.FAILING else [])]
    dropped = 0
    for key in keys:
        if not writer.execute(f"SELECT {' OR '.join(reasons)}", (key,)).fetchone()[0]:
            erase_texts(writer, key, rules)
            dropped += 1
    return dropped


def drop_earlier(writer: SqliteWriter, rules: Rules) -> int:
    """Delete texts that were stored under another `store.texts`, of a limited number of answers. Returns the number."""
    fails = f" AND NOT {_FAILS.format('s.key')}" if rules.texts is Texts.FAILING else ""
    keys = writer.execute(
        f"SELECT key FROM samples s WHERE body <> x'00' AND NOT {_PENDING.format('s.key')}{fails} LIMIT ?",  # noqa: S608 - constants
        (MAX_SAMPLES_PER_STEP,),
    ).fetchall()
    for (key,) in keys:
        erase_texts(writer, key, rules)
    return len(keys)


def erase_texts(writer: SqliteWriter, key: str, rules: Rules, *, ids: bool = True) -> None:
    """Delete the texts of one answer and of its verdicts; scores, offsets and counts remain.

    Args:
        writer: Within a transaction.
        key: The answer.
        rules: With what decrypts the verdicts.
        ids: Whether ids of the answer, its contexts and its trace remain.
    """
    cipher = rules.cipher
    indexing.remove_words(writer, key)
    writer.execute("UPDATE samples SET body = x'00' WHERE key = ?", (key,))
    _erase_traits(writer, key, rules, ids=ids)
    replies.remove(writer, key)
    for seq, line in writer.execute(_LINES, (key,)).fetchall():
        try:
            body = pack(without_texts(unpack(line if cipher is None else cipher.open(line)), None if ids else key))
        except StoreError:  # a damaged text is deleted as well; the figures are in the columns
            body = b""
        writer.execute("UPDATE verdicts SET line = seal(?) WHERE seq = ?", (body, seq))
    if not ids:
        writer.execute("UPDATE verdicts SET trace_id = NULL WHERE key = ?", (key,))


def _erase_traits(writer: SqliteWriter, key: str, rules: Rules, *, ids: bool) -> None:
    """Delete the texts in the traits of an answer and in the index of searches, or, without ids, all of them."""
    if not ids:
        writer.execute("DELETE FROM traits WHERE key = ?", (key,))
        indexing.remove(writer, key)
        return
    for (body,) in writer.execute("SELECT body FROM traits WHERE key = ?", (key,)).fetchall():
        before = body if rules.cipher is None else rules.cipher.open(body)
        kept = reduced(before)
        if kept is not None:
            writer.execute("UPDATE traits SET body = seal(?) WHERE key = ?", (kept, key))
        indexing.reduce(writer, key, before if kept is None else kept, rules)
