"""`ragwatch store copy`: a SQLite state goes on in PostgreSQL where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission, an_evidence
from support.postgres import Postgres
from support.stores import WORKERS_SCHEMA
from unit.stores.test_kinds_agree import ends, steps, stored

from ragwatch.commands import cli
from ragwatch.errors import StoreError
from ragwatch.ports import Query, Retention
from ragwatch.stores import copying
from ragwatch.stores.postgres.connections import PostgresEngine, Target
from ragwatch.stores.postgres.postgres_store import PostgresStore
from ragwatch.stores.postgres.postgres_writer import PostgresWriter
from ragwatch.stores.sqlite.reader import ReadConnection
from ragwatch.stores.sqlite.sqlite_engine import SqliteEngine
from ragwatch.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.servers

DAY = 86400.0


class Ends(PostgresEngine):
    """An engine that ends after so many transactions."""

    def __init__(self, target: Target, left: int) -> None:
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


def test_a_copied_state_is_the_same(tmp_path: Path, worker: Callable[..., PostgresStore], server: Postgres) -> None:
    """Everything that can be read is the same, numbers go on, and later steps give the same results."""
    store = SqliteStore(tmp_path / "state")
    list(steps(store))
    asked = a_draw("asked", at=AT + 9 * DAY)
    store.admit(an_admission(asked))
    store.settle([a_verdict(asked, an_evidence((1, 0), replies=("fully",)))])
    old = a_draw("old", at=AT - 100 * DAY)
    store.admit(an_admission(old))
    store.settle([a_verdict(old)])
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("store: {kind: sqlite}", "name a configuration whose store is postgres"),
        ("store: {kind: postgres, url: 'postgresql://h/d'}", "give the state directory of a SQLite store"),
    ],
)
def test_what_cannot_be_copied_is_said(tmp_path: Path, text: str, message: str) -> None:
    """The error names what to give instead."""
    config = tmp_path / "ragwatch.yaml"
    config.write_text(f"sources: [{{kind: push, name: app}}]\n{text}\n", encoding="utf-8")
    assert message in copied(tmp_path / "missing", config)[1]


def test_a_copy_goes_back_and_on_after_a_kill(
    tmp_path: Path, worker: Callable[..., PostgresStore], server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is copied there and back is the same, also if a copy is cut short; a store refuses half of one."""
    monkeypatch.setattr(copying, "MAX_ROWS_PER_STEP", 2)
    store = SqliteStore(tmp_path / "state")
    list(steps(store))
    store.close()
    worker().close()
    target = Target(server.url, WORKERS_SCHEMA)
    for cut in (3, 11, 10_000):
        with (
            closing(ReadConnection(tmp_path / "state" / "ragwatch.db")) as source,
            closing(Ends(target, cut)) as engine,
        ):
            if cut < 10_000:
                with pytest.raises(StoreError, match="cut"):
                    copying.copy_state(source, engine)
                with closing(worker()) as half, pytest.raises(StoreError, match="copying into it was cut short"):
                    half.refuse_half_copied()
            else:
                copying.copy_state(source, engine)
    with closing(PostgresEngine(target)) as source, closing(SqliteEngine(tmp_path / "back")) as engine:
        copying.copy_state(source, engine)
    one, other, copy = SqliteStore(tmp_path / "state"), SqliteStore(tmp_path / "back"), worker()
    with closing(one), closing(other):
        copy.refuse_half_copied()
        for part in (stored, ends, stored):
            for first, second in zip(part(one), part(other), strict=True):
                assert first == second
