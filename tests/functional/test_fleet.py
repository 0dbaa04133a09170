"""Daemons over one PostgreSQL, killed, stopped and cut off: every sample, canary and drift step counts once."""

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from functional.fleet import (
    COUNTERS,
    LEASE_SECONDS,
    PERIOD,
    Fleet,
    canary_slots,
    numbers,
    of_fleet,
    replayed_drift,
    sqlite_series,
    wait_for,
)
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from support.patience import DEADLINE, SCALE
from support.postgres import Postgres, new_server
from support.retrievers import serving

from ragwatch.config.model import DRAW_LEASE_SECONDS
from ragwatch.pipeline.drift.scores import KIND
from ragwatch.pipeline.leadership import TERM_SECONDS
from ragwatch.ports import Query
from ragwatch.statistics.tally import Tally, violations
from ragwatch.stores.postgres import Options, database

BEFORE = {1: "04e8d7d", 9: "b44cc1d"}
"""The last commits whose PostgreSQL stores have these schemas."""
SUMMING_SCHEMA = 9  # the first one whose workers add up scores for charts
SUMS = "SELECT COALESCE(SUM(n), 0) FROM ragwatch.trends WHERE (span, kind, name) = (3600, 'score', 'faithfulness')"
SCORES = "SELECT COUNT(*) FROM ragwatch.verdicts WHERE jsonb_typeof(scores -> 'faithfulness') = 'number'"


@pytest.fixture
def server() -> Iterator[Postgres]:
    """A server that may crash: what was committed is there afterwards. It logs who waits for a lock for a second."""
    logged = {"log_min_messages": "log", "log_lock_waits": "on", "deadlock_timeout": f"{round(1000 * SCALE)}ms"}
    server = new_server(synchronous_commit="on", max_connections="60", **logged)
    yield server
    server.delete()


async def retrieve(_: Request) -> JSONResponse:
    """What the canaries expect."""
    return JSONResponse({"hits": [{"id": "d1", "text": "The mill."}]})


@pytest.fixture
def retriever() -> Iterator[str]:
    """Address of a retriever."""
    with serving(Route("/search", retrieve, methods=["POST"])) as address:
        yield f"{address}/search"


def check(fleet: Fleet) -> None:
    """What must hold when all samples are judged."""
    store, samples = fleet.store, fleet.samples
    tallies, pending = store.tallies_and_pending()
    assert (violations(tallies, pending), sum(pending.values())) == ({}, 0)
    with psycopg.connect(fleet.server.url) as connection:
        counts = "SELECT count(*), count(DISTINCT key) FROM ragwatch.verdicts"
        assert connection.execute(counts).fetchone() == (samples, samples)

    def counted_once() -> bool:
        slots = canary_slots(fleet)
        assert len(slots) == len(set(slots)) > 0
        return len(slots) == store.tallies()[Tally.CANARY_RUNS, ("docs",)]

    wait_for(counted_once, DEADLINE, lambda: f"{canary_slots(fleet)}, counted {store.tallies()}")
    # Drift has taken every verdict once: its state is that of one process over the same verdicts.
    expected = replayed_drift(fleet)
    assert expected is not None
    wait_for(lambda: (store.recall(KIND) or {}).get("seq") == expected["seq"], DEADLINE, lambda: "drift is behind")
    assert store.recall(KIND) == expected
    # The figures are those of one SQLite process.
    alone = sqlite_series(fleet)
    counted = {name: value for name, value in alone.items() if name.startswith(COUNTERS) and value}
    wait_for(lambda: of_fleet(fleet.series(), COUNTERS) == counted, DEADLINE, lambda: str(fleet.series()[0]))
    addends = "ragwatch_faithfulness_w"
    assert of_fleet(fleet.series(), [addends]) == pytest.approx(
        {name: value for name, value in alone.items() if name.startswith(addends) and value}, rel=1e-9
    )
    names = [f"ragwatch_faithfulness_{figure}" for figure in ("ratio", "ratio_low", "ratio_high", "samples")]
    figures = dict(numbers(alone, *names))
    assert len(figures) > len(names)

    def agree() -> bool:
        return all(dict(numbers(one, *names)) == pytest.approx(figures, rel=1e-9) for one in fleet.series())

    wait_for(agree, DEADLINE, lambda: f"{dict(numbers(fleet.series()[0], *names))}, not {figures}")


