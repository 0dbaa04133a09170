"""Workers over a real PostgreSQL: terms, fenced writes, counters, the index of searches, and partitions by day."""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission, an_evidence
from support.patience import DEADLINE, SCALE
from support.stores import AGES, DAY, KEEP_ALL, Workers, admit_and_settle, sql

from ragwatch.errors import NotLeadingError
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Context, Draw
from ragwatch.pipeline.vocabularies import Vocabularies
from ragwatch.ports import Feedback, Query, StoredRun
from ragwatch.statistics.tally import Tallies, Tally
from ragwatch.stores import dropping
from ragwatch.stores.dialect import in_postgres
from ragwatch.stores.kept_texts import Texts
from ragwatch.stores.postgres import Options
from ragwatch.stores.postgres.connections import connect
from ragwatch.stores.postgres.partitions import REST, day_of
from ragwatch.stores.postgres.postgres_search import PostgresQueries
from ragwatch.stores.postgres.postgres_store import PostgresStore
from ragwatch.stores.search_index import asked_terms

pytestmark = pytest.mark.costly
_OVER = "UPDATE leader SET until = clock_timestamp()"


def test_terms(target: Options, worker: Workers) -> None:
    """One worker leads; another one when the time of the first is over, when it resigns, or by force."""
    one, two = worker(), worker()
    first = one.lead(60.0)
    assert (first, one.lead(60.0), two.lead(60.0)) == (first, first, None)
    sql(target, _OVER)
    assert first is not None
    second = two.lead(60.0)
    assert (second, one.lead(60.0)) == (first + 1, None)
    two.resign(second or 0)
    two.resign(first)  # a term that is over ends nothing
    assert (one.lead(60.0), two.lead(60.0, force=True), one.lead(60.0)) == (first + 2, first + 3, None)


def test_who_was_stopped_past_the_term_writes_nothing(target: Options, worker: Workers) -> None:
    """Every write of the former leader is refused, whether or not another one leads by now; reading goes on."""
    one, two = worker(), worker()
    term = one.lead(60.0)
    led = one.fenced(lambda: term)
    led.remember("drift", {"seq": 1})
    sql(target, _OVER)
    run = StoredRun("drift", "x", AT, failing=True, body={})
    for write in (
        lambda: led.remember("drift", {"seq": 2}),
        lambda: led.record_run(run, Counter({(Tally.DRIFT_ALARMS, ("faithfulness", "search")): 1})),
        lambda: led.prune(AGES, now=AT),
    ):
        with pytest.raises(NotLeadingError):
            write()
    assert two.lead(60.0) is not None
    with pytest.raises(NotLeadingError):
        led.remember("drift", {"seq": 2})
    with pytest.raises(NotLeadingError):
        one.fenced(lambda: None).remember("drift", {"seq": 2})
    one.remember("own", {"seq": 3})
    assert (led.recall("drift"), two.runs("drift", "x", 9), two.tallies()) == ({"seq": 1}, [], {})


def test_no_term_begins_within_a_transaction_of_the_leader(target: Options, worker: Workers) -> None:
    """A leader that is past its check, and slow, commits before the next one reads: nothing is missed."""
    one, two = worker(), worker()
    term = one.lead(60.0)
    led, began = one.fenced(lambda: term), list[int | None]()
    with led.engine.transaction() as writer:
        writer.execute("INSERT INTO states (name, body) VALUES ('drift', 'x')")
        thread = threading.Thread(target=lambda: began.append(two.lead(60.0, force=True)))
        thread.start()
        thread.join(0.2)
        assert began == []
    thread.join(DEADLINE)
    assert began == [(term or 0) + 1]
    assert sql(target, "SELECT 1 FROM states WHERE name = 'drift'") == [(1,)]


def test_counters_by_worker_add_up(target: Options, worker: Workers) -> None:
    """What each has counted is its own, also after a restart; those of a worker that ended stay in the sum."""
    one, two = worker(name="one"), worker(name="two")
    draws = [a_draw(f"r{index}") for index in range(4)]
    one.admit(an_admission(*draws, tallies=Counter({(Tally.SEEN, ("app",)): 4})))
    two.settle([a_verdict(draw) for draw in draws[:3]])
    one.settle([a_verdict(draws[3])])
    parts: Tallies = Counter(one.own_tallies())
    parts.update(two.own_tallies())
    assert parts == one.tallies()
    assert (one.own_tallies()[Tally.SEEN, ("app",)], two.own_tallies()[Tally.JUDGED, ("search", JUDGE)]) == (4, 3)
    assert worker(name="two").own_tallies() == two.own_tallies()
    sql(target, "UPDATE workers SET seen = now() - interval '25 hours' WHERE name = 'two'")
    before = one.tallies()
    one.prune(KEEP_ALL, now=AT)
    assert (two.own_tallies(), one.tallies()) == ({}, before)
    two.lead(1.0)  # it was only away: it counts under its number again
    two.settle([a_verdict(draws[0])])
    two.admit(an_admission(a_draw("later")))
    assert two.own_tallies()[Tally.DRAWN, ("search",)] == 1


def test_workers_learn_one_vocabulary(worker: Workers) -> None:
    """Questions of both count, a complete vocabulary is used by both, and one that is renewed is dropped by both."""
    one, two = (Vocabularies(10, ("search",), store=worker()) for _ in range(2))
    one.learn({"search": ["What do cats do?"] * 6})
    two.learn({"search": ["What do dogs do?"] * 6})
    assert (one.mark("search"), two.mark("search") is None) == (None, False)
    one.learn({"search": ["Why?"] * 6})
    assert one.mark("search") == two.mark("search")
    two.renew("search")
    one.resume()
    assert one.mark("search") is None


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


