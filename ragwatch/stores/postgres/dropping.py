"""Deletes the texts of settled answers and keeps their scores, as `store.texts` says.

The row of a sample remains, with a zero byte as its body: its key is needed to recognise an answer that is delivered
again. The bytes of a deleted text remain in the files of the server until it reuses their place (autovacuum).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ragwatch.errors import StoreError
from ragwatch.stores.answer_terms import Rules
from ragwatch.stores.kept_texts import Texts, without_texts
from ragwatch.stores.postgres import indexing, replies
from ragwatch.stores.postgres.connections import Writer
from ragwatch.stores.rows import pack, unpack
from ragwatch.stores.traits import reduced

MAX_SAMPLES_PER_STEP = 500
DROPPED = b"\x00"
_PENDING = "EXISTS (SELECT 1 FROM work w WHERE w.key = s.key)"
_FAILS = "EXISTS (SELECT 1 FROM verdicts v WHERE v.key = s.key AND v.outcome = 'judged' AND v.stage NOT IN ('none'))"

Cell = Callable[[bytes], bytes]


def drop_settled(writer: Writer, keys: Sequence[str], rules: Rules, *, seal: Cell, unseal: Cell) -> None:
    """Delete the texts of those answers that no judge has to read any more.

    An answer fails if any judge names a stage at fault. The caller holds the lock of sequences: of two workers that
    settle the last two verdicts on an answer, the later one sees both.
    """
    stored = writer.execute(
        f"SELECT key FROM samples s WHERE key = ANY(%b::text[]) AND {_droppable(rules.texts)} ORDER BY key".encode(),  # noqa: S608 - constants
        (list(keys),),
    ).fetchall()
    erase_texts(writer, [key for (key,) in stored], rules, seal=seal, unseal=unseal)


def drop_earlier(writer: Writer, rules: Rules, *, seal: Cell, unseal: Cell) -> int:
    """Delete texts that were stored under another `store.texts`, of a limited number of answers. Returns the number."""
    stored = writer.execute(
        f"SELECT key FROM samples s WHERE body <> %s AND {_droppable(rules.texts)} LIMIT %s".encode(),  # noqa: S608 - constants
        (DROPPED, MAX_SAMPLES_PER_STEP),
    ).fetchall()
    erase_texts(writer, sorted(key for (key,) in stored), rules, seal=seal, unseal=unseal)
    return len(stored)


def _droppable(texts: Texts) -> str:
    return f"NOT {_PENDING} AND NOT {_FAILS}" if texts is Texts.FAILING else f"NOT {_PENDING}"


def erase_texts(
    writer: Writer, keys: Sequence[str], rules: Rules, *, seal: Cell, unseal: Cell, ids: bool = True
) -> None:
    """Delete the texts of answers and of their verdicts; scores, offsets and counts remain.

    Args:
        writer: Within a transaction.
        keys: The answers.
        rules: What is indexed for searches.
        seal: Encrypts a verdict.
        unseal: Decrypts it.
        ids: Whether ids of the answers, their contexts and their traces remain.
    """
    if not keys:
        return
    writer.execute("UPDATE samples SET body = %s WHERE key = ANY(%b::text[])", (DROPPED, list(keys)))
    if ids:
        _erase_traits(writer, list(keys), rules, seal=seal, unseal=unseal)
    else:
        writer.execute("DELETE FROM traits WHERE key = ANY(%b::text[])", (list(keys),))
        indexing.remove(writer, list(keys))
    replies.remove(writer, keys)
    lines = writer.execute(
        "SELECT seq, key, line FROM verdicts WHERE key = ANY(%b::text[]) ORDER BY seq", (list(keys),)
    ).fetchall()
    kept = [(seal(_kept(unseal(line), None if ids else key)), seq) for seq, key, line in lines]
    if kept:
        writer.executemany("UPDATE verdicts SET line = %s WHERE seq = %s", kept)
    if not ids:
        writer.execute("UPDATE verdicts SET trace_id = NULL WHERE key = ANY(%b::text[])", (list(keys),))


def _kept(line: bytes, identity: str | None) -> bytes:
    try:
        return pack(without_texts(unpack(line), identity))
    except StoreError:  # a damaged text is deleted as well; the figures are in the columns
        return b""


def _erase_traits(writer: Writer, keys: list[str], rules: Rules, *, seal: Cell, unseal: Cell) -> None:
    """Delete the texts in the traits of answers and in the index of searches."""
    stored = writer.execute("SELECT key, body FROM traits WHERE key = ANY(%b::text[]) ORDER BY key", (keys,)).fetchall()
    before = {key: unseal(body) for key, body in stored}
    kept = {key: smaller for key, body in before.items() if (smaller := reduced(body)) is not None}
    if kept:
        writer.executemany("UPDATE traits SET body = %s WHERE key = %s", [(seal(kept[key]), key) for key in kept])
    indexing.reduce(writer, before | kept, rules)