@pytest.mark.costly
def test_a_killed_leader_is_replaced(server: Postgres, tmp_path: Path, retriever: str) -> None:
    """Two workers with one configuration; the leader is killed in the middle, and then the server crashes."""
    fleet = Fleet(server, tmp_path, workers=2, samples=300, retriever=retriever)
    try:
        leader = fleet.leader()
        fleet.write_logs()
        fleet.until(50)
        fleet.replace(leader)
        fleet.until(150)
        server.stop("immediate")
        server.start()
        fleet.until(fleet.samples)
        wait_for(lambda: len(canary_slots(fleet)) >= 2, DEADLINE + PERIOD, lambda: "no canaries")
        check(fleet)
    finally:
        fleet.end()


def code_of(commit: str, folder: Path) -> Path:
    """The code of an earlier version."""
    folder.mkdir()
    archive = ["git", "archive", commit, "ragwatch", "reader"]
    made = subprocess.run(archive, cwd=Path(__file__).parents[2], capture_output=True, check=False, timeout=DEADLINE)
    if made.returncode:
        pytest.skip(f"this checkout does not have the commit {commit}")
    subprocess.run(["tar", "-x", "-C", folder], input=made.stdout, check=True, timeout=DEADLINE)
    return folder


@pytest.mark.slow
@pytest.mark.ends_after(1800)
@pytest.mark.parametrize("schema", BEFORE)
def test_two_versions_side_by_side(server: Postgres, tmp_path: Path, retriever: str, schema: int) -> None:
    """A worker of a schema of before goes on while one of this version migrates and joins, restarts, and is replaced.

    No table is locked for a second, and from schema 9 on charts have the scores of both.
    """
    code = code_of(BEFORE[schema], tmp_path / "before")
    fleet = Fleet(server, tmp_path, workers=0, samples=1200, retriever=retriever)
    try:
        old = fleet.configured("worker0", retriever, judging="")
        fleet.store.close()
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA ragwatch CASCADE")
        fleet.configs, fleet.workers = [old], [fleet.started(old, code)]
        with psycopg.connect(server.url) as connection:
            assert connection.execute("SELECT version FROM ragwatch.schema_version").fetchone() == (schema,)
        fleet.store = database(Options.model_validate({"url": server.url})).connected()
        fleet.configs.append(fleet.configured("worker1", retriever))
        fleet.write_logs()
        fleet.until(100)
        fleet.workers.append(fleet.started(fleet.configs[1]))
        fleet.until(500)
        assert ("ragwatch_leader" in fleet.workers[0].series()) == (schema > 1)
        fleet.workers[0].kill()
        fleet.workers[0] = fleet.started(old, code)
        fleet.until(800)
        fleet.replace(0)
        fleet.until(fleet.samples, DEADLINE + DRAW_LEASE_SECONDS)  # a worker of before that is killed holds draws
        tallies, pending = fleet.store.tallies_and_pending()
        assert (violations(tallies, pending), sum(pending.values())) == ({}, 0)
        stored = fleet.store.find(Query(limit=5000, texts=False))
        assert len({one.verdict.key for one in stored}) == fleet.samples == len(stored)
        assert fleet.leader() in (0, 1)
        if schema >= SUMMING_SCHEMA:
            assert int(server.sql(SUMS)) == int(server.sql(SCORES)) > 0
        log = (server.folder / "log").read_text(encoding="utf-8", errors="replace")
        assert [line for line in log.splitlines() if "still waiting" in line and "on relation" in line] == []
    finally:
        fleet.end()


@pytest.mark.slow
@pytest.mark.ends_after(3000)
def test_four_workers_under_every_fault(server: Postgres, tmp_path: Path, retriever: str) -> None:
    """Each worker killed in turn, the database restarted, the leader stopped past every lease: all counts once."""
    fleet = Fleet(server, tmp_path, workers=4, samples=50_000, retriever=retriever)
    seconds = 1200.0
    try:
        fleet.leader()
        fleet.write_logs()
        for index in range(4):
            fleet.until(4000 * (index + 1), seconds)
            fleet.replace(index)
        fleet.until(20_000, seconds)
        server.stop("immediate")
        server.start()
        fleet.until(24_000, seconds)
        leader = fleet.leader()
        fleet.signal(leader, signal.SIGSTOP)
        time.sleep(2 * max(LEASE_SECONDS, TERM_SECONDS))
        fleet.signal(leader, signal.SIGCONT)
        fleet.until(fleet.samples, seconds)
        check(fleet)
    finally:
        fleet.end()
