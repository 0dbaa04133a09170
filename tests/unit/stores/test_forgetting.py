"""`Store.forget` and `store.texts`: of what is not kept no byte remains, counters stay balanced, scores remain."""

import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.kit import AT, JUDGE, a_claim, a_draw, a_reading, a_verdict, an_admission, an_evidence, an_unjudged
from support.stores import AGES, KEEP_ALL, ONE_DAY, PARAMETERS, Opened, balanced, follow_up, found_by, readable

from ragwatch.errors import StoreError
from ragwatch.model.evidence import Evidence
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Context, Draw, Role, Turn
from ragwatch.ports import AnswerQuery, Erasure, Query, RecordedEvent, StoredRun
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.tally import Tallies, Tally
from ragwatch.stores.kept_texts import Texts
from ragwatch.stores.sqlite.store import UNDER_WAY, SqliteStore

ANNA = frozenset({("user.id", "7")})


def answer(name: str, user: int) -> Draw:
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
def people(opened: Opened) -> Opened:
    """Two people: judged, labelled, pending and in a batch; their questions in runs, states and events."""
    store = opened()
    draws = {(user, name): answer(name, user) for user in (7, 8) for name in ("judged", "pending", "batched")}
    store.admit(an_admission(*draws.values()))
    for user in (7, 8):
        draw = draws[user, "judged"]
        claim = a_claim((1, 0), text=f"MARK{user} claim", evidence=f"MARK{user} quote")
        store.settle([a_verdict(draw, an_evidence(claim, replies=(f"MARK{user} reply",)))])
        label = Label(draw.key, "ann", AT - 1.0, {Quantity.FAITHFULNESS: 1.0}, note=f"said MARK{user} before")
        store.add_labels([replace(label, at=AT, note=f"calls MARK{user}").after(label)])
        store.prepare_batch(JUDGE, {draws[user, "batched"].key: 1}, "seed", now=AT)
        question = f"Where is the MARK{user} parcel?"
        body = {"reports": [{"query": question}]}
        store.record_run(StoredRun("canary", "docs", AT, failing=False, body=body), Tallies())
        store.remember(f"last {user}", {"question": question, "n": 1})
        store.record(RecordedEvent(AT, "deploy", f"after {question}"))
    return opened


@pytest.mark.parametrize("with_scores", [False, True])
def test_no_byte_remains(people: Opened, tmp_path: Path, *, with_scores: bool) -> None:
    """Neither database nor log nor free space holds a text of hers, with the store open and closed; his are whole."""
    store = people()
    erased = store.forget(Erasure(metadata=ANNA, with_scores=with_scores))
    counts = (len(erased.keys), erased.pending, erased.verdicts, erased.labels, erased.others, erased.batched)
    assert counts == (3, 2, 1, 1, 3, 1)
    assert erased.complete
    assert b"mark7" not in readable(tmp_path).lower()  # nor as a word of an index
    people.close()
    content = readable(tmp_path).lower()
    assert (b"mark7" in content, content.count(b"mark8") > 5) == (False, True)
    store = people()
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


def test_an_id_or_a_key_selects_one_answer(people: Opened) -> None:
    """Also where its text or label cannot be decoded; damaged rows of others stop nothing."""
    store, key = people(), answer("judged", 7).key
    assert store.forget(Erasure(frozenset({"judged-MARK7-request"})), dry_run=True).keys == (key,)
    store.engine._writer.execute("UPDATE samples SET body = x'00' WHERE key = ?", (key,))
    for name in ("judged-MARK7-request", key):
        assert store.forget(Erasure(frozenset({name})), dry_run=True).keys == (key,)
    assert store.forget(Erasure(frozenset({"judged"})), dry_run=True).keys == ()
    store = people()
    store.engine._writer.execute("UPDATE labels SET body = x'78' WHERE key = ?", (key,))
    store.engine._writer.execute("INSERT INTO states VALUES ('odd', x'78'), ('plain', '{}')")
    store.engine._writer.execute("UPDATE runs SET body = x'78' WHERE id = 1")
    store.forget(Erasure(frozenset({key})))
    assert [label.note for label in store.labels(0.0)] == ["calls MARK8"]


