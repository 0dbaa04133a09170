"""The PostgreSQL store beyond the contract of all kinds: workers, damage, retention, and commands beside workers."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from support.command_line import command, configured, log_of
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission, an_evidence, an_unjudged
from support.patience import DEADLINE
from support.stores import AGES, DAY, Workers, admit_and_settle, follow_up, found_by, sql

from ragwatch.config import load
from ragwatch.daemon.process import state_secret
from ragwatch.errors import StoreError
from ragwatch.model.budget import Cost, SpendingCap
from ragwatch.model.quantities import Quantity
from ragwatch.offline import state_reader
from ragwatch.ports import Part, Query, RecordedEvent, Retention, StoredRun
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.tally import Tally
from ragwatch.stores.postgres import Options
from ragwatch.stores.postgres.connections import connect
from ragwatch.stores.postgres.postgres_store import PostgresStore, sizes
from ragwatch.stores.settling import settle


def test_workers_share_the_queue_and_settle_once(worker: Workers) -> None:
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
    follow_ups = [follow_up(draw) for draw in first]
    assert [one.settle(verdicts, follow_ups), two.settle(verdicts, follow_ups)] == [3, 0]
    assert two.pending() == {JUDGE: 3, "second": 3}
    assert two.tallies()[Tally.JUDGED, ("search", JUDGE)] == 3
    assert two.tallies()[Tally.REJECTED, ("app", "duplicate_id")] == 6
    two.release()
    assert one.lease(JUDGE, 9, now=AT, seconds=60) == second


def test_one_budget_for_all_workers(worker: Workers) -> None:
    """Workers that reserve at the same time stay within one cap together."""
    stores = [worker() for _ in range(3)]
    cap, reserved = SpendingCap(DAY, usd=1.0), list[int | None]()

    def spend(store: PostgresStore) -> None:
        reserved.extend(store.reserve(JUDGE, Cost(0.125, 1), [cap], now=AT) for _ in range(6))

    with ThreadPoolExecutor() as pool:
        list(pool.map(spend, stores, timeout=DEADLINE))
    assert (len(reserved), sum(number is not None for number in reserved)) == (18, 8)
    assert stores[0].spent(JUDGE, 0.0) == Cost(1.0, 8)


def test_readers_see_verdicts_in_the_order_of_their_numbers(worker: Workers) -> None:
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


def test_texts_that_postgresql_cannot_store_are_replaced(worker: Workers) -> None:
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
    (leased,) = store.lease("j\ufffd", 9, now=AT, seconds=60)
    assert (leased.route, leased.key) == ("r\ufffd?é", a_draw("b").key)


def test_an_admission_that_the_server_refuses_leaves_nothing(worker: Workers) -> None:
    """A statement that fails among those that are sent together: the error names it, and the next admission works."""
    store, draws = worker(), [a_draw(f"r{index}") for index in range(3)]
    with pytest.raises(StoreError, match="work_judge_key_key"):
        store.admit(an_admission(*draws, judges=(JUDGE, JUDGE)))
    assert (store.pending(), store.tallies(), store.cursors("app")) == ({}, Counter(), {})
    assert store.admit(an_admission(*draws, draws[0])) == 3
    assert store.pending() == {JUDGE: 3}


def test_size_is_measured_by_what_is_stored(worker: Workers) -> None:
    """Files do not shrink: what was deleted before is no reason to delete more. The oldest good verdicts go first."""
    store = worker()
    read = (a_verdict(a_draw(f"r{index}", at=AT + index), an_evidence((int(index > 0), 0))) for index in range(20))
    admit_and_settle(store, *read)
    size = sum(store.engine.rows(statement)[0][0] for statement in sizes(1))
    deleted = store.prune(Retention(1e6, 1e6, size), now=AT + 100)
    assert deleted == 0
    assert store.prune(Retention(1e6, 1e6, size // 2), now=AT + 100) > 0
    assert store.prune(Retention(1e6, 1e6, 1), now=AT + 100) + deleted <= 20
    assert found_by(store) == []


def test_feedback_and_answer_that_arrive_at_two_workers_are_joined(target: Options, worker: Workers) -> None:
    """Neither transaction sees the other: retention joins what waits beside its stored answer, and counts it once."""
    store = worker()
    store.admit(an_admission(a_draw("a")))
    sql(target, f"INSERT INTO early_feedback VALUES ('{a_draw('a').key}', 'a', 'app', {AT}, 0.5, {AT})")  # noqa: S608 - keys of ours
    store.prune(AGES, now=AT + 7200)
    assert store.feedback_of(a_draw("a").key) == (0.5, AT)
    assert store.tallies()[Tally.FEEDBACK, ("app", "joined")] == 1


def test_one_worker_prunes_at_a_time(worker: Workers, target: Options) -> None:
    """Another one deletes nothing meanwhile, and does not wait; a table in use is not rewritten, and that is told."""
    store = worker()
    admit_and_settle(store, an_unjudged(a_draw("a", at=AT - 100 * DAY)))
    with store.engine.transaction() as writer:
        writer.execute("SELECT pg_advisory_xact_lock(3, hashtext(current_schema() || ''))")
        assert worker().prune(AGES, now=AT) == 0
    assert worker().prune(AGES, now=AT) == 1
    store = worker()
    with connect(target) as other:
        other.execute("BEGIN; LOCK TABLE events IN ACCESS SHARE MODE")
        with store.engine._borrowed(lambda lent: lent.execute("SET lock_timeout = '50ms'")):
            pass
        assert store.engine.rewrite(["events"]) is False
    assert store.engine.rewrite(["events"]) is True


@pytest.fixture
def running(worker: Workers) -> PostgresStore:
    """A worker with two verdicts, a label, a run and an event."""
    store = worker()
    draws = [a_draw(name, metadata={"user": name}) for name in ("anna", "bob")]
    admit_and_settle(store, *draws)
    store.add_labels([Label(draws[0].key, "ada", AT, {Quantity.FAITHFULNESS: 1.0})])
    store.record_run(StoredRun("canary", "docs", AT, failing=True, body={"x": 1}), Counter())
    store.record(RecordedEvent(AT, "index", "v2"))
    return store


@pytest.mark.servers
def test_commands_run_beside_a_worker(tmp_path: Path, section: dict[str, str], running: PostgresStore) -> None:
    """What is stored is read; texts of a person are gone for the worker, too; a trial run leaves it alone."""
    log = log_of(tmp_path / "app.jsonl", {"id": "1", "question": "q", "answer": "a", "contexts": []})
    path = configured(tmp_path, store=section, sources=[{"kind": "tail", "name": "app", "path": str(log)}])
    config = load(path)
    query = Query(judge=JUDGE)
    assert list(state_reader.verdicts(config, query)) == running.find(query)
    assert [label.annotator for label in state_reader.labels_by_key(config)[a_draw("anna").key]] == ["ada"]
    assert state_reader.last_index_event(config) == "2023-11-14"
    with state_reader.state_reader(config) as reader:
        assert [run.body for run in reader.runs("canary", "docs", 1)] == [{"x": 1}]
        assert reader.pruned_until() < 0.0
    assert (state_reader.has_started(config, "app"), state_reader.has_started(config, "other")) == (True, False)
    assert state_reader.stored_tallies(config, Tally.JUDGED) == {("search", JUDGE): 2.0}
    result = command("forget", "--metadata", "user=anna", "--config", path)
    assert (result.return_value, result.exception) == (0, None), result.output
    found = [(row.verdict.key, row.sample is None) for row in running.find(query)]
    assert found == [(a_draw("bob").key, False), (a_draw("anna").key, True)]
    before = running.tallies()
    result = command("run", "--once", "--config", path)
    assert 'ragwatch_requests_seen_total{source="app"} 1.0' in result.output
    assert running.tallies() == before


def test_state_directories_have_the_secret_of_the_database(tmp_path: Path, running: PostgresStore) -> None:
    """Workers draw alike: each directory holds the secret that the first worker brought; a damaged one is told."""
    one, other = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    other.mkdir()
    first = state_secret(one, running)
    assert state_secret(other) != first
    assert (state_secret(other, running), state_secret(other)) == (first, first)
    running.remember("sampling key", {"secret": 7})
    with pytest.raises(StoreError, match="damaged"):
        running.shared_secret(b"b" * 32)
