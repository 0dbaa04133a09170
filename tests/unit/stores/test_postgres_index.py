"""The index of searches over a real PostgreSQL: by its plan, and kept right beside workers of the version before."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from support.kit import AT, a_draw, a_verdict, an_admission, an_evidence
from support.stores import sql

from ragwatch.core.sample import Context, Draw
from ragwatch.errors import UnsearchableError
from ragwatch.model.quantities import Quantity
from ragwatch.ports import Query, Retention
from ragwatch.stores import store_base
from ragwatch.stores.answer_terms import asked_terms
from ragwatch.stores.kept_texts import Texts
from ragwatch.stores.postgres.connections import Target, connect
from ragwatch.stores.postgres.postgres_queries import PostgresQueries
from ragwatch.stores.postgres.postgres_store import PostgresStore
from ragwatch.stores.postgres.postgres_writer import in_dialect

pytestmark = pytest.mark.costly
KEEP = Retention(30.0, 90.0, 1 << 40)
MANY = 3000
# What a worker of schema 9 does: it stores verdicts, deletes texts and drops days, and knows of no index.
NOT_INDEXED = "DELETE FROM answer_index"
DROPPED = r"UPDATE samples SET body = '\x00'"
DAY_DROPPED = "DELETE FROM sample_keys"


def answer(name: str, document: str, at: float = AT) -> Draw:
    """An answer of a release from a document."""
    contexts = [Context("Cats purr.", document, 0.5), Context("Dogs bark.", "doc-9", 0.25)]
    return a_draw(name, at=at, contexts=contexts, metadata={"release": "v2", "user": "anna"})


def keys_by(store: PostgresStore, **filters: object) -> list[str]:
    """Keys that a search returns."""
    return [row.verdict.key for row in store.find(replace(Query(), **filters))]  # type: ignore[arg-type]


def read_whole(plan: Mapping[str, Any]) -> Iterator[str]:
    """Tables of a plan that are read from one end to the other."""
    if plan["Node Type"] == "Seq Scan":
        yield plan["Relation Name"]
    for step in plan.get("Plans", ()):
        yield from read_whole(step)


def test_a_search_goes_through_the_index(target: Target, worker: Callable[..., PostgresStore]) -> None:
    """Of thousands of answers the few that match are looked up by term, then by key in every partition."""
    store, draw = worker(), answer("r1", "doc-1")
    store.admit(an_admission(draw))
    store.settle([a_verdict(draw)])
    with connect(target) as connection:
        connection.execute(
            "INSERT INTO samples SELECT 'k' || n, 'app', 'search', n, 'x' FROM generate_series(1, %s) AS n", (MANY,)
        )
        connection.execute(
            "INSERT INTO verdicts (key, judge, version, at, route, probability, outcome, failing, line)"
            " SELECT key, 'j', '1', at, route, 1.0, 'unjudged', 1, body FROM samples WHERE body = 'x'"
        )
        connection.execute(
            "INSERT INTO answer_index SELECT key, ARRAY[at::bigint], ('other:1 ' || key)::tsvector FROM samples"
            " WHERE body = 'x'"
        )
        connection.execute("ANALYZE samples; ANALYZE verdicts")
        connection.execute("VACUUM ANALYZE answer_index")
        by_term = Query(context="doc-1", metadata=(("release", "v2"),), stage="none")
        by_words = Query(words=(("cats", "purr"),))
        for query, index in ((by_term, "answer_index_terms"), (by_words, "answer_index_words")):
            text, parameters = PostgresQueries.full(query, asked_terms(query, None))
            plan = connection.execute(in_dialect(f"EXPLAIN (FORMAT JSON) {text}"), parameters).fetchall()[0][0]
            assert index in str(plan), plan
            assert not {"answer_index", "verdicts_0", "samples_0"} & set(read_whole(plan[0]["Plan"]))
        for query in (Query(disputed=True), Query(quantity=Quantity.FAITHFULNESS, worst=True)):
            text, parameters = PostgresQueries.full(query)
            plan = connection.execute(in_dialect(f"EXPLAIN (FORMAT JSON) {text}"), parameters).fetchall()[0][0]
            assert "samples_0" not in set(read_whole(plan[0]["Plan"])), "texts are read of what is returned"
    for _ in range(8):  # a statement that is run more often is prepared, and its plan then serves all parameters
        assert keys_by(store, context="doc-1", metadata=(("release", "v2"),)) == [draw.key]
        assert len(list(store.entries(Query(words=(("cats",),))))) == 1
    prepared = store.engine.rows(
        "SELECT statement FROM pg_prepared_statements WHERE strpos(statement, 'answer_index a ') > 0"
    )
    assert prepared == [], "each search is planned for its own parameters"


def test_workers_of_the_version_before_leave_nothing_behind(
    target: Target, worker: Callable[..., PostgresStore]
) -> None:
    """Texts that they delete are not found, and what they drop is dropped from the index."""
    store, draws = worker(), [answer("r1", "doc-1"), answer("r2", "doc-2", AT + 1)]
    store.admit(an_admission(*draws))
    store.settle([a_verdict(draw, an_evidence((1, 0), replies=("fully",))) for draw in draws])
    assert sql(target, "SELECT key FROM replies ORDER BY seq") == [(draw.key,) for draw in draws]
    assert keys_by(store, context="doc-9") == [draws[1].key, draws[0].key]
    sql(target, f"{DROPPED} WHERE key = '{draws[0].key}'")
    assert keys_by(store, words=(("cats",),)) == [draws[1].key]
    assert keys_by(store, metadata=(("user", "anna"),)) == [draws[1].key]
    assert sql(target, "SELECT key FROM replies") == [(draws[1].key,)]
    sql(target, f"{DAY_DROPPED} WHERE key = '{draws[1].key}'")
    assert sql(target, "SELECT key FROM replies") == []
    assert sql(target, "SELECT key, terms FROM answer_index") == [(draws[0].key, [])]


def test_answers_of_the_version_before_are_added_after_the_start(
    target: Target, worker: Callable[..., PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is not in the index is added by its traits, a few at a time; a second time there is nothing to do."""
    monkeypatch.setattr(store_base, "MAX_ROWS_PER_STEP", 2)
    store, draws = worker(), [answer(f"r{number}", f"doc-{number}", AT + number) for number in range(5)]
    store.admit(an_admission(*draws))
    store.settle([a_verdict(draw) for draw in draws])
    sql(target, f"{NOT_INDEXED} WHERE key <> '{draws[3].key}'")
    sql(target, f"DELETE FROM traits WHERE key = '{draws[0].key}'")  # noqa: S608 - of ours
    store.prune(KEEP, now=AT)
    assert keys_by(store, context="doc-9", metadata=(("user", "anna"),)) == [draw.key for draw in reversed(draws)]
    sql(target, f"{NOT_INDEXED} WHERE key = '{draws[3].key}'")
    store.prune(KEEP, now=AT)
    assert keys_by(store, context="doc-3") == []
    later = worker(texts=Texts.NONE)
    later.prune(KEEP, now=AT)
    assert keys_by(store, context="doc-3", metadata=(("release", "v2"),)) == [draws[3].key]
    assert keys_by(store, metadata=(("user", "anna"),)) == []