def test_a_failed_erasure_changes_nothing(people: Opened) -> None:
    """On a full disk everything is as before, and the error says so."""
    store = people()
    store.engine._writer.execute("PRAGMA query_only=ON")
    with pytest.raises(StoreError, match=r"state: cannot write"):
        store.forget(Erasure(metadata=ANNA))
    store.engine._writer.execute("PRAGMA query_only=OFF")
    assert len(store.forget(Erasure(metadata=ANNA), dry_run=True).keys) == 3


def test_a_reader_in_the_way_is_waited_for(people: Opened, tmp_path: Path) -> None:
    """Once the reader has ended, the write-ahead log is truncated; one that stays is reported after that time."""
    store = people()
    walk = store.engine._reader.walk("SELECT key FROM samples")
    next(walk)
    assert not store.forget(Erasure(frozenset({"judged-MARK8-request"})), seconds=0.1).complete
    ending = threading.Timer(0.1, walk.close)
    ending.start()
    assert store.forget(Erasure(metadata=ANNA), seconds=30.0).complete
    ending.join()
    assert b"MARK7" not in readable(tmp_path)


def test_a_write_under_way_is_erased_too(people: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another thread writes between the erasure and the rewriting is found before the end."""
    store, rewritten = people(), SqliteStore.rewritten
    under_way = [RecordedEvent(AT, "deploy", "after Where is the MARK7 parcel?")]

    def write_before(store: SqliteStore) -> bool:
        with suppress(IndexError):
            store.record(under_way.pop())
        return rewritten(store)

    monkeypatch.setattr(SqliteStore, "rewritten", write_before)
    erased = store.forget(Erasure(metadata=ANNA))
    assert (erased.others, erased.complete) == (4, True)
    assert b"MARK7" not in readable(tmp_path)


def test_an_erasure_that_was_killed_is_ended_by_retention(
    people: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the next start, the first step of retention writes the database again; later ones need not."""
    store = people()

    def die(_: SqliteStore) -> bool:
        raise StoreError("killed")

    with monkeypatch.context() as dying:
        dying.setattr(SqliteStore, "rewritten", die)
        with pytest.raises(StoreError, match="killed"):
            store.forget(Erasure(metadata=ANNA))
        people.close()
    store = people()
    assert store.recall(UNDER_WAY) == {}
    store.prune(AGES, now=AT)
    assert store.recall(UNDER_WAY) is None
    assert b"MARK7" not in readable(tmp_path)


ANSWERS = AnswerQuery(0.0, AT + 1000)


def marked(name: str, mark: str) -> Draw:
    """A draw with a mark of its own in question and metadata."""
    contexts = [Context("Cats purr.", "doc-1", 0.5), Context("Dogs bark.", "doc-2", 0.25)]
    metadata = {"release": "v2", "user": f"SECRET{mark}USER"}
    return a_draw(name, question=f"Is the SECRET{mark} open?", contexts=contexts, metadata=metadata)


GOOD, BAD = marked("good", "A"), marked("bad", "B")


def read(cells: tuple[int, int], mark: str) -> Evidence:
    """What a model read of an answer, with the mark in claim, quote and raw reply."""
    claim = a_claim(cells, text=f"SECRET{mark} claim", evidence=f"SECRET{mark} quote")
    return an_evidence(claim, replies=(f"SECRET{mark} reply",))


def settled(opened: Opened, texts: Texts = Texts.ALL) -> Any:
    """A store with a good answer, a bad one and one that no judge could read, all settled."""
    store, unread = opened(texts=texts), marked("unread", "C")
    store.admit(an_admission(GOOD, BAD, unread))
    assert len(store.lease("embedded", 9, now=AT, seconds=1.0)) == 3
    store.settle([a_verdict(GOOD, read((1, 0), "A")), a_verdict(BAD, read((0, 0), "B")), an_unjudged(unread)])
    return store


def marks(folder: Path) -> str:
    """Marks of which a byte is left, compressed or not, or as words of an index."""
    content = readable(folder).lower()
    return "".join(mark for mark in "ABC" if f"secret{mark.lower()}".encode() in content)


def ids(store: Any, **filters: Any) -> set[str]:
    """Ids of the answers that are found."""
    return set(found_by(store, Query(**filters)))


def check(store: Any, kept: str, whole: str) -> None:
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


@pytest.mark.parametrize("opened", PARAMETERS, indirect=True)
@pytest.mark.parametrize(("texts", "kept"), [(Texts.ALL, "ABC"), (Texts.FAILING, "B"), (Texts.NONE, "")])
def test_texts_are_gone_and_scores_remain(tmp_path: Path, opened: Opened, texts: Texts, kept: str) -> None:
    """What is kept is kept whole; of everything else no byte is left once the store is closed."""
    store = settled(opened, texts)
    check(store, kept, "AB" * (texts is Texts.ALL))
    opened.close()
    assert marks(tmp_path) == kept * isinstance(store, SqliteStore)


@pytest.mark.parametrize("opened", PARAMETERS, indirect=True)
@pytest.mark.parametrize(("texts", "kept"), [(Texts.FAILING, "B"), (Texts.NONE, "")])
def test_texts_of_before_are_dropped_by_retention(tmp_path: Path, opened: Opened, texts: Texts, kept: str) -> None:
    """A state that kept all texts keeps no more than the new setting says, after the next step of retention."""
    settled(opened)
    store = opened(texts=texts)
    store.add_labels([Label(GOOD.key, "ann", AT, {Quantity.FAITHFULNESS: 1.0})])
    store.prune(KEEP_ALL, now=AT)
    assert marks(tmp_path) == kept * isinstance(store, SqliteStore)
    check(store, kept, kept)
    assert len(store.labels(0.0)) == 1
    store.prune(ONE_DAY, now=AT + 9 * 86400)
    assert store.engine.rows("SELECT key FROM answer_index") == []
    assert not isinstance(store, SqliteStore) or store.engine.rows("SELECT id FROM terms") == []


def test_an_answer_that_comes_again_is_known(opened: Opened) -> None:
    """Without its text an answer is a duplicate still: it is not judged twice."""
    store = settled(opened, Texts.NONE)
    assert store.admit(an_admission(GOOD)) == 0
    assert store.tallies()[Tally.REJECTED, ("app", "duplicate_id")] == 1
    assert store.pending() == {}


@pytest.mark.parametrize(("texts", "kept"), [(Texts.NONE, False), (Texts.FAILING, True)])
def test_the_next_judge_of_a_cascade_reads_the_text(opened: Opened, texts: Texts, *, kept: bool) -> None:
    """Texts stay until the last judge has read; one that finds a fault keeps them under `failing`, and is found."""
    store = opened(texts=texts)
    store.admit(an_admission(GOOD))
    store.settle([a_verdict(GOOD)], [follow_up(GOOD)])
    waiting = store.lease("second", 9, now=AT, seconds=1.0)
    assert [draw.sample.question for draw in waiting] == [GOOD.sample.question]
    assert not kept or ids(store, words=(("secreta",),)) == set()
    store.settle([a_verdict(GOOD, read((0, 0), "A"), a_reading("second"))])
    assert [row.sample is not None for row in store.find(Query())] == [kept, kept]
    assert not kept or ids(store, words=(("secreta",),)) == {"good"}


def test_a_damaged_line_is_dropped_too(opened: Opened) -> None:
    """What cannot be decoded cannot be kept in part; its figures come from the columns."""
    settled(opened)
    store = opened(texts=Texts.NONE)
    store.engine._writer.execute("UPDATE verdicts SET line = x'78' WHERE key = ?", (GOOD.key,))
    store.engine._writer.execute("UPDATE traits SET body = x'0102' WHERE key = ?", (GOOD.key,))
    store.prune(AGES, now=AT)
    stored = {row.verdict.key: row for row in store.find(Query())}
    assert stored[GOOD.key].verdict.scores[Quantity.FAITHFULNESS] == 1.0
    assert {row.key: traits is None for row, traits in store.answers(ANSWERS)} == {GOOD.key: True, BAD.key: False}


def test_what_a_killed_process_left_is_removed(tmp_path: Path, opened: Opened) -> None:
    """Bytes that were left in free space and in the write-ahead log are gone after the next step of retention."""
    store = settled(opened)
    store.engine._writer.execute("UPDATE samples SET body = x'00'")  # as after a kill: dropped, and not yet rewritten
    for table in ("verdicts", "traits", "replies"):
        store.engine._writer.execute(f"DELETE FROM {table}")  # noqa: S608 - constants
    assert b"SECRET" in readable(tmp_path)
    store = opened(texts=Texts.NONE)
    store.prune(AGES, now=AT)
    assert b"SECRET" not in readable(tmp_path)
