"""The index of searches in SQLite: by its plan, complete after an upgrade, and without what is not kept."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.kit import AT, JUDGE, a_draw, a_verdict, an_evidence
from support.stores import KEEP_ALL, PARAMETERS, Opened, admit_and_settle, as_left_by, found_by, readable

from ragwatch.errors import UnsearchableError
from ragwatch.model.quantities import Quantity
from ragwatch.model.sample import Context
from ragwatch.ports import AnswerQuery, Erasure, Query, TrendQuery
from ragwatch.statistics.trends import TrendKind
from ragwatch.stores import dropping, search_index
from ragwatch.stores.kept_texts import Rules, Texts
from ragwatch.stores.search_index import TERM_BYTES, asked_terms, stored_terms, terms_of
from ragwatch.stores.searching import answers_statement
from ragwatch.stores.settling import SETTLED
from ragwatch.stores.sqlite import sqlite_search
from ragwatch.stores.sqlite.sqlite_search import SqliteQueries
from ragwatch.stores.sqlite.store import SqliteStore
from ragwatch.stores.texts import pack
from ragwatch.stores.trends import HIGHEST, MERGED, parameters_of

DRAW = a_draw(
    "r1",
    contexts=[Context("Cats purr.", "doc-1", 0.5), Context("Dogs bark.", "doc-2", 0.25)],
    metadata={"release": "v2", "user": "SECRETUSER"},
)


def counts(store: SqliteStore) -> tuple[int, int]:
    """Number of indexed answers and of their terms."""
    ((answers, terms),) = store.engine._reader.rows(
        "SELECT (SELECT COUNT(*) FROM answer_index), (SELECT COUNT(*) FROM terms)"
    )
    return answers, terms


def searched(**filters: Any) -> tuple[str, Any]:
    """The statement of a search."""
    query = Query(**filters)
    return SqliteQueries.full(query, asked_terms(query, None))


CATS = (("cats",),)
WORST = {"quantity": Quantity.CONTRADICTION, "worst": True, "route": "search", "since": 1.0}
TRENDS = parameters_of(TrendQuery(TrendKind.SCORE, "search", 3600, 86400, since=0, until=86400))
OF_A_PLACE = "USING PRIMARY KEY (span=? AND kind=? AND place=? AND start>? AND start<?)"
PLANS = {
    "a term": (searched(metadata=(("release", "v2"),)), "SEARCH t USING PRIMARY KEY (term=?)"),
    "a term and a page": (
        searched(context="doc-1", since=1.0, until=AT, after=(AT, 7)),
        "SEARCH t USING PRIMARY KEY (term=? AND at>? AND at<?)",
    ),
    "terms": (
        searched(top_context="d", context="d", metadata=(("a", "b"), ("c", "d")), stage="none"),
        "SEARCH o USING PRIMARY KEY (term=? AND at=? AND id=?)",
    ),
    "words": (searched(words=CATS), "SEARCH v USING INDEX verdicts_answer (at=? AND key=?)"),
    "words and a term": (searched(words=CATS, context="d"), "SEARCH t USING PRIMARY KEY (term=?)"),
    "labelled": (searched(labelled=True), "SEARCH l USING PRIMARY KEY (key=?)"),
    "disputed": (searched(disputed=True), "SEARCH o USING COVERING INDEX verdicts_answer (at=? AND key=?)"),
    "the worst": (searched(**WORST), "SEARCH x USING PRIMARY KEY (name=?)"),
    "scores": (searched(**WORST, below=0.5, above=0.0), "SEARCH x USING PRIMARY KEY (name=? AND rank>? AND rank<?)"),
    "the worst of a term": (searched(**WORST, context="d"), "SEARCH t USING PRIMARY KEY (term=? AND at>?)"),
    "the worst of words": (searched(**WORST, words=CATS), "SEARCH v USING INDEX verdicts_answer (at=? AND key=?)"),
    "settling": (
        (SETTLED, {"judge": JUDGE, "keys": ["a"]}),
        "SEARCH w USING COVERING INDEX sqlite_autoindex_work_1 (judge=? AND key=?)",
    ),
    "trends": ((MERGED, TRENDS), f"SEARCH trends {OF_A_PLACE}"),
    "peaks": ((HIGHEST, TRENDS), f"SEARCH peaks {OF_A_PLACE}"),
    "answers": (
        answers_statement(AnswerQuery(0.0, AT, "search", "embedded", (AT, 7))),
        "SEARCH v USING INDEX verdicts_at (at>? AND at<?)",
    ),
}
READ_WHOLE = re.compile(r"SCAN (v USING INDEX verdicts_at|(words|json_each) VIRTUAL TABLE.*|m|\(subquery-\d\))")


def test_statements_look_up_by_index(store: SqliteStore) -> None:
    """No table is read whole, and only what the index of searches finds is sorted; texts are read of what is returned.

    Each plan has the step that makes it quick with 100,000 answers.
    """
    for name, ((sql, parameters), needed) in PLANS.items():
        with store.engine.transaction() as writer:
            plan = [str(row[-1]) for row in writer.rows(f"EXPLAIN QUERY PLAN {sql}", parameters)]
        assert needed in plan, name
        assert [step for step in plan if step.startswith("SCAN ") and not READ_WHOLE.fullmatch(step)] == [], name
        is_sorted = "USE TEMP B-TREE FOR ORDER BY" in plan
        assert is_sorted <= ("MATERIALIZE m" in plan or "words VIRTUAL TABLE" in str(plan)), name
        if "MATERIALIZE m" in plan:
            assert [number for number, step in enumerate(plan) if step.startswith("SEARCH s ")] == [len(plan) - 2], name


@pytest.mark.parametrize("cut_short", [False, True])
def test_t34_answers_of_before_are_found_once_retention_ran(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch, *, cut_short: bool
) -> None:
    """T34: the upgrade reads nothing; then each answer is found by what is stored of it, pending ones once judged.

    An upgrade that was cut short goes on: answers are added a few at a time, and the next start looks for the rest.
    """
    as_left_by(6, tmp_path / "state")
    store = opened()
    assert (counts(store), found_by(store, Query(context="doc-9"))) == ((0, 0), [])
    assert len(store.find(Query())) == 3
    if cut_short:
        monkeypatch.setattr(dropping, "MAX_ROWS_PER_STEP", 1)
        with store.engine.transaction() as writer:
            keys = [row.verdict.key for row in store.find(Query(limit=1))]
            store.index.add(writer, search_index.stored_entries(writer, keys, store.rules))
        store = opened()
    store.prune(KEEP_ALL, now=AT)
    assert found_by(store, Query(context="doc-9")) == ["third", "second", "first"]
    assert found_by(store, Query(metadata=(("release", "v1"),))) == ["second"]
    assert found_by(store, Query(metadata=(("user", "anna"),))) == ["second", "first"]
    before = counts(store)
    store = opened()
    store.prune(KEEP_ALL, now=AT)
    assert counts(store) == before
    (waiting,) = store.lease("embedded", 9, now=AT, seconds=60)
    store.settle([a_verdict(waiting)])
    assert found_by(store, Query(top_context="doc-3")) == ["fourth"]


def test_answers_whose_ids_would_be_the_same_are_both_found(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers of one second differ by a hash of their keys; where it is the same, ids are counted on."""
    monkeypatch.setattr(sqlite_search, "_HASH_BITS", 0)
    contexts = [Context("Cats purr.", "doc-1"), Context("Dogs bark.", "doc-2")]
    draws = [a_draw(name, contexts=contexts) for name in ("r1", "r2", "r3")]
    admit_and_settle(store, *draws)
    assert sorted(found_by(store, Query(context="doc-1"))) == ["r1", "r2", "r3"]
    assert counts(store)[0] == 3


