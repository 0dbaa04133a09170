"""`ragwatch store`: a copy goes on with the same answers to all steps; views show what is stored to those who may."""
# ruff: noqa: S608 - the statements are those of tests

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.command_line import command, configured, refused
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission, an_evidence, an_unjudged
from support.postgres import Postgres
from support.stores import AGES, DAY, WORKERS_SCHEMA, Workers, admit_and_settle, database, follow_up

from ragwatch.errors import RagwatchError, StoreError
from ragwatch.model.budget import Cost, SpendingCap
from ragwatch.model.estimate import Addends
from ragwatch.model.evidence import CriterionAnswer, CriterionReading
from ragwatch.model.quantities import Quantity
from ragwatch.ports import Erasure, Feedback, Part, Query, RecordedEvent, Retention, Store, StoredRun
from ragwatch.statistics.estimators import hajek
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.tally import Tally
from ragwatch.stores import copying
from ragwatch.stores.engine import Engine
from ragwatch.stores.postgres import Options
from ragwatch.stores.postgres.connections import PostgresEngine
from ragwatch.stores.postgres.migrations import SCRIPTS, prepare
from ragwatch.stores.postgres.postgres_store import PostgresStore
from ragwatch.stores.postgres.postgres_writer import PostgresWriter
from ragwatch.stores.sqlite.sqlite_engine import ReadConnection, SqliteEngine
from ragwatch.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.servers

FAITHFULNESS = Quantity.FAITHFULNESS
QUERIES = (
    Query(),
    Query(route="support", limit=3),
    Query(quantity=FAITHFULNESS, below=0.9, above=-1.0, worst=True),
    Query(quantity=Quantity.CONTEXT_PRECISION, worst=True, since=AT, until=AT + 20),
    Query(judge="second", outcome="judged"),
    Query(stage="generation", texts=False),
)


def stored(store: Store) -> Iterator[object]:
    """Everything that can be read, without sequence numbers."""
    yield store.tallies_and_pending()
    yield store.overdue(AT + 5)
    yield [replace(row, seq=0) for row in store.window(0, AT - DAY, 100)]
    yield [(replace(row, seq=0), score) for row, score in store.rated(AT, AT + DAY)]
    yield [at for _, at in store.feedback_after(0, 100)]
    for query in QUERIES:
        yield store.find(query)
        yield store.summaries(query)
        yield [(entry.verdict, entry.bare, b"".join(entry.line.pieces())) for entry in store.entries(query)]
    yield (store.cursors("app"), list(store.parts("app")), store.received("app", ["i1", "i2", "i9"]))
    yield (store.events(0.0), store.last_events(0.0), store.pruned_until(), store.spent(JUDGE, AT - 1))
    yield (store.labels(0.0), store.labels_of("k", 2), store.labels_after((AT, "k", "ada"), 5))
    yield (store.runs("canary", "docs", 5), store.runs("canary", "docs", 5, failing=True), store.recall("loop"))


def steps(store: Store) -> Iterator[object]:
    """Steps of every kind, and what they return."""
    draws = [
        a_draw(f"r{index}", at=AT + index, route=("search", "support")[index % 2], probability=1 / (1 + index % 3))
        for index in range(12)
    ]
    seen = Counter({(Tally.SEEN, ("app",)): 12, (Tally.TOP_SCORE, ("search", "sum")): 0.1})  # type: ignore[dict-item]
    parts = [Part("g1", "a", b"1", AT), Part("g2", "a", b"2", AT)]
    said = [Feedback((draws[0].key,), 0.5, AT, "app"), Feedback(("elsewhere", draws[9].key), 1.0, AT, "app")]
    yield store.admit(replace(an_admission(*draws[:8], tallies=seen, cursor="1"), hold=parts, received=["i1", "i2"]))
    yield store.admit(replace(an_admission(*draws[6:], cursor="2"), release=["g1"], feedback=said, at=AT + 7))
    yield [draw.key for draw in store.lease(JUDGE, 5, now=AT, seconds=60, before=AT + 4)]
    store.postpone(JUDGE, [draws[5].key], AT + 500)
    yield [draw.key for draw in store.lease(JUDGE, 3, now=AT + 1, seconds=60)]
    verdicts = [a_verdict(draw, an_evidence((1, 0), (0, index % 2))) for index, draw in enumerate(draws[:6])]
    further = [follow_up(draw, at=AT + 3) for draw in draws[:3]]
    yield store.settle([*verdicts, an_unjudged(draws[7])], further, Counter({(Tally.FOOLED, (JUDGE, "v")): 1}))
    yield store.settle(verdicts[:2], further)
    reserved = [store.reserve(JUDGE, Cost(0.4, 10), [SpendingCap(DAY, usd=1.0)], now=AT) for _ in range(3)]
    yield [number is not None for number in reserved]
    store.pay(reserved[0] or 0, Cost(0.1, 3))
    batch = store.prepare_batch(JUDGE, {draw.key: 1 for draw in draws[8:10]}, "seed", now=AT)
    store.send_batch(batch, "provider")
    yield [(draw.key, number) for draw, number in store.batched(batch)]
    yield [(open_.provider_id, open_.seed, open_.prepared) for open_ in store.batches(JUDGE)]
    yield (store.settle([a_verdict(draws[8])]), store.close_batch(batch))
    yield [store.claim("docs", name, now=AT + at, seconds=60) for name, at in (("a", 0), ("b", 59), ("b", 60))]
    yield store.add_labels(
        [Label("k", name, AT + place, {FAITHFULNESS: 0.5}, note="why") for place, name in enumerate(("ada", "bob"))]
    )
    for at in (AT - 100 * DAY, AT, AT + 1):
        store.record_run(StoredRun("canary", "docs", at, at == AT, {"at": at}), Counter())
        store.record(RecordedEvent(at, "note", "é"))
    store.remember("loop", {"numbers": [0.1, 1e300, None]})


