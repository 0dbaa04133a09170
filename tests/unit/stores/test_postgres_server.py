"""The PostgreSQL store and its server: lost connections, versions, addresses, limits."""

import os
import shutil
import signal
import socket
import socketserver
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission
from support.patience import DEADLINE
from support.postgres import Postgres, new_server
from support.stores import WORKERS_SCHEMA, Workers, database, sql

from ragwatch.errors import StoreError
from ragwatch.model.estimate import Addends
from ragwatch.ports import TrendQuery
from ragwatch.statistics.tally import Tally
from ragwatch.statistics.trends import SPANS, TrendKind, start_of
from ragwatch.stores import postgres
from ragwatch.stores.postgres import Options, build
from ragwatch.stores.postgres import migrations as schema
from ragwatch.stores.postgres.connections import PostgresEngine, connect
from ragwatch.stores.postgres.migrations import VERSION
from ragwatch.stores.postgres.postgres_store import PostgresStore

SOCKET = ".s.PGSQL.5432"


@contextmanager
def cutting(server: Path, folder: Path) -> Iterator[list[str]]:
    """Forward connections to the socket of a server; yield a list, in which a word ends one at its next COMMIT, once.

    It is ended `before` the server has the COMMIT, or `after` that; the reply reaches nobody.
    """
    armed: list[str] = []

    class Forward(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.socket(socket.AF_UNIX) as target, suppress(OSError):
                target.connect(str(server / SOCKET))
                back = threading.Thread(target=copy, args=(target, self.request))
                back.start()
                while piece := self.request.recv(1 << 16):
                    if b"COMMIT" in piece and armed:
                        self.request.shutdown(socket.SHUT_RDWR)
                        if armed.pop() == "after":
                            target.sendall(piece)
                        break
                    target.sendall(piece)
                target.shutdown(socket.SHUT_WR)
                back.join()

    def copy(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(1 << 16):
                target.sendall(piece)

    with socketserver.ThreadingUnixStreamServer(str(folder / SOCKET), Forward) as listener:
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield armed
        listener.shutdown()
        thread.join()


def test_a_commit_of_which_the_server_never_heard_did_not_take_effect(target: Options, worker: Workers) -> None:
    """As after a failover; one that it knows took effect exactly if it was committed."""
    store = worker()
    store.remember("state", {"seq": 1})
    ((known,),) = sql(target, "SELECT xmin::text FROM states WHERE name = 'state'")
    assert [store.engine._took_effect(number) for number in (known, str(int(known) + 1000))] == [True, False]


def test_idle_connections_that_were_ended_are_replaced(target: Options, worker: Workers) -> None:
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


def test_a_connection_that_is_lost_in_a_transaction_writes_nothing(target: Options, worker: Workers) -> None:
    """The step fails as a whole, with a StoreError, and can be repeated."""
    store = worker()

    def lose() -> None:
        with store.engine.transaction() as writer:
            writer.execute("INSERT INTO cursors VALUES ('app', 'log', '1')")
            ((process,),) = writer.rows("SELECT pg_backend_pid()")
            sql(target, f"SELECT pg_terminate_backend({process})")
            writer.execute("INSERT INTO cursors VALUES ('app', 'log2', '1')")

    with pytest.raises(StoreError, match="cannot write"):
        lose()
    assert store.cursors("app") == {}
    store.admit(an_admission(a_draw("a"), cursor="2"))
    assert store.cursors("app") == {"log": "2"}


def test_workers_that_start_at_once_make_one_schema(server: Postgres) -> None:
    """Migrations run once, under a lock; another worker waits and finds the schema made."""
    name = "at_once"
    server.sql(f"DROP SCHEMA IF EXISTS {name} CASCADE")
    with ThreadPoolExecutor() as pool:
        starts = [pool.submit(lambda: PostgresStore(database(server.url, name)).close()) for _ in range(3)]
        for start in starts:
            start.result(DEADLINE)
    assert sql(database(server.url, name), "SELECT version, compatible FROM schema_version") == [(VERSION, 1)]


def test_an_upgrade_sums_the_stored_scores(before: Options) -> None:
    """Charts begin with the scores of before: expectations where the judge gave them, by judge and version."""
    scores = (
        ("a", '{"faithfulness": 1.0, "top_ranked_ignored": 1.0, "expected": {"top_ranked_ignored": 0.75}}'),
        ("b", '{"faithfulness": null, "expected": {}}'),
        ("c", None),
        ("d", "[1]"),
    )
    with connect(before) as connection:
        connection.cursor().executemany(
            "INSERT INTO verdicts (key, judge, version, at, route, probability, outcome, failing, scores, line)"
            " VALUES (%s, 'j', 'v', %s, 'search', 0.5, 'judged', 0, %s::jsonb, '')",
            [(key, AT, stored) for key, stored in scores],
        )
    with closing(PostgresStore(before)) as store:
        for span in SPANS:
            start = start_of(AT, span)
            rows = store.trends(TrendQuery(TrendKind.SCORE, "search", span, span, start, start + span))
            assert {(row.series.judge, row.series.version, row.series.name): row.sums for row in rows} == {
                ("j", "v", "faithfulness"): Addends.one(1.0, 0.5),
                ("j", "v", "top_ranked_ignored"): Addends.one(0.75, 0.5),
            }


def test_two_versions_work_side_by_side(target: Options, worker: Workers) -> None:
    """A newer version migrates while an older one runs; the older one starts again unless it is too old."""
    worker().admit(an_admission(a_draw("a")))
    with connect(target) as connection:
        schema.prepare(connection, WORKERS_SCHEMA, (*schema.SCRIPTS, "ALTER TABLE samples ADD COLUMN later text"))
    try:
        assert worker().pending() == {JUDGE: 1}
        sql(target, f"UPDATE schema_version SET compatible = {VERSION + 1}")  # noqa: S608 - a number
        with pytest.raises(StoreError, match="written by a newer ragwatch"):
            worker()
    finally:
        sql(target, "ALTER TABLE samples DROP COLUMN later")
        sql(target, f"UPDATE schema_version SET version = {VERSION}, compatible = 1")  # noqa: S608 - a number


def test_what_cannot_be_reached_is_said(server: Postgres, tmp_path: Path) -> None:
    """The error names the key, tells what to do, and holds no password; the state directory is not left locked."""
    for url, message in (
        ("postgresql://ragwatch@/postgres?host=/nowhere", "start PostgreSQL, or check host and port in store.url"),
        ("postgresql://ragwatch:hush@127.0.0.1:1/x", "start PostgreSQL, or check host and port in store.url"),
        ("nonsense", "write it as postgresql://"),
        ("postgrsql://u:hush@h/d", "write it as postgresql://"),
        (f"{server.url}&dbname=missing", "create it, or give an existing one"),
        (f"{server.url}&user=stranger", "create it, or give an existing one"),
    ):
        options = Options.model_validate({"url": url})
        for _ in range(2):
            with pytest.raises(StoreError, match="store: cannot open the database") as raised:
                build(options, tmp_path / "state")
            assert message in str(raised.value)
            assert "hush" not in str(raised.value)
        with pytest.raises(StoreError, match="cannot open the database"):
            postgres.database(options).describe()


def test_options_and_description(target: Options, worker: Workers, server: Postgres) -> None:
    """The address is a secret, and is required; `check` is told server, database and version; nothing is created."""
    options = Options.model_validate({"url": "postgresql://u:hush@h/d", "connections": 2})
    assert "hush" not in repr(options) + str(options.model_dump())
    for wrong in ({}, {"url": ""}, {"url": "x", "database_schema": 'a"b'}, {"url": "x", "connections": 0}):
        with pytest.raises(ValidationError):
            Options.model_validate(wrong)
    worker()
    for name, said in ((WORKERS_SCHEMA, f"version {VERSION}"), ("unused", "is created at the first start")):
        described = postgres.database(database(server.url, name)).describe()
        assert described.endswith(f"database postgres, schema {name}: {said}")
    assert sql(target, "SELECT to_regclass('unused.work')") == [(None,)]


def test_connections_are_limited(server: Postgres) -> None:
    """A caller that gets none in time is told which key to raise, and a closed store says so."""
    connections = PostgresEngine(database(server.url, WORKERS_SCHEMA, connections=1, timeout_seconds=0.2))
    with connections.transaction(), pytest.raises(StoreError, match=r"raise store\.connections"):
        connections.rows("SELECT 1")
    assert connections.rows("SELECT 1") == [(1,)]
    with pytest.raises(StoreError, match=r"store\.timeout_seconds"):
        connections.rows("SELECT pg_sleep(5)")
    connections.close()
    with pytest.raises(StoreError, match="closed"):
        connections.rows("SELECT 1")


@pytest.mark.parametrize(("when", "succeeds"), [("before", False), ("after", True)])
def test_a_reply_that_is_lost_counts_nothing_twice(
    target: Options, server: Postgres, when: str, *, succeeds: bool
) -> None:
    """The connection breaks at COMMIT: the step succeeds exactly if it took effect, else it is repeated as a whole."""
    folder = Path(tempfile.mkdtemp(prefix="ragwatch-cut-"))  # a path of pytest is too long for a socket
    url = SecretStr(f"postgresql://ragwatch@/postgres?host={folder}")
    with (
        cutting(server.folder, folder) as armed,
        closing(PostgresStore(target.model_copy(update={"url": url}))) as store,
    ):
        admission = an_admission(a_draw("a"), tallies=Counter({(Tally.SEEN, ("app",)): 1}), cursor="1")
        store.pending()
        armed.append(when)
        if succeeds:
            assert store.admit(admission) == 1
        else:
            with pytest.raises(StoreError, match="cannot write"):
                store.admit(admission)
            assert (store.cursors("app"), store.tallies()) == ({}, {})
            assert store.admit(admission) == 1
        assert armed == []
        assert store.tallies()[Tally.SEEN, ("app",)] == 1
        assert (store.pending(), store.cursors("app")) == ({JUDGE: 1}, {"log": "1"})
    shutil.rmtree(folder)


def test_a_server_that_is_stopped_is_given_up() -> None:
    """Reads, transactions and new connections end with a clear error within the time limit of a statement."""
    server = new_server()
    target = database(server.url, "public", connections=2, timeout_seconds=1.0)
    connections = PostgresEngine(target)
    pids = [int(server.postmaster())]
    try:
        assert connections.rows("SELECT 1") == [(1,)]
        pids += [pid for (pid,) in connections.rows("SELECT pg_backend_pid()")]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        begin = time.monotonic()
        with pytest.raises(StoreError, match="the server does not answer; start PostgreSQL"):
            connections.rows("SELECT 1")
        with pytest.raises(StoreError, match=r"^store: "), connections.transaction() as writer:
            writer.execute("SELECT 1")
        assert time.monotonic() - begin < DEADLINE / 2
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        assert connections.rows("SELECT 1") == [(1,)]
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        connections.close()
        server.delete()
