"""`store.texts`: after judging, scores remain and texts are gone; before judging, nothing is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.kit import AT, a_claim, a_draw, a_reading, a_verdict, an_admission, an_evidence, an_unjudged
from support.stored_bytes import readable

from ragwatch.core.labels.label import Label
from ragwatch.core.tally import Tally
from ragwatch.model.quantities import Quantity
from ragwatch.ports import Assignment, FollowUp, Query, Retention
from ragwatch.stores.kept_texts import Texts
from ragwatch.stores.sqlite.store import SqliteStore

GOOD, BAD = a_draw("good", question="Is the SECRETA open?"), a_draw("bad", question="Is the SECRETB open?")


def fails(judge: str = "embedded") -> dict[str, object]:
    """Parts of a verdict that names a stage at fault."""
    evidence = an_evidence(a_claim((0, 0), text="SECRETB claim", evidence="SECRETB quote"))
    return {"evidence": evidence, "reading": a_reading(judge)}


def settled(folder: Path, texts: Texts) -> SqliteStore:
    """A store with a good answer, a bad one and one that no judge could read, all settled."""
    store = SqliteStore(folder, texts=texts)
    unread = a_draw("unread", question="Is the SECRETC open?")
    store.admit(an_admission(GOOD, BAD, unread))
    assert len(store.lease("embedded", 9, now=AT, seconds=1.0)) == 3
    good = a_verdict(GOOD, an_evidence(a_claim((1, 0), text="SECRETA claim", evidence="SECRETA quote")))
    store.settle([good, a_verdict(BAD, **fails()), an_unjudged(unread)])  # type: ignore[arg-type]  # parts of a verdict
    return store


@pytest.mark.parametrize(
    ("texts", "kept"), [(Texts.ALL, b"ABC"), (Texts.FAILING, b"B"), (Texts.NONE, b"")], ids=["all", "failing", "none"]
)
def test_texts_are_gone_and_scores_remain(tmp_path: Path, texts: Texts, kept: bytes) -> None:
    """What is kept is kept whole; of everything else no byte is left once the store is closed."""
    store = settled(tmp_path, texts)
    stored = {row.verdict.id: row for row in store.find(Query())}
    assert {name: row.sample is not None for name, row in stored.items()} == {
        name: mark in kept for name, mark in (("good", 65), ("bad", 66), ("unread", 67))
    }
    assert stored["good"].verdict.scores[Quantity.FAITHFULNESS] == 1.0
    assert stored["bad"].verdict.scores[Quantity.FAITHFULNESS] == 0.0
    assert [bool(claim.text) for claim in stored["good"].verdict.claims] == [texts is Texts.ALL]
    assert all(row.damage is None for row in (*stored.values(), *store.summaries(Query())))
    store.close()
    content = readable(tmp_path)
    assert {mark for mark in b"ABC" if b"SECRET" + bytes([mark]) in content} == set(kept)


def test_an_answer_that_comes_again_is_known(tmp_path: Path) -> None:
    """Without its text an answer is a duplicate still: it is not judged twice."""
    store = settled(tmp_path, Texts.NONE)
    assert store.admit(an_admission(GOOD)) == 0
    assert store.tallies()[Tally.REJECTED, ("app", "duplicate_id")] == 1
    assert store.pending() == {}
    store.close()


def test_the_next_judge_of_a_cascade_reads_the_text(tmp_path: Path) -> None:
    """Texts stay until the last judge has read; one that finds a fault keeps them under `failing`."""
    for texts, verdict, kept in ((Texts.NONE, fails("second"), False), (Texts.FAILING, fails("second"), True)):
        store = SqliteStore(tmp_path / texts, texts=texts)
        store.admit(an_admission(GOOD))
        follow = FollowUp(GOOD.key, "embedded", Assignment("second", 1.0), AT)
        store.settle([a_verdict(GOOD)], [follow])
        assert [draw.sample.question for draw in store.lease("second", 9, now=AT, seconds=1.0)] == [
            GOOD.sample.question
        ]
        store.settle([a_verdict(GOOD, **verdict)])  # type: ignore[arg-type]  # parts of a verdict
        assert [row.sample is not None for row in store.find(Query())] == [kept, kept]
        store.close()


def test_texts_of_before_are_dropped_by_retention(tmp_path: Path) -> None:
    """A state that kept all texts keeps no more than the new setting says, after the next step of retention."""
    settled(tmp_path, Texts.ALL).close()
    store = SqliteStore(tmp_path, texts=Texts.NONE)
    store.add_labels([Label(GOOD.key, "ann", AT, {Quantity.FAITHFULNESS: 1.0})])
    store.prune(Retention(30.0, 90.0, 1 << 30), now=AT)
    assert b"SECRET" not in readable(tmp_path)
    assert [row.sample for row in store.find(Query())] == [None] * 3
    assert len(store.labels(0.0)) == 1
    store.close()


def test_a_damaged_line_is_dropped_too(tmp_path: Path) -> None:
    """What cannot be decoded cannot be kept in part; its figures come from the columns."""
    settled(tmp_path, Texts.ALL).close()
    store = SqliteStore(tmp_path, texts=Texts.NONE)
    store.engine._writer.execute("UPDATE verdicts SET line = x'78' WHERE key = ?", (GOOD.key,))
    store.prune(Retention(30.0, 90.0, 1 << 30), now=AT)
    stored = {row.verdict.key: row for row in store.find(Query())}
    assert stored[GOOD.key].verdict.scores[Quantity.FAITHFULNESS] == 1.0
    store.close()


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    """Bytes that were left in free space and in the write-ahead log are gone after the next step of retention."""
    store = settled(tmp_path, Texts.ALL)
    store.engine._writer.execute("UPDATE samples SET body = x'00'")  # as after a kill: dropped, and not yet rewritten
    store.engine._writer.execute("DELETE FROM verdicts")
    assert b"SECRET" in readable(tmp_path)
    store.close()
    store = SqliteStore(tmp_path, texts=Texts.NONE)
    store.prune(Retention(30.0, 90.0, 1 << 30), now=AT)
    assert b"SECRET" not in readable(tmp_path)
    store.close()