def ends(store: Store) -> Iterator[object]:
    """Steps that delete."""
    yield store.forget(Erasure(ids=frozenset({"r1", "r9"})), dry_run=True)
    yield store.forget(Erasure(ids=frozenset({"r1", "r9"})))
    yield store.prune(Retention(days=1, failing_days=2, bytes=1 << 40), now=AT + DAY + 3)
    yield store.prune(Retention(days=1, failing_days=2, bytes=1 << 40), now=AT + 3 * DAY)


class Ends(PostgresEngine):
    """An engine that ends after so many transactions."""

    def __init__(self, target: Options, left: int) -> None:
        super().__init__(target)
        self.left = left

    @contextmanager
    def transaction(self, reserve: float = 0.0) -> Iterator[PostgresWriter]:
        """End, or write."""
        self.left -= 1
        if self.left < 0:
            raise StoreError("cut")
        with super().transaction(reserve) as writer:
            yield writer


def outcome(*words: object) -> tuple[int, str]:
    """Exit code and output of a command of `ragwatch store`."""
    result = command("store", *words)
    return (1, refused(result, RagwatchError)) if result.exception else (int(result.return_value), result.output)


@pytest.fixture
def config(tmp_path: Path, section: dict[str, str]) -> Path:
    """A configuration of the store of workers."""
    return configured(tmp_path, state="other", store=section)


def same(one: Store, other: Store) -> None:
    """Everything that can be read is the same, and steps that delete give the same results."""
    for part in (stored, ends, stored):
        for first, second in zip(part(one), part(other), strict=True):
            assert first == second


def test_a_copied_state_is_the_same(tmp_path: Path, worker: Workers, config: Path) -> None:
    """Everything that can be read is the same, numbers go on, and later steps give the same results."""
    store = SqliteStore(tmp_path / "state")
    list(steps(store))
    asked = a_draw("asked", at=AT + 9 * DAY)
    admit_and_settle(store, asked, evidence=an_evidence((1, 0), replies=("fully",)))
    admit_and_settle(store, a_draw("old", at=AT - 100 * DAY))
    store.prune(AGES, now=AT)
    (tmp_path / "state" / "ragwatch.secret").write_text("ab" * 32, encoding="ascii")
    assert "is locked by process" in outcome("copy", tmp_path / "state", config)[1]
    store.close()
    code, text = outcome("copy", tmp_path / "state", config)
    assert (code, "13 rows of samples" in text) == (0, True), text
    target = worker()
    with closing(SqliteStore(tmp_path / "state")) as sqlite:
        same(sqlite, target)
        (copy,) = target.entries(Query(key=asked.key))
        assert target.replies(copy.seq) == ("fully",)
        assert target.shared_secret(b"x" * 32) == bytes.fromhex("ab" * 32)
        numbers = [row.seq for row in target.window(0, 0.0, 100)]
        new = a_draw("new", at=AT + 10 * DAY)
        target.admit(an_admission(new))
        assert target.lease(JUDGE, 1, now=AT, seconds=1, before=AT) == []
        assert target.settle([a_verdict(new)]) == 1
        assert target.window(max(numbers, default=0), 0.0, 9)[0].key == new.key
    assert "is not empty" in outcome("copy", tmp_path / "state", config)[1]


def test_what_cannot_be_copied_is_said(tmp_path: Path) -> None:
    """The error names what to give instead."""
    for store, message in (
        ({"kind": "sqlite"}, "name a configuration whose store is postgres"),
        ({"kind": "postgres", "url": "postgresql://h/d"}, "give the state directory of a SQLite store"),
    ):
        assert message in outcome("copy", tmp_path / "missing", configured(tmp_path, store=store))[1]


def carry(source: Engine, target: Engine) -> None:
    """Copy from one engine to another, and close them."""
    with closing(source), closing(target):
        copying.copy_state(source, target)


