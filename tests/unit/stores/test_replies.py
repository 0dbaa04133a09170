"""Raw replies in SQLite: kept as `store.texts` and `store.encryption` say, and no byte stays behind."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.kit import AT, a_draw, a_reading, a_verdict, an_admission, an_evidence
from support.stored_bytes import readable

from ragwatch.ports import Erasure, Query, Retention
from ragwatch.stores.encryption import TextCipher
from ragwatch.stores.kept_texts import Texts
from ragwatch.stores.rows import pack
from ragwatch.stores.sqlite.store import SqliteStore

REPLY = "the SECRETREPLY of a model"


def filled(folder: Path, *, fails: bool = False, **settings: Any) -> SqliteStore:
    """A store with one answer that a model has read."""
    store = SqliteStore(folder, **settings)
    draw = a_draw("r1")
    store.admit(an_admission(draw, judges=("claude",)))
    read = an_evidence((0, 0) if fails else (1, 0), replies=(REPLY,))
    store.settle([a_verdict(draw, read, a_reading("claude"))])
    return store


def stored(store: SqliteStore) -> tuple[str, ...]:
    """The replies of the only verdict."""
    (entry,) = store.entries(Query())
    return store.replies(entry.seq)


@pytest.mark.parametrize(
    ("texts", "fails", "kept"),
    [
        (Texts.ALL, False, True),
        (Texts.FAILING, True, True),
        (Texts.FAILING, False, False),
        (Texts.NONE, True, False),
    ],
)
def test_replies_are_kept_where_texts_are(tmp_path: Path, texts: Texts, *, fails: bool, kept: bool) -> None:
    """`store.texts` decides; of what is not kept, no byte is in the database."""
    store = filled(tmp_path, fails=fails, texts=texts)
    assert stored(store) == ((REPLY,) if kept else ())
    store.close()
    assert (b"SECRETREPLY" in readable(tmp_path)) is kept


def test_replies_are_encrypted_like_other_texts(tmp_path: Path) -> None:
    """They are read with the key, and the database does not hold them in the clear."""
    store = filled(tmp_path, cipher=TextCipher([b"k" * 32]))
    assert stored(store) == (REPLY,)
    store.close()
    assert b"SECRETREPLY" not in readable(tmp_path)


@pytest.mark.parametrize("forgotten", [True, False])
def test_no_byte_of_a_deleted_reply_is_left(tmp_path: Path, *, forgotten: bool) -> None:
    """Neither after an erasure, nor once texts are no longer kept."""
    store = filled(tmp_path)
    if forgotten:
        store.forget(Erasure(ids=frozenset({"r1"})))
    else:
        store.close()
        store = SqliteStore(tmp_path, texts=Texts.NONE)
        store.prune(Retention(days=9999, failing_days=9999, bytes=1 << 30), now=AT)
    assert stored(store) == ()
    store.close()
    assert b"SECRETREPLY" not in readable(tmp_path)


def test_damaged_replies_are_none(tmp_path: Path) -> None:
    """A page shows the verdict without them."""
    with closing(SqliteStore(tmp_path)) as store:
        for body in (b"\x01", pack({}), pack({"replies": None})):
            with store.engine.transaction() as writer:
                writer.execute("INSERT OR REPLACE INTO replies VALUES (1, 'key', ?)", (body,))
            assert store.replies(1) == ()
