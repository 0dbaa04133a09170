"""`Store.forget`: nothing about a person remains, counters stay balanced, and others lose nothing."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from support.kit import AT, JUDGE, a_claim, a_draw, a_verdict, an_admission, an_evidence
from support.stored_bytes import readable

from ragwatch.core.labels.label import Label
from ragwatch.core.sample import Role, Turn
from ragwatch.core.tally import Tallies, Tally
from ragwatch.errors import StoreError
from ragwatch.model.quantities import Quantity
from ragwatch.ports import AnswerQuery, Erasure, Query, RecordedEvent, Retention, StoredRun
from ragwatch.stores.sqlite.store import UNDER_WAY, SqliteStore

ANNA = frozenset({("user.id", "7")})


def answer(name: str, user: int) -> object:
    """A draw of a person, with a mark of theirs in every text."""
    mark = f"MARK{user}"
    return a_draw(
        f"{name}-{mark}-request",
        question=f"Where is the {mark} parcel?",
        answer=f"The {mark} parcel is lost.",
        contexts=(f"Lists {mark}.", "Dogs bark."),
        history=(Turn(Role.USER, f"Hello from {mark}, twelve"),),
        metadata={"user": {"id": user}, "trace_id": f"trace-{mark}"},
    )


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Two people: judged, labelled, pending and in a batch; their questions in runs, states and events."""
    store = SqliteStore(tmp_path)
    draws = {(user, name): answer(name, user) for user in (7, 8) for name in ("judged", "pending", "batched")}
    store.admit(an_admission(*draws.values()))  # type: ignore[arg-type]  # draws
    for user in (7, 8):
        draw = draws[user, "judged"]
        claim = a_claim((1, 0), text=f"MARK{user} claim", evidence=f"MARK{user} quote")
        store.settle([a_verdict(draw, an_evidence(claim, replies=(f"MARK{user} reply",)))])  # type: ignore[arg-type]  # a draw
        label = Label(draw.key, "ann", AT - 1.0, {Quantity.FAITHFULNESS: 1.0}, note=f"said MARK{user} before")
        store.add_labels([replace(label, at=AT, note=f"calls MARK{user}").after(label)])  # type: ignore[attr-defined]
        store.prepare_batch(JUDGE, {draws[user, "batched"].key: 1}, "seed", now=AT)  # type: ignore[attr-defined]
        question = f"Where is the MARK{user} parcel?"
        store.record_run(
            StoredRun("canary", "docs", AT, failing=False, body={"reports": [{"query": question}]}), Tallies()
        )
        store.remember(f"last {user}", {"question": question, "n": 1})
        store.record(RecordedEvent(AT, "deploy", f"after {question}"))
    store.close()
    return tmp_path


def balanced(store: SqliteStore) -> bool:
    """Whether assigned = judged + unjudged + pending."""
    tallies, pending = store.tallies_and_pending()
    sums: Counter[str] = Counter()
    for (tally, labels), value in tallies.items():
        if tally in (Tally.JUDGED, Tally.UNJUDGED):
            sums[labels[1]] += int(value)
    return all(tallies[Tally.ASSIGNED, (judge,)] == sums[judge] + pending.get(judge, 0) for judge in sums)


@pytest.mark.parametrize("with_scores", [False, True])
def test_no_byte_remains(state: Path, with_scores: bool) -> None:  # noqa: FBT001 - of the table
    """Neither database nor log nor free space holds a text of hers, with the store open and closed; his are whole."""
    store = SqliteStore(state)
    erased = store.forget(Erasure(metadata=ANNA, with_scores=with_scores))
    counts = (len(erased.keys), erased.pending, erased.verdicts, erased.labels, erased.others, erased.batched)
    assert counts == (3, 2, 1, 1, 3, 1)
    assert erased.complete
    assert b"mark7" not in readable(state).lower()  # nor as a word of an index
    store.close()
    content = readable(state).lower()
    assert (b"mark7" in content, content.count(b"mark8") > 5) == (False, True)
    store = SqliteStore(state)
    assert balanced(store)
    assert store.tallies()[Tally.UNJUDGED, ("search", JUDGE, "erased")] == 2
    verdicts = [row for row in store.find(Query(outcome="judged")) if row.sample is None]
    assert [row.verdict.scores[Quantity.FAITHFULNESS] for row in verdicts] == ([] if with_scores else [1.0])
    assert [(label.note, len(label.scores)) for label in store.labels(0.0)] == [
        *([] if with_scores else [("", 1)]), ("calls MARK8", 1)
    ]  # fmt: skip
    assert [words for words in ("mark7", "mark8") if store.find(Query(words=((words,),)))] == ["mark8"]
    traits = {row.key: traits for row, traits in store.answers(AnswerQuery(0.0, AT + 9))}
    assert [traits[row.verdict.key] for row in verdicts] == ([] if with_scores else [None])
    assert len(store.runs("canary", "docs", 9)) == 2
    assert len(store.events(0.0)) == 2
    store.close()