def test_a_copy_goes_back_and_on_after_a_kill(
    tmp_path: Path, worker: Workers, server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is copied there and back is the same, also if a copy is cut short; a store refuses half of one."""
    monkeypatch.setattr(copying, "MAX_ROWS_PER_STEP", 2)
    with closing(SqliteStore(tmp_path / "state")) as store:
        list(steps(store))
    worker().close()
    path, target = tmp_path / "state" / "ragwatch.db", database(server.url, WORKERS_SCHEMA)
    with pytest.raises(StoreError, match="cut"):
        carry(ReadConnection(path), Ends(target, 11))
    with pytest.raises(StoreError, match="copying into it was cut short"):
        worker().require_complete()
    carry(ReadConnection(path), PostgresEngine(target))
    carry(PostgresEngine(target), SqliteEngine(tmp_path / "back"))
    one, other, copy = SqliteStore(tmp_path / "state"), SqliteStore(tmp_path / "back"), worker()
    with closing(one), closing(other):
        assert copy.require_complete() is copy
        same(one, other)


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
    read, scores = [], []
    for number in range(120):
        probability = rng.choice((0.25, 1.0))
        scores.append((float(rng.random() < 0.7), probability))
        draw = a_draw(f"r{number}", at=AT + number, probability=probability)
        read.append(a_verdict(draw, an_evidence((int(scores[-1][0]), 0))))
    late = a_draw("late", at=AT + 500, route="support", probability=0.5)
    admit_and_settle(store, *read, an_unjudged(late, "timeout"))
    return scores


def test_views_show_what_is_stored(config: Path, worker: Workers, reader: str) -> None:
    """Estimates with the interval of the core, pending draws, events and feedback, to a role without other rights."""
    store = worker()
    scores = filled(store)
    store.admit(an_admission(a_draw("waiting", at=AT + 900), a_draw("r0")))
    store.record(RecordedEvent(AT, "release", "v2"))
    made = f"views of schema {WORKERS_SCHEMA}_views are made; read by their owner only: see --reader\n"
    assert outcome("views", config) == (0, made)
    assert "--reader nobody: the server has no such role" in outcome("views", config, "--reader", "nobody")[1]
    assert outcome("views", config, "--reader", "grafana")[1].endswith("read by grafana\n")

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
    figures_of = f"SELECT weight, reason, {', '.join(Quantity)} FROM {{v}}.verdicts WHERE route = 'support'"
    ((weight, reason, *unknown),) = seen(reader, figures_of)
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
    old, bad, new = (a_draw(name, at=AT - days * DAY) for name, days in (("old", 50), ("bad", 60), ("new", 0)))
    readings = (CriterionReading("polite", CriterionAnswer.NO), CriterionReading("priced", None))
    failing, scored = an_evidence((0, 0)), an_evidence((1, 0), criteria=readings)
    admit_and_settle(store, old, a_verdict(bad, failing), a_verdict(new, scored))
    store.admit(replace(an_admission(), at=AT + 5, feedback=(Feedback((new.key,), 0.5, AT + 5, "app"),)))
    store.prune(AGES, now=AT)
    assert outcome("views", config)[0] == 0
    assert seen(server.url, "SELECT route, score FROM {v}.feedback") == [("search", 0.5)]
    assert seen(server.url, "SELECT count(*) FROM {v}.verdicts") == [(2,)]
    assert seen(server.url, "SELECT DISTINCT at FROM {v}.scores") == seen(server.url, f"SELECT to_timestamp({AT})")
    chosen = "WHERE quantity IN ('polite', 'priced')"
    rows = seen(server.url, f"SELECT quantity, score, expected, value FROM {{v}}.scores {chosen}")
    assert rows == [("polite", 0.0, None, 0.0)]
    assert seen(server.url, f"SELECT quantity, n, mean FROM {{v}}.quality_hourly {chosen}") == [("polite", 1, 0.0)]
    names = seen(server.url, f"SELECT viewname FROM pg_views WHERE schemaname = '{WORKERS_SCHEMA}_views'")
    assert len(names) == 8
    for (name,) in names:
        seen(server.url, f"SELECT * FROM {{v}}.{name}")


def test_a_migration_keeps_views_and_readers(config: Path, worker: Workers, reader: str, server: Postgres) -> None:
    """A version that changes a table on which views build succeeds, and the reader can go on."""
    worker()
    assert outcome("views", config, "--reader", "grafana")[0] == 0
    script = "ALTER TABLE events RENAME TO before; CREATE TABLE events (LIKE before INCLUDING ALL); DROP TABLE before"
    with psycopg.connect(server.url, autocommit=True, options=f"-c search_path={WORKERS_SCHEMA}") as connection:
        prepare(connection, WORKERS_SCHEMA, (*SCRIPTS, script))
        try:
            assert seen(reader, "SELECT count(*) FROM {v}.events") == [(0,)]
        finally:
            connection.execute("UPDATE schema_version SET version = version - 1")


def test_the_script_can_be_read_before(config: Path, tmp_path: Path) -> None:
    """--print needs no server; another kind of store is refused."""
    code, text = outcome("views", config, "--print")
    assert (code, f'CREATE VIEW "{WORKERS_SCHEMA}_views".scores' in text) == (0, True)
    assert "name a configuration whose store is postgres" in outcome("views", configured(tmp_path))[1]
