"""Traits in the SQLite database: no text where texts are not kept, none left by an erasure, and read by index."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.kit import AT, a_claim, a_draw, a_verdict, an_admission, an_evidence
from support.stored_bytes import readable

from ragwatch.errors import StoreError
from ragwatch.ports import AnswerQuery, Erasure, Retention
from ragwatch.stores import traits
from ragwatch.stores.kept_texts import Texts
from ragwatch.stores.queries import answers_statement
from ragwatch.stores.rows import pack
from ragwatch.stores.sqlite.store import SqliteStore

ALL = AnswerQuery(0.0, AT + 1000)
DRAW = a_draw("r1", question="Is SECRETWORD open?", metadata={"release": "v2", "user": "SECRETUSER"})


def settled(folder: Path, texts: Texts = Texts.ALL) -> SqliteStore:
    """A store with one answer, which fails."""
    store = SqliteStore(folder, texts=texts, text_search=False)  # whose words are those of texts that are kept
    store.admit(an_admission(DRAW))
    store.settle([a_verdict(DRAW, an_evidence(a_claim((0, 0))))])
    return store


@pytest.mark.parametrize("texts", Texts)
def test_words_are_stored_where_all_texts_are_kept(tmp_path: Path, texts: Texts) -> None:
    """Otherwise what describes the deployment remains, also of failing answers, and no word of a question."""
    store = settled(tmp_path, texts)
    ((_, stored),) = store.answers(ALL)
    assert stored is not None
    assert stored["words"] == (["is", "secretword", "open"] if texts is Texts.ALL else [])
    assert stored["metadata"] == {"release": "v2", **({"user": "SECRETUSER"} if texts is Texts.ALL else {})}
    store.close()
    assert (b"secretword" in readable(tmp_path)) is (texts is Texts.ALL)


def test_words_of_before_go_when_texts_are_no_longer_kept(tmp_path: Path) -> None:
    """After a change of `store.texts`, retention deletes what was stored before; scores and release remain."""
    settled(tmp_path).close()
    store = SqliteStore(tmp_path, texts=Texts.NONE)
    store.prune(Retention(days=9999, failing_days=9999, bytes=1 << 30), now=AT)
    ((row, stored),) = store.answers(ALL)
    assert (row.key, stored is not None and stored["metadata"]) == (DRAW.key, {"release": "v2"})
    store.close()
    assert b"SECRETUSER" not in readable(tmp_path)


def test_a_forgotten_answer_leaves_no_traits(tmp_path: Path) -> None:
    """No byte of its words or metadata is left in the database."""
    store = settled(tmp_path)
    store.forget(Erasure(metadata=frozenset({("user", "SECRETUSER")})))
    assert [stored for _, stored in store.answers(ALL)] == [None]
    store.close()
    content = readable(tmp_path)
    assert (b"SECRETUSER" in content, b"secretword" in content) == (False, False)


def test_answers_are_read_by_index(tmp_path: Path) -> None:
    """Time, route and cursor scan no table."""
    store = settled(tmp_path)
    sql, parameters = answers_statement(AnswerQuery(0.0, AT, "search", "embedded", (AT, 7)))
    plan = [row[-1] for row in store.engine.rows(f"EXPLAIN QUERY PLAN {sql}", parameters)]
    assert any("verdicts_at" in step for step in plan)
    assert not [step for step in plan if step.startswith(("SCAN v", "SCAN t ")) or "TEMP" in step]
    store.close()


def test_damaged_traits_are_none(tmp_path: Path) -> None:
    """A row that cannot be decoded has scores still; a damaged one is emptied when texts are dropped."""
    store = settled(tmp_path)
    with store.engine.transaction() as writer:
        writer.execute("UPDATE traits SET body = x'0102'")
    assert [stored for _, stored in store.answers(ALL)] == [None]
    assert traits.reduced(b"\x01\x02") == traits.reduced(pack({})) == b""
    with pytest.raises(StoreError):
        traits.answer_of(())
    store.close()
