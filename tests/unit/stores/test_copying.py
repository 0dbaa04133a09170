"""`ragwatch store copy`: a state goes on in another kind of store, with the same answers to all steps."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission, an_evidence, an_unjudged
from support.postgres import Postgres
from support.stores import WORKERS_SCHEMA, Workers, admit_and_settle, database

from ragwatch.commands import cli
from ragwatch.errors import StoreError
from ragwatch.model.budget import Cost, SpendingCap
from ragwatch.model.quantities import Quantity
from ragwatch.ports import (
    Assignment,
    Erasure,
    Feedback,
    FollowUp,
    Part,
    Query,
    RecordedEvent,
    Retention,
    Store,
    StoredRun,
)
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.tally import Tally
from ragwatch.stores import copying
from ragwatch.stores.postgres import Options
from ragwatch.stores.postgres.connections import PostgresEngine
from ragwatch.stores.postgres.postgres_writer import PostgresWriter
from ragwatch.stores.sqlite.sqlite_engine import ReadConnection, SqliteEngine
from ragwatch.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.servers

DAY = 86400.0


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
    further = [FollowUp(draw.key, JUDGE, Assignment("second", 0.125), AT + 3) for draw in draws[:3]]
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


def copied(state: Path, config: Path) -> tuple[int, str]:
    """Exit code and output of the command."""
    result = CliRunner().invoke(cli, ["store", "copy", str(state), str(config)], standalone_mode=False)
    if result.exception is not None:
        return 1, str(result.exception)
    return int(result.return_value), result.output


def test_a_copied_state_is_the_same(tmp_path: Path, worker: Workers, server: Postgres) -> None:
    """Everything that can be read is the same, numbers go on, and later steps give the same results."""
    store = SqliteStore(tmp_path / "state")
    list(steps(store))
    asked = a_draw("asked", at=AT + 9 * DAY)
    admit_and_settle(store, asked, evidence=an_evidence((1, 0), replies=("fully",)))
    old = a_draw("old", at=AT - 100 * DAY)
    admit_and_settle(store, old)
    store.prune(Retention(days=30, failing_days=90, bytes=1 << 40), now=AT)
    (tmp_path / "state" / "ragwatch.secret").write_text("ab" * 32, encoding="ascii")
    config = tmp_path / "ragwatch.yaml"
    url = f"{{kind: postgres, url: '{server.url}', database_schema: {WORKERS_SCHEMA}}}"
    config.write_text(f"state: other\nsources: [{{kind: push, name: app}}]\nstore: {url}\n", encoding="utf-8")
    assert "is locked by process" in copied(tmp_path / "state", config)[1]
    store.close()
    code, text = copied(tmp_path / "state", config)
    assert (code, "13 rows of samples" in text) == (0, True), text
    sqlite, target = SqliteStore(tmp_path / "state"), worker()
    try:
        for part in (stored, ends, stored):
            for one, other in zip(part(sqlite), part(target), strict=True):
                assert one == other
        (copy,) = target.entries(Query(key=asked.key))
        assert target.replies(copy.seq) == ("fully",)
        assert target.shared_secret(b"x" * 32) == bytes.fromhex("ab" * 32)
        numbers = [row.seq for row in target.window(0, 0.0, 100)]
        new = a_draw("new", at=AT + 10 * DAY)
        target.admit(an_admission(new))
        assert target.lease(JUDGE, 1, now=AT, seconds=1, before=AT) == []
        assert target.settle([a_verdict(new)]) == 1
        assert target.window(max(numbers, default=0), 0.0, 9)[0].key == new.key
    finally:
        sqlite.close()
    assert "is not empty" in copied(tmp_path / "state", config)[1]


def test_what_cannot_be_copied_is_said(tmp_path: Path) -> None:
    """The error names what to give instead."""
    config = tmp_path / "ragwatch.yaml"
    for text, message in (
        ("store: {kind: sqlite}", "name a configuration whose store is postgres"),
        ("store: {kind: postgres, url: 'postgresql://h/d'}", "give the state directory of a SQLite store"),
    ):
        config.write_text(f"sources: [{{kind: push, name: app}}]\n{text}\n", encoding="utf-8")
        assert message in copied(tmp_path / "missing", config)[1]


def test_a_copy_goes_back_and_on_after_a_kill(
    tmp_path: Path, worker: Workers, server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is copied there and back is the same, also if a copy is cut short; a store refuses half of one."""
    monkeypatch.setattr(copying, "MAX_ROWS_PER_STEP", 2)
    store = SqliteStore(tmp_path / "state")
    list(steps(store))
    store.close()
    worker().close()
    target = database(server.url, WORKERS_SCHEMA)
    for cut in (11, 10_000):
        with (
            closing(ReadConnection(tmp_path / "state" / "ragwatch.db")) as source,
            closing(Ends(target, cut)) as engine,
        ):
            if cut < 10_000:
                with pytest.raises(StoreError, match="cut"):
                    copying.copy_state(source, engine)
                with pytest.raises(StoreError, match="copying into it was cut short"):
                    worker().require_complete()
            else:
                copying.copy_state(source, engine)
    with closing(PostgresEngine(target)) as source, closing(SqliteEngine(tmp_path / "back")) as engine:
        copying.copy_state(source, engine)
    one, other, copy = SqliteStore(tmp_path / "state"), SqliteStore(tmp_path / "back"), worker()
    with closing(one), closing(other):
        assert copy.require_complete() is copy
        for part in (stored, ends, stored):
            for first, second in zip(part(one), part(other), strict=True):
                assert first == second