def test_a_search_goes_through_the_index(target: Options, worker: Workers) -> None:
    """Of thousands of answers the few that match are looked up by term, then by key in every partition."""
    store, draw = worker(), answer("r1", "doc-1")
    admit_and_settle(store, draw)
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
        for query, index, others in (
            (by_term, "answer_index_terms", ("answer_index", "verdicts_0")),
            (by_words, "answer_index_words", ("answer_index", "verdicts_0")),
            (Query(disputed=True), "", ()),
            (Query(quantity=Quantity.FAITHFULNESS, worst=True), "", ()),
        ):
            text, parameters = PostgresQueries.full(query, asked_terms(query, None))
            plan = connection.execute(in_postgres(f"EXPLAIN (FORMAT JSON) {text}"), parameters).fetchall()[0][0]
            assert index in str(plan), plan
            assert not {"samples_0", *others} & set(read_whole(plan[0]["Plan"]))  # texts are read of what is returned
    for _ in range(8):  # a statement that is run more often is prepared, and its plan then serves all parameters
        assert keys_by(store, context="doc-1", metadata=(("release", "v2"),)) == [draw.key]
        assert len(list(store.entries(Query(words=(("cats",),))))) == 1
    prepared = store.engine.rows(
        "SELECT statement FROM pg_prepared_statements WHERE strpos(statement, 'answer_index a ') > 0"
    )
    assert prepared == [], "each search is planned for its own parameters"


def test_workers_of_the_version_before_leave_nothing_behind(target: Options, worker: Workers) -> None:
    """Texts that they delete are not found, and what they drop is dropped from the index."""
    store, draws = worker(), [answer("r1", "doc-1"), answer("r2", "doc-2", AT + 1)]
    admit_and_settle(store, *draws, evidence=an_evidence((1, 0), replies=("fully",)))
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
    target: Options, worker: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is not in the index is added by its traits, a few at a time; a second time there is nothing to do."""
    monkeypatch.setattr(dropping, "MAX_ROWS_PER_STEP", 2)
    store, draws = worker(), [answer(f"r{number}", f"doc-{number}", AT + number) for number in range(5)]
    admit_and_settle(store, *draws)
    sql(target, f"{NOT_INDEXED} WHERE key <> '{draws[3].key}'")
    sql(target, f"DELETE FROM traits WHERE key = '{draws[0].key}'")  # noqa: S608 - of ours
    store.prune(AGES, now=AT)
    assert keys_by(store, context="doc-9", metadata=(("user", "anna"),)) == [draw.key for draw in reversed(draws)]
    sql(target, f"{NOT_INDEXED} WHERE key = '{draws[3].key}'")
    store.prune(AGES, now=AT)
    assert keys_by(store, context="doc-3") == []
    later = worker(texts=Texts.NONE)
    later.prune(AGES, now=AT)
    assert keys_by(store, context="doc-3", metadata=(("release", "v2"),)) == [draws[3].key]
    assert keys_by(store, metadata=(("user", "anna"),)) == []


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
    good, bad, pending = (a_draw(name, at=now) for name in ("good", "bad", "pending"))
    old = a_draw("old", at=now - 10 * DAY)
    store.admit(replace(an_admission(good, bad, pending, old), feedback=[Feedback((good.key,), 1.0, now, "app")]))
    store.settle([a_verdict(good), a_verdict(bad, an_evidence((0, 0))), a_verdict(old)])
    assert parts(target, "samples") == parts(target, "sample_keys") == {today: 3, REST: 1}
    assert parts(target, "verdicts") == {today: 2, REST: 1}
    before = [row.key for row in store.window(0, 0.0, 9)]
    assert store.prune(AGES, now=(today + 1) * DAY + 30 * DAY - 1.0) == 1  # `old`, as its time says
    assert parts(target, "verdicts") == {today: 2}
    assert store.prune(AGES, now=(today + 1) * DAY + 30 * DAY) == 1
    assert parts(target, "samples") == parts(target, "sample_keys") == {REST: 2}
    assert sql(target, f"SELECT to_regclass('samples_d{today}'), to_regclass('verdicts_d{today}')") == [(None, None)]
    (kept,) = store.find(Query())
    assert (kept.verdict.key, kept.sample is not None) == (bad.key, True)
    assert (store.feedback_of(good.key), store.window(0, 0.0, 9)) == (None, [])
    assert set(before) == {good.key, bad.key, old.key}
    assert sql(target, "SELECT key FROM answer_index") == [(bad.key,)]
    assert [draw.key for draw in store.lease(JUDGE, 9, now=now, seconds=1)] == [pending.key]
    assert store.admit(an_admission(good)) == 1  # its key is free, and there is no partition of its day
    assert store.prune(AGES, now=now + 91 * DAY) == 1
    assert store.find(Query()) == []
    worker()  # a start makes the partitions again


def test_a_table_in_use_is_left_for_the_next_time(target: Options, worker: Workers) -> None:
    """A reader keeps a day from being dropped, waits for nothing, and nothing is lost; then it is dropped."""
    store, now = worker(), time.time()
    admit_and_settle(store, a_draw("a", at=now))
    with connect(target) as reader:
        reader.execute("BEGIN; SELECT count(*) FROM verdicts")
        assert store.prune(AGES, now=now + 32 * DAY) == 0
        assert len(store.find(Query())) == 1
    assert store.prune(AGES, now=now + 32 * DAY) == 1
    worker()


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
        assert store.prune(AGES, now=time.time() + 40 * DAY) == 2
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
