"""Both kinds of store give the same answers to the same steps: figures do not depend on where they are stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission, an_evidence, an_unjudged

from ragwatch.core.budget import Cost, SpendingCap
from ragwatch.core.labels.label import Label
from ragwatch.core.tally import Tally
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
from ragwatch.stores.postgres.postgres_store import PostgresStore
from ragwatch.stores.sqlite.store import SqliteStore

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


def test_both_kinds_give_the_same_answers(tmp_path: Path, worker: Callable[..., PostgresStore]) -> None:
    """Admissions, leases, verdicts, money, batches, labels, erasure and retention, step by step."""
    sqlite, postgres = SqliteStore(tmp_path / "state"), worker()

    def compare(part: Callable[[Store], Iterator[object]]) -> None:
        results: list[list[Any]] = [list(part(store)) for store in (sqlite, postgres)]
        for one, other in zip(*results, strict=True):
            assert one == other

    for part in (steps, stored, ends, stored):
        compare(part)
    sqlite.close()