def test_with_encryption_the_database_holds_no_value(tmp_path: Path, opened: Opened) -> None:
    """Terms are keyed digests, found with the key that wrote them, and with another one only beside it."""
    old, new = "ab" * 32, "cd" * 32
    query = Query(context="doc-1", metadata=(("release", "v2"),))
    plain = terms_of({"contexts": ["doc-1"], "metadata": {"release": "v2"}}, None)
    store = opened(encryption={"key": old})
    admit_and_settle(store, DRAW)
    assert found_by(store, query) == ["r1"]
    ((packed,),) = store.engine._reader.rows("SELECT terms FROM answer_index")
    assert not [term for term in plain if term.to_bytes(TERM_BYTES, "big", signed=True) in packed]
    store = opened(encryption={"key": f"{new} {old}"})
    assert found_by(store, query) == ["r1"]
    opened.close()
    content = readable(tmp_path)
    assert (b"SECRETUSER" in content, b"doc-1" in content) == (False, False)


def test_what_is_damaged_has_no_terms() -> None:
    """A row that cannot be decoded, or holds something else, is indexed without terms, and stops nothing."""
    rules = Rules(Texts.ALL, None)
    for traits in (b"\x01", pack({}), pack({"contexts": 5}), pack({"contexts": [7], "metadata": {}})):
        assert stored_terms(traits, None, rules) == []
    assert stored_terms(None, b"\x01", rules) == stored_terms(None, pack({}), rules) == []
    assert stored_terms(None, None, rules) == []


