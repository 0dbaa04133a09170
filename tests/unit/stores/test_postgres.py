"""The PostgreSQL store beyond the contract of all kinds: several workers, damage, erasure, retention."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from support.kit import AT, JUDGE, a_draw, a_reading, a_verdict, an_admission, an_evidence, an_unjudged
from support.patience import DEADLINE
from support.stores import sql

from ragwatch.core.budget import Cost, SpendingCap
from ragwatch.core.labels.label import Label
from ragwatch.core.tally import Tally
from ragwatch.errors import ConfigError, StoreError
from ragwatch.model.quantities import Quantity
from ragwatch.ports import Assignment, Erasure, Feedback, FollowUp, Part, Query, RecordedEvent, Retention, StoredRun
from ragwatch.stores.encryption import TextCipher
from ragwatch.stores.kept_texts import Texts
from ragwatch.stores.postgres.connections import Target, connect
from ragwatch.stores.postgres.postgres_store import PostgresStore, sizes
from ragwatch.stores.settling import settle

DAY = 86400.0


def test_workers_share_the_queue_and_settle_once(worker: Callable[..., PostgresStore]) -> None:
    """No draw is leased to two workers; a verdict that two of them have counts once; a worker's end frees its draws."""
    one, two = worker(), worker()
    draws = [a_draw(f"r{index}") for index in range(6)]
    one.admit(an_admission(*draws))
    assert two.admit(an_admission(*draws)) == 0
    first = one.lease(JUDGE, 3, now=AT, seconds=60)
    second = two.lease(JUDGE, 9, now=AT, seconds=60)
    assert [draw.sample.id for draw in (*first, *second)] == [draw.sample.id for draw in draws]
    assert one.lease(JUDGE, 9, now=AT + 59, seconds=60) == []
    verdicts = [a_verdict(draw) for draw in first]
    follow_ups = [FollowUp(draw.key, JUDGE, Assignment("second", 0.5), AT) for draw in first]
    assert [one.settle(verdicts, follow_ups), two.settle(verdicts, follow_ups)] == [3, 0]
    assert two.pending() == {JUDGE: 3, "second": 3}
    assert two.tallies()[Tally.JUDGED, ("search", JUDGE)] == 3
    assert two.tallies()[Tally.REJECTED, ("app", "duplicate_id")] == 6
    two.release()
    assert one.lease(JUDGE, 9, now=AT, seconds=60) == second


