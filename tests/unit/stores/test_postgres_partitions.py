"""Partitions by day over a real PostgreSQL: retention drops days, and a schema of before is divided in use."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest
from support.kit import JUDGE, a_draw, a_verdict, an_admission, an_evidence
from support.patience import DEADLINE, SCALE
from support.postgres import Postgres
from support.stores import Workers, admit_and_settle, database, sql

from ragwatch.ports import Feedback, Query, Retention
from ragwatch.stores.postgres import Options
from ragwatch.stores.postgres import migrations as schema
from ragwatch.stores.postgres.connections import connect
from ragwatch.stores.postgres.partitions import REST, day_of
from ragwatch.stores.postgres.postgres_store import PostgresStore

pytestmark = pytest.mark.costly
DAY = 86400.0
KEEP = Retention(30.0, 90.0, 1 << 40)
# Statements of the version before, as workers of schema 1 go on sending them during an upgrade.
ADMIT = (
    "INSERT INTO samples (key, source, route, at, body)"
    " SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::float8[], %s::bytea[])"
    " ON CONFLICT DO NOTHING RETURNING key"
)
VERDICT = (
    "INSERT INTO verdicts (key, judge, version, at, route, probability, outcome, failing, scores, line)"
    " VALUES (%s, 'j', '1', %s, 'search', 1.0, 'judged', 0, '{}'::jsonb, 'x') RETURNING seq"
)
DELETE = (
    "DELETE FROM verdicts WHERE seq = ANY(ARRAY(SELECT seq FROM verdicts WHERE failing = 0 AND at < %s"
    " ORDER BY at LIMIT 500)) RETURNING key, at, octet_length(line) + coalesce(octet_length(scores::text), 0)"
)


def parts(target: Options, table: str) -> dict[int, int]:
    """Number of rows by partition."""
    return dict(sql(target, f"SELECT part, count(*) FROM {table} GROUP BY part"))  # noqa: S608 - names of ours


def test_retention_drops_days(target: Options, worker: Workers) -> None:
    """A day goes as a whole when its last answer is too old; faults stay for longer; what is erased is biased."""
    store, now = worker(), time.time()
    today = day_of(now)
    good, bad, pending, old = (
        a_draw("good", at=now),
        a_draw("bad", at=now),
        a_draw("pending", at=now),
        a_draw("old", at=now - 10 * DAY),
    )
    store.admit(replace(an_admission(good, bad, pending, old), feedback=[Feedback((good.key,), 1.0, now, "app")]))
    store.settle([a_verdict(good), a_verdict(bad, an_evidence((0, 0))), a_verdict(old)])
    assert parts(target, "samples") == parts(target, "sample_keys") == {today: 3, REST: 1}
    assert parts(target, "verdicts") == {today: 2, REST: 1}
    before = [row.key for row in store.window(0, 0.0, 9)]
    assert store.prune(KEEP, now=(today + 1) * DAY + 30 * DAY - 1.0) == 1  # `old`, as its time says
    assert parts(target, "verdicts") == {today: 2}
    assert store.prune(KEEP, now=(today + 1) * DAY + 30 * DAY) == 1
    assert parts(target, "samples") == parts(target, "sample_keys") == {REST: 2}
    assert sql(target, f"SELECT to_regclass('samples_d{today}'), to_regclass('verdicts_d{today}')") == [(None, None)]
    (kept,) = store.find(Query())
    assert (kept.verdict.key, kept.sample is not None) == (bad.key, True)
    assert (store.feedback_of(good.key), store.window(0, 0.0, 9)) == (None, [])
    assert set(before) == {good.key, bad.key, old.key}
    assert sql(target, "SELECT key FROM answer_index") == [(bad.key,)]
    assert [draw.key for draw in store.lease(JUDGE, 9, now=now, seconds=1)] == [pending.key]
    assert store.admit(an_admission(good)) == 1  # its key is free, and there is no partition of its day
    assert store.prune(KEEP, now=now + 91 * DAY) == 1
    assert store.find(Query()) == []
    worker()  # a start makes the partitions again


def test_a_table_in_use_is_left_for_the_next_time(target: Options, worker: Workers) -> None:
    """A reader keeps a day from being dropped, waits for nothing, and nothing is lost; then it is dropped."""
    store, now = worker(), time.time()
    admit_and_settle(store, a_draw("a", at=now))
    with connect(target) as reader:
        reader.execute("BEGIN; SELECT count(*) FROM verdicts")
        assert store.prune(KEEP, now=now + 32 * DAY) == 0
        assert len(store.find(Query())) == 1
    assert store.prune(KEEP, now=now + 32 * DAY) == 1
    worker()


@pytest.fixture
def before(server: Postgres) -> Iterator[Options]:
    """A database of schema 1."""
    name = "before"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())
    target = database(server.url, name, connections=3, timeout_seconds=20.0)
    with connect(target) as connection:
        schema.prepare(connection, name, schema.SCRIPTS[:1])
    yield target
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


def admitted(connection: psycopg.Connection, *keys: str) -> int:
    """Admit samples as the version before does. Returns how many were new."""
    columns = (list(keys), ["app"] * len(keys), ["search"] * len(keys), [time.time()] * len(keys), [b"x"] * len(keys))
    return len(connection.execute(ADMIT, columns).fetchall())


def test_two_versions_share_the_partitions(before: Options) -> None:
    """What either has stored is refused as a duplicate to the other, numbers go on, and both read and delete all."""
    with connect(before) as old:
        draw = a_draw("shared", at=time.time())
        assert admitted(old, "k1", "k2", "k1") == 2
        ((first,),) = old.execute(VERDICT, ("k1", 5.0)).fetchall()
        store = PostgresStore(before)
        assert admitted(old, "k2", "k3") == 1
        assert store.admit(an_admission(draw)) == 1
        assert (admitted(old, draw.key), store.admit(an_admission(draw))) == (0, 0)
        assert store.settle([a_verdict(draw)]) == 1
        ((last,),) = old.execute(VERDICT, ("k3", time.time())).fetchall()
        assert [row.seq for row in store.window(0, 0.0, 9)] == [first, first + 1, last]
        assert parts(before, "samples") == {0: 3, day_of(time.time()): 1}
        assert [key for key, *_ in old.execute(DELETE, (100.0,)).fetchall()] == ["k1"]
        assert store.prune(KEEP, now=time.time() + 40 * DAY) == 2
        store.close()


def test_a_migration_holds_no_lock_for_long(before: Options) -> None:
    """A worker of the version before goes on writing meanwhile: none of its statements waits long for a lock.

    On a quiet machine that is less than a second; a busy one stops the migration, too, while it holds its locks.
    """
    with connect(before) as old:
        old.execute(f"SET lock_timeout = '{round(3 * SCALE)}s'".encode())
        old.execute(
            "INSERT INTO samples SELECT 'k' || n, 'app', 'search', n, decode(repeat('ab', 300), 'hex')"
            " FROM generate_series(1, 30000) AS n"
        )
        old.execute(
            "INSERT INTO verdicts (key, judge, version, at, route, probability, outcome, failing, line)"
            " SELECT key, 'j', '1', at, route, 1.0, 'unjudged', 1, body FROM samples"
        )
        ended, new, failures = threading.Event(), [0], list[psycopg.Error]()

        def go_on() -> None:
            try:
                while not ended.is_set():
                    new[0] += admitted(old, f"n{new[0]}", f"k{new[0] + 1}")
                    old.execute(VERDICT, (f"n{new[0]}", 5.0))
            except psycopg.Error as error:
                failures.append(error)

        thread = threading.Thread(target=go_on)
        thread.start()
        store = PostgresStore(before)
        ended.set()
        thread.join(DEADLINE)
        assert failures == []
        assert new[0] > 5
        ((samples, keys),) = sql(before, "SELECT (SELECT count(*) FROM samples), (SELECT count(*) FROM sample_keys)")
        assert samples == keys == 30000 + new[0]
        store.close()
