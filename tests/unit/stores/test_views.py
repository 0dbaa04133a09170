"""Views of the PostgreSQL store: what they show, who may read them, and that they survive migrations."""
# ruff: noqa: S608 - the statements are those of tests

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission, an_evidence, an_unjudged
from support.postgres import Postgres
from support.stores import WORKERS_SCHEMA, Workers

from ragwatch.commands import cli
from ragwatch.errors import RagwatchError
from ragwatch.model.estimate import Addends
from ragwatch.model.evidence import CriterionAnswer, CriterionReading
from ragwatch.model.quantities import Quantity
from ragwatch.ports import Feedback, RecordedEvent, Retention
from ragwatch.statistics.estimators import hajek
from ragwatch.stores.postgres.migrations import SCRIPTS, prepare
from ragwatch.stores.postgres.postgres_store import PostgresStore

pytestmark = pytest.mark.servers

DAY = 86400.0


def views(config: Path, *options: str) -> tuple[int, str]:
    """Exit code and output of the command."""
    result = CliRunner().invoke(cli, ["store", "views", str(config), *options], standalone_mode=False)
    if result.exception is not None:
        assert isinstance(result.exception, RagwatchError), result.exc_info
        return 1, str(result.exception)
    return int(result.return_value), result.output


@pytest.fixture
def config(tmp_path: Path, server: Postgres) -> Path:
    """A configuration of the store of workers."""
    path = tmp_path / "ragwatch.yaml"
    store = json.dumps({"kind": "postgres", "url": server.url, "database_schema": WORKERS_SCHEMA})
    path.write_text(f"sources: [{{kind: push, name: app}}]\nstore: {store}\n", encoding="utf-8")
    return path


@pytest.fixture
def reader(server: Postgres) -> Iterator[str]:
    """Address of the database for a role that owns nothing."""
    server.sql("CREATE ROLE grafana LOGIN")
    yield server.url.replace("//ragwatch@", "//grafana@")
    server.sql("DROP OWNED BY grafana; DROP ROLE grafana")


def seen(address: str, statement: str) -> list[Any]:
    """Rows of a statement; `{v}` stands for the schema of the views."""
    with psycopg.connect(address, autocommit=True) as connection:
        return connection.execute(statement.format(v=f"{WORKERS_SCHEMA}_views").encode()).fetchall()


def filled(store: PostgresStore) -> list[tuple[float, float]]:
    """Store answers of unequal probabilities. Returns their scores with these."""
    rng = random.Random(5)
    draws, scores = [], []
    for number in range(120):
        probability = rng.choice((0.25, 1.0))
        draws.append(a_draw(f"r{number}", at=AT + number, probability=probability))
        scores.append((float(rng.random() < 0.7), probability))
    unjudged = a_draw("late", at=AT + 500, route="support", probability=0.5)
    store.admit(an_admission(*draws, unjudged))
    read = [a_verdict(draw, an_evidence((int(score), 0))) for draw, (score, _) in zip(draws, scores, strict=True)]
    store.settle([*read, an_unjudged(unjudged, "timeout")])
    return scores


def test_views_show_what_is_stored(config: Path, worker: Workers, reader: str) -> None:
    """Estimates with the interval of the core, pending draws, events and feedback, to a role without other rights."""
    store = worker()
    scores = filled(store)
    store.admit(an_admission(a_draw("waiting", at=AT + 900), a_draw("r0")))
    store.record(RecordedEvent(AT, "release", "v2"))
    assert views(config) == (
        0,
        f"views of schema {WORKERS_SCHEMA}_views are made; read by their owner only: see --reader\n",
    )
    assert "--reader nobody: the server has no such role" in views(config, "--reader", "nobody")[1]
    assert views(config, "--reader", "grafana")[1].endswith("read by grafana\n")

    mean, low, high, _ = hajek.interval(Addends.of(scores))
    ((n, *figures),) = seen(
        reader,
        "SELECT sum(n), sum(wx) / sum(w), {v}.interval_low(sum(w), sum(wx), sum(w2), sum(w2x), sum(w2x2)),"
        " {v}.interval_high(sum(w), sum(wx), sum(w2), sum(w2x), sum(w2x2)) FROM {v}.quality_hourly"
        f" WHERE quantity = 'faithfulness' AND judge = '{JUDGE}'",
    )
    assert n == len(scores)
    assert figures[0] == pytest.approx(mean, abs=1e-12)
    assert figures[1:] == pytest.approx([low, high], abs=0.01)
    ((pending, oldest),) = seen(reader, "SELECT draws, extract(epoch FROM oldest)::float8 FROM {v}.pending")
    assert (pending, oldest) == (1, AT + 900)
    assert seen(reader, "SELECT kind, detail FROM {v}.events") == [("release", "v2")]
    ((weight, reason, *unknown),) = seen(
        reader, f"SELECT weight, reason, {', '.join(Quantity)} FROM {{v}}.verdicts WHERE route = 'support'"
    )
    assert (weight, reason, unknown) == (2.0, "timeout", [None] * len(Quantity))
    assert seen(reader, "SELECT count(*) FROM {v}.scores WHERE score IS NULL OR value IS NULL") == [(0,)]
    ((drawn,),) = seen(reader, "SELECT sum(value) FROM {v}.counters WHERE name = 'drawn' AND labels ->> 0 = 'search'")
    assert drawn == len(scores) + 1
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        seen(reader, f"SELECT * FROM {WORKERS_SCHEMA}.samples")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        seen(reader, "UPDATE {v}.events SET detail = ''")


