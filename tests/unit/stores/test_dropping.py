"""`store.texts`: after judging, scores remain and texts are gone; before judging, nothing is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.kit import AT, a_claim, a_draw, a_reading, a_verdict, an_admission, an_evidence, an_unjudged
from support.stored_bytes import readable

from ragwatch.core.evidence import Evidence
from ragwatch.core.labels.label import Label
from ragwatch.core.sample import Context, Draw
from ragwatch.core.tally import Tally
from ragwatch.model.quantities import Quantity
from ragwatch.ports import AnswerQuery, Assignment, FollowUp, Query, Retention
from ragwatch.stores.kept_texts import Texts
from ragwatch.stores.sqlite.store import SqliteStore

KEEP = Retention(days=9999, failing_days=9999, bytes=1 << 30)
ANSWERS = AnswerQuery(0.0, AT + 1000)


def answer(name: str, mark: str) -> Draw:
    """A draw with a mark of its own in question and metadata."""
    contexts = [Context("Cats purr.", "doc-1", 0.5), Context("Dogs bark.", "doc-2", 0.25)]
    metadata = {"release": "v2", "user": f"SECRET{mark}USER"}
    return a_draw(name, question=f"Is the SECRET{mark} open?", contexts=contexts, metadata=metadata)


GOOD, BAD = answer("good", "A"), answer("bad", "B")


def read(cells: tuple[int, int], mark: str) -> Evidence:
    """What a model read of an answer, with the mark in claim, quote and raw reply."""
    claim = a_claim(cells, text=f"SECRET{mark} claim", evidence=f"SECRET{mark} quote")
    return an_evidence(claim, replies=(f"SECRET{mark} reply",))


def settled(folder: Path, texts: Texts = Texts.ALL) -> SqliteStore:
    """A store with a good answer, a bad one and one that no judge could read, all settled."""
    store = SqliteStore(folder, texts=texts)
    unread = answer("unread", "C")
    store.admit(an_admission(GOOD, BAD, unread))
    assert len(store.lease("embedded", 9, now=AT, seconds=1.0)) == 3
    store.settle([a_verdict(GOOD, read((1, 0), "A")), a_verdict(BAD, read((0, 0), "B")), an_unjudged(unread)])
    return store


def marks(folder: Path) -> str:
    """Marks of which a byte is left, compressed or not, or as words of an index."""
    content = readable(folder).lower()
    return "".join(mark for mark in "ABC" if f"secret{mark.lower()}".encode() in content)


def ids(store: SqliteStore, **filters: Any) -> set[str]:
    """Ids of the answers that are found."""
    return {str(row.verdict.id) for row in store.find(Query(**filters))}


def check(store: SqliteStore, kept: str, whole: str) -> None:
    """The texts of these marks are kept everywhere, and no others; of `whole` also words and persons in traits."""
    names = {"A": "good", "B": "bad", "C": "unread"}
    stored = {row.verdict.id: row for row in store.find(Query())}
    assert {name for name, row in stored.items() if row.sample is not None} == {names[mark] for mark in kept}
    assert stored["good"].verdict.scores[Quantity.FAITHFULNESS] == 1.0
    assert stored["bad"].verdict.scores[Quantity.FAITHFULNESS] == 0.0
    assert [bool(claim.text) for claim in stored["good"].verdict.claims] == ["A" in kept]
    assert all(row.damage is None for row in (*stored.values(), *store.summaries(Query())))
    replies = {entry.verdict.key: store.replies(entry.seq) for entry in store.entries(Query(outcome="judged"))}
    assert replies == {draw.key: (f"SECRET{mark} reply",) * (mark in kept) for mark, draw in (("A", GOOD), ("B", BAD))}
    for row, traits in store.answers(ANSWERS):
        mark = "A" if row.key == GOOD.key else "B"
        assert traits is not None
        assert traits["words"] == ["is", "the", f"secret{mark.lower()}", "open"] * (mark in whole)
        assert traits["metadata"] == {"release": "v2"} | ({"user": f"SECRET{mark}USER"} if mark in whole else {})
    assert ids(store, metadata=(("release", "v2"),)) == ids(store, context="doc-1") == set(names.values())
    assert ids(store, metadata=(("user", "SECRETBUSER"),)) == ({"bad"} if "B" in whole else set())
    if store.rules.words_off is None:
        assert ids(store, words=(("open",),)) == {names[mark] for mark in kept}


@pytest.mark.parametrize(("texts", "kept"), [(Texts.ALL, "ABC"), (Texts.FAILING, "B"), (Texts.NONE, "")])
def test_texts_are_gone_and_scores_remain(tmp_path: Path, texts: Texts, kept: str) -> None:
    """What is kept is kept whole; of everything else no byte is left once the store is closed."""
    store = settled(tmp_path, texts)
    check(store, kept, "AB" * (texts is Texts.ALL))
    store.close()
    assert marks(tmp_path) == kept


@pytest.mark.parametrize(("texts", "kept"), [(Texts.FAILING, "B"), (Texts.NONE, "")])
def test_texts_of_before_are_dropped_by_retention(tmp_path: Path, texts: Texts, kept: str) -> None:
    """A state that kept all texts keeps no more than the new setting says, after the next step of retention."""
    settled(tmp_path).close()
    store = SqliteStore(tmp_path, texts=texts)
    store.add_labels([Label(GOOD.key, "ann", AT, {Quantity.FAITHFULNESS: 1.0})])
    store.prune(KEEP, now=AT)
    assert marks(tmp_path) == kept
    check(store, kept, kept)
    assert len(store.labels(0.0)) == 1
    store.prune(Retention(days=1, failing_days=1, bytes=1 << 30), now=AT + 9 * 86400)
    assert store.engine.rows("SELECT id FROM answer_index UNION SELECT id FROM terms") == []
    store.close()


def test_an_answer_that_comes_again_is_known(tmp_path: Path) -> None:
    """Without its text an answer is a duplicate still: it is not judged twice."""
    store = settled(tmp_path, Texts.NONE)
    assert store.admit(an_admission(GOOD)) == 0
    assert store.tallies()[Tally.REJECTED, ("app", "duplicate_id")] == 1
    assert store.pending() == {}
    store.close()


def test_the_next_judge_of_a_cascade_reads_the_text(tmp_path: Path) -> None:
    """Texts stay until the last judge has read; one that finds a fault keeps them under `failing`, and is found."""
    for texts, kept in ((Texts.NONE, False), (Texts.FAILING, True)):
        store = SqliteStore(tmp_path / texts, texts=texts)
        store.admit(an_admission(GOOD))
        follow = FollowUp(GOOD.key, "embedded", Assignment("second", 1.0), AT)
        store.settle([a_verdict(GOOD)], [follow])
        waiting = store.lease("second", 9, now=AT, seconds=1.0)
        assert [draw.sample.question for draw in waiting] == [GOOD.sample.question]
        assert not kept or ids(store, words=(("secreta",),)) == set()
        store.settle([a_verdict(GOOD, read((0, 0), "A"), a_reading("second"))])
        assert [row.sample is not None for row in store.find(Query())] == [kept, kept]
        assert not kept or ids(store, words=(("secreta",),)) == {"good"}
        store.close()


def test_a_damaged_line_is_dropped_too(tmp_path: Path) -> None:
    """What cannot be decoded cannot be kept in part; its figures come from the columns."""
    settled(tmp_path).close()
    store = SqliteStore(tmp_path, texts=Texts.NONE)
    store.engine._writer.execute("UPDATE verdicts SET line = x'78' WHERE key = ?", (GOOD.key,))
    store.engine._writer.execute("UPDATE traits SET body = x'0102' WHERE key = ?", (GOOD.key,))
    store.prune(Retention(30.0, 90.0, 1 << 30), now=AT)
    stored = {row.verdict.key: row for row in store.find(Query())}
    assert stored[GOOD.key].verdict.scores[Quantity.FAITHFULNESS] == 1.0
    assert {row.key: traits is None for row, traits in store.answers(ANSWERS)} == {GOOD.key: True, BAD.key: False}
    store.close()


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    """Bytes that were left in free space and in the write-ahead log are gone after the next step of retention."""
    store = settled(tmp_path)
    store.engine._writer.execute("UPDATE samples SET body = x'00'")  # as after a kill: dropped, and not yet rewritten
    for table in ("verdicts", "traits", "replies"):
        store.engine._writer.execute(f"DELETE FROM {table}")  # noqa: S608 - constants
    assert b"SECRET" in readable(tmp_path)
    store.close()
    store = SqliteStore(tmp_path, texts=Texts.NONE)
    store.prune(Retention(30.0, 90.0, 1 << 30), now=AT)
    assert b"SECRET" not in readable(tmp_path)
    store.close()
