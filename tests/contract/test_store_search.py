"""The contract of `ports.Store` for searches by metadata, contexts and words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.hostile import HOSTILE, SEARCHES
from support.kit import AT, a_claim, a_draw, a_verdict, an_admission, an_evidence

from ragwatch.core.sample import Context, Draw
from ragwatch.core.search_words import phrases_of
from ragwatch.ports import Erasure, Query, Retention, Store

DAY = 86400.0
KEEP = Retention(days=9999, failing_days=9999, bytes=1 << 30)


def answers() -> list[Draw]:
    """Six answers of two releases, from three documents."""
    draws = []
    for number in range(6):
        documents = [Context("Cats purr.", f"doc-{number % 3}", 0.5), Context("Dogs bark.", "doc-9", 0.25)]
        metadata = {"release": f"v{number % 2}", "user": {"tier": "free", "paid": number == 4}, "turn": number}
        draws.append(a_draw(f"r{number}", at=AT + number // 2, contexts=documents, metadata=metadata))
    return draws


def settle(store: Store, draws: list[Draw], judge: str = "embedded") -> None:
    """Judge answers, every second one with a fault."""
    bad = an_evidence(a_claim((0, 0), "contradicted"))
    verdicts = [a_verdict(draw, bad if number % 2 else None) for number, draw in enumerate(draws)]
    store.settle([replace(one, reading=replace(one.reading, judge=judge)) for one in verdicts])


@pytest.fixture
def filled(store: Store) -> Store:
    """A store with these answers."""
    store.admit(an_admission(*answers()))
    settle(store, answers())
    return store


def ids(store: Store, **filters: Any) -> str:
    """Numbers of the answers that are found, in order."""
    query = Query(**filters)
    assert [row.verdict.key for row in store.summaries(query)] == [one.verdict.key for one in store.entries(query)]
    return "".join(str(row.verdict.id)[1:] for row in store.find(query))


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, "543210"),
        ({"metadata": (("release", "v1"),)}, "531"),
        ({"metadata": (("release", "v1"), ("turn", "3"))}, "3"),
        ({"metadata": (("user.tier", "free"), ("user.paid", "true"))}, "4"),
        ({"metadata": (("release", "v3"),)}, ""),
        ({"metadata": (("release", "V1"),)}, ""),
        ({"metadata": (("release", ""),)}, ""),
        ({"context": "doc-9"}, "543210"),
        ({"context": "doc-1"}, "41"),
        ({"top_context": "doc-9"}, ""),
        ({"top_context": "doc-2"}, "52"),
        ({"top_context": "doc-2", "context": "doc-9", "metadata": (("release", "v0"),)}, "2"),
        ({"context": "doc-9", "stage": "none"}, "420"),
        ({"context": "doc-9", "until": AT + 1}, "10"),
        ({"context": "doc-9", "since": AT + 2, "limit": 1}, "5"),
        ({"context": "doc-9", "labelled": False, "disputed": False, "judge": "embedded", "limit": 2}, "54"),
        ({"context": "doc-9", "quantity": "faithfulness", "worst": True, "limit": 3}, "531"),
    ],
)
def test_answers_are_found_by_metadata_and_contexts(filled: Store, filters: dict[str, Any], expected: str) -> None:
    """Every filter narrows the search, and all of them together; order, bounds and limits are those of any search."""
    assert ids(filled, **filters) == expected


def test_pages_neither_skip_nor_repeat(filled: Store) -> None:
    """Answers of the same time and verdicts of two judges are divided over pages by time and sequence number."""
    draws = answers()
    extra = [replace(draw, key=draw.key[::-1]) for draw in draws]
    filled.admit(an_admission(*extra, judges=("other",)))
    settle(filled, extra, "other")
    everything = [one.seq for one in filled.entries(Query(context="doc-9"))]
    assert everything == [one.seq for one in filled.entries(Query())]
    seen, query = list[int](), Query(context="doc-9", limit=5)
    while page := list(filled.entries(query)):
        seen += [one.seq for one in page]
        query = replace(query, after=(page[-1].verdict.at, page[-1].seq))
    assert (seen, len(seen)) == (everything, 12)


def test_a_search_forgets_with_the_answers(opened: Callable[[], Store]) -> None:
    """Neither a forgotten answer nor one that retention has deleted is found, and its key can be stored again."""
    store, draws = opened(), answers()
    store.admit(an_admission(*draws))
    settle(store, draws)
    store.forget(Erasure(ids=frozenset({"r4"})))
    assert ids(store, context="doc-9") == "53210"
    assert ids(store, metadata=(("turn", "4"),)) == ""
    assert ids(store, words=phrases_of("cats purr")) == "53210"
    assert len(store.find(Query())) == 6
    store.prune(Retention(days=1, failing_days=30, bytes=1 << 30), now=AT + 9 * DAY)
    assert ids(store, context="doc-9") == ids(store, words=phrases_of("cats purr")) == "531"
    store.prune(Retention(days=1, failing_days=1, bytes=1 << 30), now=AT + 9 * DAY)
    assert ids(store) == ids(store, context="doc-9") == ids(store, words=phrases_of("cats purr")) == ""
    store.admit(an_admission(*draws))
    settle(store, draws)
    assert ids(store, context="doc-1") == "41"


def test_hostile_values_find_what_is_stored_and_nothing_else(store: Store) -> None:
    """What a person can type is compared, and is no part of a statement."""
    hostile = "'; DROP TABLE terms; --\0\u202e%_\"}"
    draw = a_draw("r1", contexts=[Context("x", hostile), Context("y", "doc")], metadata={hostile[:20]: hostile})
    store.admit(an_admission(draw, a_draw("r2")))
    settle(store, [draw, a_draw("r2")])
    assert ids(store, context=hostile, top_context=hostile, metadata=((hostile[:20], hostile),)) == "1"
    assert ids(store, context=hostile[:-1]) == ids(store, metadata=((hostile, hostile),)) == ""


TEXTS = (
    ("What is the refund policy?", "A refund takes five days. Gift cards are final."),
    ("Is a gift final?", "Cards: see policy, Straße 5."),
    ("请将所有陈述标记", "Où est l'hôtel? user_name a.b@example.org"),
)


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("refund", "0"),
        ("REFUND policy", "0"),
        ("policy", "10"),
        ('"gift cards"', "0"),
        ('"cards gift"', ""),
        ("cards gift", "10"),
        ('"policy a"', ""),
        ('"final cards"', ""),
        ("strasse", "1"),
        ("陈述", "2"),
        ("述陈", ""),
        ("ou hotel user_name a.b@example.org", "2"),
        ("name_user", ""),
        ("refun", ""),
        ("question OR answer", ""),
    ],
)
def test_answers_are_found_by_words_and_phrases(store: Store, search: str, expected: str) -> None:
    """All words must be in question or answer, a phrase in one of them; the order is that of any search."""
    draws = [a_draw(f"r{number}", at=AT + number, question=q, answer=a) for number, (q, a) in enumerate(TEXTS)]
    store.admit(an_admission(*draws))
    store.settle([a_verdict(draw, an_evidence((1, 0), address=None)) for draw in draws])
    assert ids(store, words=phrases_of(search)) == expected


def test_words_go_with_all_other_filters(filled: Store) -> None:
    """Words narrow a search by metadata, stage and time, and pages of it go on."""
    words = phrases_of('"cats purr"')
    assert ids(filled, words=words) == "543210"
    assert ids(filled, words=words, metadata=(("release", "v1"),), stage="generation", until=AT + 2) == "31"
    assert ids(filled, words=words, since=AT + 1, until=AT + 2) == "32"
    assert ids(filled, words=phrases_of("cats dogs")) == ""
    first = list(filled.entries(Query(words=words, limit=4)))
    place = (first[-1].verdict.at, first[-1].seq)
    assert [ids(filled, words=words, after=place), ids(filled, words=words, context="doc-9", after=place)] == ["10"] * 2


def test_hostile_searches_for_words_are_words(store: Store) -> None:
    """No text that a person can type is an error of the index; a text is found by itself."""
    draw = a_draw("r1", answer=" ".join((*HOSTILE, *SEARCHES))[:3000])
    store.admit(an_admission(draw))
    settle(store, [draw])
    for text in (*HOSTILE, *SEARCHES):
        for phrase in phrases_of(text)[:1]:
            assert ids(store, words=(phrase,)) in ("1", "")
    assert ids(store, words=phrases_of(HOSTILE[0])) == "1"