BY_WORD = Query(words=(("secretword",),))
TEXT = a_draw("r1", question="Is SECRETWORD open?")


def with_words(opened: Opened) -> Any:
    """A store with one judged answer that has a word of its own."""
    store = opened()
    admit_and_settle(store, TEXT, evidence=an_evidence((0, 0)))
    return store


@pytest.mark.parametrize("opened", PARAMETERS, indirect=True)
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"text_search": False}, "store.text_search"),
        ({"texts": "none"}, "store.texts"),
        ({"encryption": {"key": "ab" * 32}}, "store.encryption"),
    ],
)
def test_words_that_are_not_indexed_are_refused_with_the_reason(
    opened: Opened, settings: dict[str, Any], reason: str
) -> None:
    """Nothing is found silently; what was indexed is deleted, at the start or by retention, or indexed again."""
    assert found_by(with_words(opened), BY_WORD) == ["r1"]
    store = opened(**settings)
    for search in (store.find, store.summaries, lambda query: list(store.entries(query))):
        with pytest.raises(UnsearchableError, match=rf"^text: cannot be searched for: .*{reason}"):
            search(BY_WORD)
    is_sqlite = isinstance(store, SqliteStore)
    assert not is_sqlite or store.engine.rows("SELECT 1 FROM sqlite_master WHERE name LIKE 'words%'") == []
    store.prune(KEEP_ALL, now=AT)
    ((indexed,),) = store.engine.rows("SELECT HAS_WORDS FROM answer_index a")
    assert not indexed
    assert len(store.find(Query())) == 1
    if "text_search" in settings:
        store = opened()
        store.prune(KEEP_ALL, now=AT)
        assert found_by(store, BY_WORD) == ["r1"]


def test_without_fts5_everything_else_works(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build of SQLite without the module is named when words are searched for."""
    monkeypatch.setattr(sqlite_search, "_HAS_FTS5", "SELECT 1 WHERE 0")
    store = with_words(opened)
    with pytest.raises(UnsearchableError, match="without FTS5"):
        store.find(BY_WORD)
    assert found_by(store) == ["r1"]


def test_words_of_a_damaged_text_go_with_all_and_the_rest_come_back(tmp_path: Path, opened: Opened) -> None:
    """What cannot be read cannot be taken out of the index: it is emptied, and filled again by retention."""
    store = with_words(opened)
    admit_and_settle(store, a_draw("o", question="Is another open?"))
    with store.engine.transaction() as writer:
        writer.execute("UPDATE samples SET body = x'0102' WHERE key = ?", (TEXT.key,))
    store.forget(Erasure(ids=frozenset({TEXT.key})))
    assert found_by(store, Query(words=(("another",),))) == []
    store.prune(KEEP_ALL, now=AT)
    assert (found_by(store, Query(words=(("another",),))), found_by(store, BY_WORD)) == (["o"], [])
    opened.close()
    assert b"secretword" not in readable(tmp_path).lower()


def test_pages_of_words_go_on_behind_the_matches_of_one_page(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page looks at its own matches only, and the next one at those that are older."""
    monkeypatch.setattr(sqlite_search, "PLAIN_MATCHES", 1)
    draws = [a_draw(f"r{number}", at=AT + number) for number in range(12)]
    admit_and_settle(store, *draws)
    seen, query = list[str](), Query(words=(("cats",),), limit=2)
    while page := store.find(query):
        seen += [row.verdict.key for row in page]
        (last,) = store.engine._reader.rows("SELECT at, seq FROM verdicts WHERE key = ?", (seen[-1],))
        query = replace(query, after=last)
    assert seen == [draw.key for draw in reversed(draws)]