def test_dropped_days_go_from_the_index(target: Target, worker: Callable[..., PostgresStore]) -> None:
    """When retention drops a day, its answers are no longer in the index."""
    store, now = worker(), time.time()
    store.admit(an_admission(answer("r1", "doc-1", now)))
    store.settle([a_verdict(answer("r1", "doc-1", now))])
    assert store.prune(KEEP, now=now + 32 * 86400) == 1
    assert sql(target, "SELECT key FROM answer_index") == []
    worker()


def test_words_are_indexed_as_the_configuration_says(target: Target, worker: Callable[..., PostgresStore]) -> None:
    """A worker that does not index them refuses, and deletes those of before; one that does adds them again."""
    store, draw = worker(), answer("r1", "doc-1")
    store.admit(an_admission(draw))
    store.settle([a_verdict(draw)])
    assert keys_by(store, words=(("cats", "purr"),)) == [draw.key]
    other = worker(text_search=False)
    other.prune(KEEP, now=AT)
    with pytest.raises(UnsearchableError, match=r"store\.text_search"):
        other.find(Query(words=(("cats",),)))
    assert sql(target, "SELECT words FROM answer_index") == [(None,)]
    store.prune(KEEP, now=AT)
    assert keys_by(store, words=(("purr",),)) == [draw.key]
    worker(texts=Texts.NONE).prune(KEEP, now=AT)
    assert keys_by(store, words=(("purr",),)) == []