def test_feedback_costs_and_deletions(config: Path, worker: Workers, server: Postgres) -> None:
    """Feedback has its route, a criterion its rows; scores of times of which good answers were deleted are left out."""
    store = worker()
    old, bad, new = a_draw("old", at=AT - 50 * DAY), a_draw("bad", at=AT - 60 * DAY), a_draw("new", at=AT)
    readings = (CriterionReading("polite", CriterionAnswer.NO), CriterionReading("priced", None))
    for draw, row in ((old, (1, 0)), (bad, (0, 0)), (new, (1, 0))):
        store.admit(an_admission(draw))
        store.settle([a_verdict(draw, an_evidence(row, criteria=readings if draw is new else ()))])
    given = an_admission(cursor="2")
    feedback = Feedback((new.key,), 0.5, AT + 5, "app")
    store.admit(type(given)("app", "log", "2", (), given.tallies, at=AT + 5, feedback=(feedback,)))
    store.prune(Retention(days=30, failing_days=90, bytes=1 << 40), now=AT)
    assert views(config)[0] == 0
    assert seen(server.url, "SELECT route, score FROM {v}.feedback") == [("search", 0.5)]
    assert seen(server.url, "SELECT count(*) FROM {v}.verdicts") == [(2,)]
    assert seen(server.url, "SELECT DISTINCT at FROM {v}.scores") == [
        (seen(server.url, f"SELECT to_timestamp({AT})")[0][0],)
    ]
    chosen = "WHERE quantity IN ('polite', 'priced')"
    rows = seen(server.url, f"SELECT quantity, score, expected, value FROM {{v}}.scores {chosen}")
    assert rows == [("polite", 0.0, None, 0.0)]
    assert seen(server.url, f"SELECT quantity, n, mean FROM {{v}}.quality_hourly {chosen}") == [("polite", 1, 0.0)]
    names = seen(
        server.url, f"SELECT viewname FROM pg_views WHERE schemaname = '{WORKERS_SCHEMA}_views' ORDER BY viewname"
    )
    assert len(names) == 8
    for (name,) in names:
        seen(server.url, f"SELECT * FROM {{v}}.{name}")


def test_a_migration_keeps_views_and_readers(config: Path, worker: Workers, reader: str, server: Postgres) -> None:
    """A version that changes a table on which views build succeeds, and the reader can go on."""
    worker()
    assert views(config, "--reader", "grafana")[0] == 0
    script = "ALTER TABLE events RENAME TO before; CREATE TABLE events (LIKE before INCLUDING ALL); DROP TABLE before"
    with psycopg.connect(server.url, autocommit=True, options=f"-c search_path={WORKERS_SCHEMA}") as connection:
        prepare(connection, WORKERS_SCHEMA, (*SCRIPTS, script))
        try:
            assert seen(reader, "SELECT count(*) FROM {v}.events") == [(0,)]
        finally:
            connection.execute("UPDATE schema_version SET version = version - 1")


def test_the_script_can_be_read_before(config: Path, tmp_path: Path) -> None:
    """--print needs no server; another kind of store is refused."""
    code, text = views(config, "--print")
    assert (code, f'CREATE VIEW "{WORKERS_SCHEMA}_views".scores' in text) == (0, True)
    other = tmp_path / "other.yaml"
    other.write_text("sources: [{kind: push, name: app}]\n")
    assert "name a configuration whose store is postgres" in views(other)[1]