def test_an_id_or_a_key_selects_one_answer(state: Path) -> None:
    """Ids of the log and keys of pages are both understood, also where the text is not stored any more."""
    store = SqliteStore(state)
    key = answer("judged", 7).key  # type: ignore[attr-defined]  # a draw
    assert store.forget(Erasure(frozenset({"judged-MARK7-request"})), dry_run=True).keys == (key,)
    store.engine._writer.execute("UPDATE samples SET body = x'00' WHERE key = ?", (key,))
    for name in ("judged-MARK7-request", key):
        assert store.forget(Erasure(frozenset({name})), dry_run=True).keys == (key,)
    assert store.forget(Erasure(frozenset({"judged"})), dry_run=True).keys == ()
    store.close()


def test_damaged_rows_of_a_person_are_erased(state: Path) -> None:
    """A label that cannot be decoded is deleted; damaged rows of others stop nothing."""
    store = SqliteStore(state)
    key = answer("judged", 7).key  # type: ignore[attr-defined]  # a draw
    store.engine._writer.execute("UPDATE labels SET body = x'78' WHERE key = ?", (key,))
    store.engine._writer.execute("INSERT INTO states VALUES ('odd', x'78'), ('plain', '{}')")
    store.engine._writer.execute("UPDATE runs SET body = x'78' WHERE id = 1")
    store.forget(Erasure(frozenset({key})))
    assert [label.note for label in store.labels(0.0)] == ["calls MARK8"]
    store.close()


def test_a_failed_erasure_changes_nothing(state: Path) -> None:
    """On a full disk everything is as before, and the error says so."""
    store = SqliteStore(state)
    store.engine._writer.execute("PRAGMA query_only=ON")
    with pytest.raises(StoreError, match=r"state: cannot write"):
        store.forget(Erasure(metadata=ANNA))
    store.engine._writer.execute("PRAGMA query_only=OFF")
    assert len(store.forget(Erasure(metadata=ANNA), dry_run=True).keys) == 3
    store.close()


def test_a_reader_in_the_way_is_waited_for(state: Path) -> None:
    """Once the reader has ended, the write-ahead log is truncated; one that stays is reported after that time."""
    store = SqliteStore(state)
    walk = store.engine._reader.walk("SELECT key FROM samples")
    next(walk)
    assert not store.forget(Erasure(frozenset({"judged-MARK8-request"})), seconds=0.1).complete
    ending = threading.Timer(0.1, walk.close)
    ending.start()
    assert store.forget(Erasure(metadata=ANNA), seconds=30.0).complete
    ending.join()
    assert b"MARK7" not in readable(state)
    store.close()


class BusyStore(SqliteStore):
    """A store in which another thread writes a text of hers while she is being erased."""

    under_way: list[RecordedEvent]

    def rewritten(self) -> bool:
        """Write it before."""
        with suppress(IndexError):
            self.record(self.under_way.pop())
        return super().rewritten()


def test_a_write_under_way_is_erased_too(state: Path) -> None:
    """What is written between the erasure and the rewriting is found before the end."""
    store = BusyStore(state)
    store.under_way = [RecordedEvent(AT, "deploy", "after Where is the MARK7 parcel?")]
    erased = store.forget(Erasure(metadata=ANNA))
    assert (erased.others, erased.complete) == (4, True)
    assert b"MARK7" not in readable(state)
    store.close()


class DyingStore(SqliteStore):
    """A store whose process dies before the database is written again."""

    def rewritten(self) -> bool:
        """Die."""
        raise StoreError("killed")


def test_an_erasure_that_was_killed_is_ended_by_retention(state: Path) -> None:
    """After the next start, the first step of retention writes the database again; later ones need not."""
    store: SqliteStore = DyingStore(state)
    with pytest.raises(StoreError, match="killed"):
        store.forget(Erasure(metadata=ANNA))
    store.close()
    store = SqliteStore(state)
    assert store.recall(UNDER_WAY) == {}
    store.prune(Retention(days=30.0, failing_days=90.0, bytes=1 << 30), now=AT)
    assert store.recall(UNDER_WAY) is None
    assert b"MARK7" not in readable(state)
    store.close()