def test_one_budget_for_all_workers(worker: Callable[..., PostgresStore]) -> None:
    """Workers that reserve at the same time stay within one cap together."""
    stores = [worker() for _ in range(3)]
    cap, reserved = SpendingCap(DAY, usd=1.0), list[int | None]()

    def spend(store: PostgresStore) -> None:
        reserved.extend(store.reserve(JUDGE, Cost(0.125, 1), [cap], now=AT) for _ in range(6))

    threads = [threading.Thread(target=spend, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert (len(reserved), sum(number is not None for number in reserved)) == (18, 8)
    assert stores[0].spent(JUDGE, 0.0) == Cost(1.0, 8)


def test_readers_see_verdicts_in_the_order_of_their_numbers(worker: Callable[..., PostgresStore]) -> None:
    """While one worker has not committed its verdict, no later one is visible: a reader would never see the first."""
    one, two = worker(), worker()
    draws = [a_draw("a"), a_draw("b")]
    one.admit(an_admission(*draws))
    done = threading.Event()

    def settle_second() -> None:
        two.settle([a_verdict(draws[1])])
        done.set()

    with one.engine.transaction() as writer:
        assert len(settle(writer, [a_verdict(draws[0])], Counter())) == 1
        thread = threading.Thread(target=settle_second)
        thread.start()
        assert not done.wait(0.1)
        assert two.window(0, 0.0, 9) == []
    thread.join(DEADLINE)
    assert [row.key for row in two.window(0, 0.0, 9)] == [draws[0].key, draws[1].key]


def test_texts_that_postgresql_cannot_store_are_replaced(worker: Callable[..., PostgresStore]) -> None:
    """NUL and lone surrogates in columns become replacement characters; texts of samples stay as they are."""
    store = worker()
    draw = a_draw("a", question="nul \x00 \ud800", metadata={"trace_id": "t\x00\ud800é"})
    store.admit(replace(an_admission(draw), hold=[Part("g\x00", "n", b"\x00", AT)]))
    store.settle([a_verdict(draw)])
    store.record(RecordedEvent(AT, "note", "a\x00b"))
    (stored,) = store.find(Query())
    assert stored.sample is not None
    assert (stored.sample["question"], stored.verdict.trace_id) == ("nul \x00 \ud800", "t�?é")
    assert store.events(0.0)[0].detail == "a�b"
    assert [part.payload for part in store.parts("app")] == [b"\x00"]
    store.admit(an_admission(a_draw("b", route="r\x00\ud800é"), judges=("j\x00",)))
    assert [(draw.route, draw.key) for draw in store.lease("j\ufffd", 9, now=AT, seconds=60)] == [
        ("r\ufffd?é", a_draw("b").key)
    ]


def test_an_admission_that_the_server_refuses_leaves_nothing(worker: Callable[..., PostgresStore]) -> None:
    """A statement that fails among those that are sent together: the error names it, and the next admission works."""
    store, draws = worker(), [a_draw(f"r{index}") for index in range(3)]
    with pytest.raises(StoreError, match="work_judge_key_key"):
        store.admit(an_admission(*draws, judges=(JUDGE, JUDGE)))
    assert (store.pending(), store.tallies(), store.cursors("app")) == ({}, Counter(), {})
    assert store.admit(an_admission(*draws, draws[0])) == 3
    assert store.pending() == {JUDGE: 3}


def test_damaged_rows_are_counted_and_affect_no_others(target: Target, worker: Callable[..., PostgresStore]) -> None:
    """A damaged text is left out, and its row is rebuilt from columns."""
    store = worker()
    draws = [a_draw("a"), a_draw("b"), a_draw("c")]
    store.admit(replace(an_admission(*draws), hold=[Part("g", "n", b"x", AT)]))
    store.settle([a_verdict(draw) for draw in draws[:2]])
    store.add_labels([Label("k", "ada", AT, {Quantity.FAITHFULNESS: 1.0})])
    store.record_run(StoredRun("canary", "docs", AT, False, {"x": 1}), Counter())  # noqa: FBT003 - a field
    sql(target, f"UPDATE verdicts SET line = 'x' WHERE key = '{draws[0].key}'")  # noqa: S608 - keys of ours
    sql(target, f"UPDATE samples SET body = 'x' WHERE key = '{draws[2].key}'")  # noqa: S608 - keys of ours
    for table in ("labels", "runs", "parts"):
        sql(target, f"UPDATE {table} SET body = 'x'")  # noqa: S608 - names of ours
    worst = store.find(Query(worst=True, quantity=Quantity.FAITHFULNESS))
    assert {stored.verdict.key: stored.damage is None for stored in worst} == {draws[0].key: False, draws[1].key: True}
    (leased,) = store.lease(JUDGE, 9, now=AT, seconds=1)
    assert leased.damage is not None
    assert (store.labels(0.0), store.runs("canary", "docs", 9), list(store.parts("app"))) == ([], [], [])
    assert store.damaged() == 5


def test_size_is_measured_by_what_is_stored(worker: Callable[..., PostgresStore]) -> None:
    """Files do not shrink: what was deleted before is no reason to delete more. The oldest good verdicts go first."""
    store = worker()
    for index in range(20):
        draw = a_draw(f"r{index}", at=AT + index)
        store.admit(an_admission(draw))
        evidence = an_evidence((0, 0)) if index == 0 else an_evidence((1, 0))
        store.settle([a_verdict(draw, evidence)])
    size = sum(store.engine.rows(statement)[0][0] for statement in sizes(1))
    deleted = store.prune(Retention(1e6, 1e6, size), now=AT + 100)
    assert deleted == 0
    assert store.prune(Retention(1e6, 1e6, size // 2), now=AT + 100) > 0
    assert store.prune(Retention(1e6, 1e6, 1), now=AT + 100) + deleted <= 20
    assert store.find(Query()) == []


def test_texts_are_deleted_after_judging(worker: Callable[..., PostgresStore]) -> None:
    """`failing` keeps the texts of answers with a fault; what was stored before under `all` is deleted by retention."""
    before = worker()
    early = a_draw("early")
    before.admit(an_admission(early))
    before.settle([a_verdict(early)])
    store = worker(texts=Texts.FAILING)
    good, bad = a_draw("good"), a_draw("bad")
    store.admit(an_admission(good, bad))
    store.settle([a_verdict(good), a_verdict(bad, an_evidence((0, 0)))])

    def kept() -> dict[str, bool]:
        return {stored.verdict.id: stored.sample is not None for stored in store.find(Query())}

    assert kept() == {"early": True, "good": False, "bad": True}
    store.prune(Retention(1e6, 1e6, 1 << 40), now=AT)
    assert kept() == {"early": False, "good": False, "bad": True}
    assert [row.scores is not None for row in store.window(0, 0.0, 9)] == [True] * 3


def test_encrypted_texts(target: Target, worker: Callable[..., PostgresStore]) -> None:
    """No stored column contains a text; without the key nothing opens; with an older key beside it, both are read."""
    pytest.importorskip("cryptography")
    old, new = bytes(32), bytes(range(32))
    store = worker(cipher=TextCipher([old]))
    draw = a_draw("secret-id", question="Where is my parcel?")
    store.admit(an_admission(draw))
    store.settle([a_verdict(draw)])
    store.remember("state", {"query": "Where is my parcel?"})
    stored = sql(target, "SELECT body FROM samples UNION ALL SELECT line FROM verdicts")
    assert all(bytes(value).startswith(b"\x02") for (value,) in stored)
    with pytest.raises(ConfigError, match=r"store\.encryption: .* no key is configured"):
        worker()
    both = worker(cipher=TextCipher([new, old]))
    assert both.find(Query())[0].sample == draw.sample.to_record()
    assert both.summaries(Query())[0].line["id"] == "secret-id"
    assert both.recall("state") == {"query": "Where is my parcel?"}


def test_everything_about_a_person_is_erased(target: Target, worker: Callable[..., PostgresStore]) -> None:
    """Texts are gone from samples, verdicts, labels, runs, states and events, also beside a second worker."""
    store, other = worker(), worker()
    text = "Where is the parcel of Anna Schmidt?"
    draws = [a_draw(name, question=text, metadata={"user": "anna"}) for name in ("judged", "pending")]
    store.admit(replace(an_admission(*draws), feedback=[Feedback((draws[0].key,), 1.0, AT, "app")]))
    store.settle([a_verdict(draws[0])])
    store.add_labels([Label(draws[0].key, "ada", AT, {Quantity.FAITHFULNESS: 1.0}, note=text)])
    store.record_run(StoredRun("canary", "docs", AT, False, {"query": text}), Counter())  # noqa: FBT003 - a field
    store.remember("pool", {"queries": [text]})
    store.record(RecordedEvent(AT, "note", f"{text}!"))
    sql(target, "INSERT INTO labels (key, annotator, at, body) SELECT key, 'bob', at, 'x' FROM labels")
    erased = other.forget(Erasure(metadata=frozenset({("user", "anna")})))
    assert (erased.pending, erased.verdicts, erased.labels, erased.others, erased.complete) == (1, 1, 2, 3, True)
    assert store.labels(0.0)[0].note == ""
    assert (store.recall("pool"), store.runs("canary", "docs", 1)[0].body) == ({"queries": [""]}, {"query": ""})
    assert (store.events(0.0)[0].detail, store.feedback_of(draws[0].key)) == ("", None)
    assert store.forget(Erasure(ids=frozenset({draws[0].key}), with_scores=True)).verdicts == 1
    assert [stored.verdict.key for stored in store.find(Query())] == [draws[1].key]


def test_feedback_and_answer_that_arrive_at_two_workers_are_joined(
    target: Target, worker: Callable[..., PostgresStore]
) -> None:
    """Neither transaction sees the other: retention joins what waits beside its stored answer, and counts it once."""
    store = worker()
    store.admit(an_admission(a_draw("a")))
    sql(target, f"INSERT INTO early_feedback VALUES ('{a_draw('a').key}', 'a', 'app', {AT}, 0.5, {AT})")  # noqa: S608 - keys of ours
    store.prune(Retention(30, 30, 1 << 40), now=AT + 7200)
    assert store.feedback_of(a_draw("a").key) == (0.5, AT)
    assert store.tallies()[Tally.FEEDBACK, ("app", "joined")] == 1


def test_one_worker_prunes_at_a_time(worker: Callable[..., PostgresStore]) -> None:
    """Another one deletes nothing meanwhile, and does not wait."""
    store = worker()
    store.admit(an_admission(a_draw("a", at=AT - 100 * DAY)))
    store.settle([an_unjudged(a_draw("a", at=AT - 100 * DAY))])
    with store.engine.transaction() as writer:
        writer.execute("SELECT pg_advisory_xact_lock(3, hashtext(current_schema() || ''))")
        assert worker().prune(Retention(30, 30, 1 << 40), now=AT) == 0
    assert worker().prune(Retention(30, 30, 1 << 40), now=AT) == 1


def test_workers_share_one_secret(worker: Callable[..., PostgresStore]) -> None:
    """The first secret counts for all; a damaged one is told."""
    one, two = worker(), worker()
    assert (one.shared_secret(b"a" * 32), two.shared_secret(b"b" * 32)) == (b"a" * 32, b"a" * 32)
    one.remember("sampling key", {"secret": 7})
    with pytest.raises(StoreError, match="damaged"):
        two.shared_secret(b"b" * 32)


def test_tables_in_use_are_not_rewritten(target: Target, worker: Callable[..., PostgresStore]) -> None:
    """While another session holds a lock, what was erased may remain in files, and that is told."""
    store = worker()
    with connect(target) as other:
        other.execute("BEGIN; LOCK TABLE events IN ACCESS SHARE MODE")
        with store.engine._borrowed() as lent:
            lent.execute("SET lock_timeout = '50ms'")
        assert store.engine.rewrite(["events"]) is False
    assert store.engine.rewrite(["events"]) is True


def test_a_batch_is_with_one_worker(worker: Callable[..., PostgresStore]) -> None:
    """Draws in a batch are leased to nobody; two workers that prepare the same draws do not both have them."""
    one, two = worker(), worker()
    draw = a_draw("a")
    one.admit(an_admission(draw))
    batches = [store.prepare_batch(JUDGE, {draw.key: 7}, "seed", now=AT) for store in (one, two)]
    assert [len(two.batched(batch)) for batch in batches] == [1, 0]
    assert two.lease(JUDGE, 9, now=AT + DAY, seconds=1) == []
    assert one.settle([a_verdict(draw, reading=a_reading())]) == 1
