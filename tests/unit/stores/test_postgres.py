"""The PostgreSQL store beyond the contract of all kinds: several workers, lost connections, damage, versions."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pydantic import ValidationError
from support.kit import AT, JUDGE, a_draw, a_reading, a_verdict, an_admission, an_evidence, an_unjudged
from support.patience import DEADLINE
from support.postgres import Postgres, shared_server
from support.stores import emptied

from ragwatch.core.budget import Cost, SpendingCap
from ragwatch.core.labels.label import Label
from ragwatch.core.scores import Quantity
from ragwatch.core.tally import Tally
from ragwatch.errors import ConfigError, StoreError
from ragwatch.ports import Assignment, Erasure, Feedback, FollowUp, Part, Query, RecordedEvent, Retention, StoredRun
from ragwatch.stores.encryption import TextCipher
from ragwatch.stores.kept_texts import Texts
from ragwatch.stores.postgres import Options, build, connected, describe, schema, statements
from ragwatch.stores.postgres.connections import Connections, Target, connect
from ragwatch.stores.postgres.pruning import sizes
from ragwatch.stores.postgres.store import PostgresStore

DAY = 86400.0
SCHEMA = "workers"


@pytest.fixture(scope="module")
def server() -> Postgres:
    """A real server."""
    return shared_server()


@pytest.fixture
def target(server: Postgres) -> Target:
    """An empty schema."""
    emptied(server.url, SCHEMA)
    return Target(server.url, SCHEMA, connections=3, timeout_seconds=20.0)


@pytest.fixture
def worker(target: Target) -> Iterator[Callable[..., PostgresStore]]:
    """Starts workers on one schema, and ends them."""
    workers = list[PostgresStore]()

    def start(**how: Any) -> PostgresStore:
        workers.append(PostgresStore(target, **how))
        return workers[-1]

    yield start
    for one in workers:
        one.close()


def sql(target: Target, statement: str) -> list[Any]:
    """Rows of a statement."""
    with connect(target) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


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

    with one.transaction() as writer:
        assert len(statements.settle(writer, [a_verdict(draws[0])], Counter(), one.seal)) == 1
        thread = threading.Thread(target=settle_second)
        thread.start()
        assert not done.wait(0.1)
        assert two.window(0, 0.0, 9) == []
    thread.join(DEADLINE)
    assert [row.key for row in two.window(0, 0.0, 9)] == [draws[0].key, draws[1].key]


def test_an_unknown_commit_is_looked_up(target: Target, worker: Callable[..., PostgresStore]) -> None:
    """The connection is lost with the reply to a COMMIT: the store finds out whether it took effect."""
    store = worker()
    store.remember("state", {"seq": 1})
    (number,) = sql(target, "SELECT (pg_current_xact_id()::text::bigint)::text")[0]
    (row,) = sql(target, "SELECT xmin::text FROM states WHERE name = 'state'")
    assert store._took_effect(row[0]) is True
    assert store._took_effect(str(int(number) + 1000)) is False
    with connect(target) as other:
        other.execute("BEGIN")
        (aborted,) = other.execute("SELECT pg_current_xact_id()::text").fetchone() or ("",)
        other.execute("ROLLBACK")
    assert store._took_effect(aborted) is False


def test_idle_connections_that_were_ended_are_replaced(target: Target, worker: Callable[..., PostgresStore]) -> None:
    """A restart of the server ends idle connections: the next read and the next write connect again."""
    store = worker()
    store.admit(an_admission(a_draw("a")))
    end = (
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE application_name = 'ragwatch' AND pid <> pg_backend_pid()"
    )
    sql(target, end)
    assert store.pending() == {JUDGE: 1}
    sql(target, end)
    assert store.settle([a_verdict(a_draw("a"))]) == 1
    sql(target, end)
    assert store.tallies_and_pending()[1] == {}


def test_a_connection_that_is_lost_in_a_transaction_writes_nothing(
    target: Target, worker: Callable[..., PostgresStore]
) -> None:
    """The step fails as a whole, with a StoreError, and can be repeated."""
    store = worker()

    def lose() -> None:
        with store.transaction() as writer:
            writer.execute("INSERT INTO cursors VALUES ('app', 'log', '1')")
            ((process,),) = writer.execute("SELECT pg_backend_pid()").fetchall()
            sql(target, f"SELECT pg_terminate_backend({process})")
            writer.execute("INSERT INTO cursors VALUES ('app', 'log2', '1')")

    with pytest.raises(StoreError, match="cannot write"):
        lose()
    assert store.cursors("app") == {}
    store.admit(an_admission(a_draw("a"), cursor="2"))
    assert store.cursors("app") == {"log": "2"}


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
    size = sum(store.rows(statement)[0][0] for statement in sizes(1))
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
    with store.transaction() as writer:
        writer.execute("SELECT pg_advisory_xact_lock(3, hashtext(current_schema() || ''))")
        assert worker().prune(Retention(30, 30, 1 << 40), now=AT) == 0
    assert worker().prune(Retention(30, 30, 1 << 40), now=AT) == 1


def test_workers_that_start_at_once_make_one_schema(server: Postgres) -> None:
    """Migrations run once, under a lock; another worker waits and finds the schema made."""
    name = "at_once"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())
    failures = list[BaseException]()

    def start() -> None:
        try:
            PostgresStore(Target(server.url, name)).close()
        except BaseException as error:  # noqa: BLE001 - told below
            failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert failures == []
    assert sql(Target(server.url, name), "SELECT version, compatible FROM schema_version") == [(1, 1)]


def test_two_versions_work_side_by_side(target: Target, worker: Callable[..., PostgresStore], tmp_path: Path) -> None:
    """A newer version migrates while an older one runs; the older one starts again unless it is too old."""
    worker().admit(an_admission(a_draw("a")))
    (tmp_path / "schema_2.sql").write_text("ALTER TABLE samples ADD COLUMN later text", encoding="utf-8")
    with connect(target) as connection:
        schema.prepare(connection, SCHEMA, scripts=tmp_path, version=2)
    try:
        assert worker().pending() == {JUDGE: 1}
        sql(target, "UPDATE schema_version SET compatible = 2")
        with pytest.raises(StoreError, match="written by a newer ragwatch"):
            worker()
    finally:
        sql(target, "UPDATE schema_version SET version = 1, compatible = 1; ALTER TABLE samples DROP COLUMN later")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://ragwatch@/postgres?host=/nowhere", "start PostgreSQL, or check host and port in store.url"),
        ("postgresql://ragwatch:hush@127.0.0.1:1/x", "start PostgreSQL, or check host and port in store.url"),
        ("nonsense", "write it as postgresql://"),
        ("postgrsql://u:hush@h/d", "write it as postgresql://"),
        ("{url}&dbname=missing", "create it, or give an existing one"),
        ("{url}&user=stranger", "create it, or give an existing one"),
    ],
)
def test_what_cannot_be_reached_is_said(server: Postgres, tmp_path: Path, url: str, message: str) -> None:
    """The error names the key, tells what to do, and holds no password; the state directory is not left locked."""
    options = Options.model_validate({"url": url.replace("{url}", server.url)})
    for _ in range(2):
        with pytest.raises(StoreError, match="store: cannot open the database") as raised:
            build(options, tmp_path / "state")
        assert message in str(raised.value)
        assert "hush" not in str(raised.value)
    with pytest.raises(StoreError, match="cannot open the database"):
        describe(options)


def test_options() -> None:
    """The address is a secret, and is required."""
    options = Options.model_validate({"url": "postgresql://u:hush@h/d", "connections": 2})
    assert "hush" not in repr(options) + str(options.model_dump())
    for wrong in ({}, {"url": ""}, {"url": "x", "database_schema": 'a"b'}, {"url": "x", "connections": 0}):
        with pytest.raises(ValidationError):
            Options.model_validate(wrong)


def test_description(target: Target, worker: Callable[..., PostgresStore], server: Postgres) -> None:
    """`check` is told server, database and version; nothing is created."""
    worker()
    options = Options.model_validate({"url": server.url, "database_schema": SCHEMA})
    assert describe(options).endswith(f"database postgres, schema {SCHEMA}: version 1")
    unused = options.model_copy(update={"database_schema": "unused"})
    assert describe(unused).endswith("schema unused: is created at the first start")
    assert sql(target, "SELECT to_regclass('unused.work')") == [(None,)]


def test_workers_share_one_secret(worker: Callable[..., PostgresStore]) -> None:
    """The first secret counts for all; a damaged one is told."""
    one, two = worker(), worker()
    assert (one.shared_secret(b"a" * 32), two.shared_secret(b"b" * 32)) == (b"a" * 32, b"a" * 32)
    one.remember("sampling key", {"secret": 7})
    with pytest.raises(StoreError, match="damaged"):
        two.shared_secret(b"b" * 32)


def test_connections_are_limited(server: Postgres) -> None:
    """A caller that gets none in time is told which key to raise, and a closed store says so."""
    connections = Connections(Target(server.url, SCHEMA, connections=1, timeout_seconds=0.2))
    with connections.transaction(), pytest.raises(StoreError, match=r"raise store\.connections"):
        connections.rows("SELECT 1")
    assert connections.rows("SELECT 1") == [(1,)]
    with pytest.raises(StoreError, match=r"store\.timeout_seconds"):
        connections.rows("SELECT pg_sleep(5)")
    connections.disconnect()
    with pytest.raises(StoreError, match="closed"):
        connections.rows("SELECT 1")


def test_tables_in_use_are_not_rewritten(target: Target, worker: Callable[..., PostgresStore]) -> None:
    """While another session holds a lock, what was erased may remain in files, and that is told."""
    store = worker()
    with connect(target) as other:
        other.execute("BEGIN; LOCK TABLE events IN ACCESS SHARE MODE")
        with store._borrowed() as lent:
            lent.execute("SET lock_timeout = '50ms'")
        assert store.rewrite(["events"]) is False
    assert store.rewrite(["events"]) is True


def test_a_batch_is_with_one_worker(worker: Callable[..., PostgresStore]) -> None:
    """Draws in a batch are leased to nobody; two workers that prepare the same draws do not both have them."""
    one, two = worker(), worker()
    draw = a_draw("a")
    one.admit(an_admission(draw))
    batches = [store.prepare_batch(JUDGE, {draw.key: 7}, "seed", now=AT) for store in (one, two)]
    assert [len(two.batched(batch)) for batch in batches] == [1, 0]
    assert two.lease(JUDGE, 9, now=AT + DAY, seconds=1) == []
    assert one.settle([a_verdict(draw, reading=a_reading())]) == 1


def test_a_worker_owns_its_state_directory(tmp_path: Path) -> None:
    """A second worker needs a directory of its own, with its own secret; commands read beside a running worker."""
    options = Options.model_validate({"url": shared_server().url, "database_schema": SCHEMA})
    store = build(options, tmp_path)
    with pytest.raises(StoreError, match="is locked by process"):
        build(options, tmp_path)
    connected(options).close()
    store.close()
    build(options, tmp_path).close()
