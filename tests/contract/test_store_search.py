"""The contract of `ports.Store` for searches and lists: filters, words, the worst first, pages, excerpts, texts."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from support.hostile import HOSTILE, SEARCHES
from support.kit import AT, a_claim, a_draw, a_reading, a_verdict, an_admission, an_evidence
from support.stores import DAY, ONE_DAY, admit_and_settle

from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.model.sample import Context, Draw
from ragwatch.ports import Erasure, Query, Store
from ragwatch.statistics.labels.label import Label
from ragwatch.statistics.text.search_words import phrases_of

CATS_PURR = phrases_of('"cats purr"')


def answers(count: int = 6) -> list[Draw]:
    """Answers of two releases, from three documents, two of each second."""
    draws = []
    for number in range(count):
        documents = [Context("Cats purr.", f"doc-{number % 3}", 0.5), Context("Dogs bark.", "doc-9", 0.25)]
        metadata = {"release": f"v{number % 2}", "user": {"tier": "free", "paid": number == 4}, "turn": number}
        draws.append(a_draw(f"r{number}", at=AT + number // 2, contexts=documents, metadata=metadata))
    return draws


def settle(store: Store, draws: list[Draw], judge: str = "embedded") -> None:
    """Admit and judge answers, every second one with a fault."""
    bad = an_evidence(a_claim((0, 0), "contradicted"))
    reading = a_reading(judge)
    admit_and_settle(store, *(a_verdict(each, bad if place % 2 else None, reading) for place, each in enumerate(draws)))


@pytest.fixture
def filled(store: Store) -> Store:
    """A store with these answers."""
    settle(store, answers())
    return store


def ids(store: Store, **filters: Any) -> str:
    """Numbers of the answers that are found, in order."""
    query = Query(**filters)
    rows = store.find(query)
    keys = [row.verdict.key for row in rows]
    assert [row.verdict.key for row in store.summaries(query)] == keys
    assert [(one.verdict.key, one.place["key"]) for one in store.entries(query)] == [(key, key) for key in keys]
    return "".join(str(row.verdict.id)[1:] for row in rows)


FOUND: Sequence[tuple[dict[str, Any], str]] = (
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
    ({"words": CATS_PURR}, "543210"),
    ({"words": phrases_of("cats dogs")}, ""),
    ({"words": CATS_PURR, "metadata": (("release", "v1"),), "stage": "generation", "until": AT + 2}, "31"),
    ({"words": CATS_PURR, "since": AT + 1, "until": AT + 2}, "32"),
)


def test_answers_are_found_by_metadata_contexts_and_words(filled: Store) -> None:
    """Every filter narrows the search, and all of them together; order, bounds and limits are those of any search."""
    for filters, expected in FOUND:
        assert ids(filled, **filters) == expected, filters


def test_pages_neither_skip_nor_repeat(filled: Store) -> None:
    """Answers of the same time and verdicts of two judges are divided over pages by time and sequence number."""
    settle(filled, [replace(draw, key=draw.key[::-1]) for draw in answers()], "other")
    everything = [one.seq for one in filled.entries(Query(context="doc-9"))]
    assert everything == [one.seq for one in filled.entries(Query())]
    for query in (Query(context="doc-9"), Query(words=CATS_PURR), Query(words=CATS_PURR, context="doc-9")):
        seen, asked = list[int](), replace(query, limit=5)
        while page := list(filled.entries(asked)):
            seen += [one.seq for one in page]
            asked = replace(asked, after=(page[-1].verdict.at, page[-1].seq))
        assert (seen, len(seen)) == (everything, 12)


def test_a_search_forgets_with_the_answers(opened: Callable[[], Store]) -> None:
    """Neither a forgotten answer nor one that retention has deleted is found, and its key can be stored again."""
    store, draws = opened(), answers()
    settle(store, draws)
    store.forget(Erasure(ids=frozenset({"r4"})))
    assert ids(store, context="doc-9") == "53210"
    assert ids(store, metadata=(("turn", "4"),)) == ""
    assert ids(store, words=phrases_of("cats purr")) == "53210"
    assert len(store.find(Query())) == 6
    store.prune(replace(ONE_DAY, failing_days=30), now=AT + 9 * DAY)
    assert ids(store, context="doc-9") == ids(store, words=phrases_of("cats purr")) == "531"
    store.prune(ONE_DAY, now=AT + 9 * DAY)
    assert ids(store) == ids(store, context="doc-9") == ids(store, words=phrases_of("cats purr")) == ""
    settle(store, draws)
    assert ids(store, context="doc-1") == "41"


def test_x24_hostile_values_find_nothing_and_change_nothing(store: Store) -> None:
    """What a person can type is compared, and is no part of a statement: as id, route, key, filter and metadata."""
    hostile = "'; DROP TABLE verdicts; --\0\u202e%_\"}"
    contexts = [Context("x", hostile), Context("y", "doc")]
    draw = a_draw(hostile, route=hostile[:26], question=hostile, contexts=contexts, metadata={hostile[:20]: hostile})
    settle(store, [draw, a_draw("r2")])
    rows = store.find(Query(context=hostile, top_context=hostile, metadata=((hostile[:20], hostile),)))
    assert [row.verdict.id for row in rows] == [hostile]
    assert ids(store, context=hostile[:-1]) == ids(store, metadata=((hostile, hostile),)) == ""
    for field in ("key", "route", "judge", "stage", "outcome"):
        assert len(store.find(Query(**{field: hostile[:26]}))) == (field == "route")
    assert (len(store.find(Query())), store.pending()) == (2, {})


TEXTS = (
    ("What is the refund policy?", "A refund takes five days. Gift cards are final."),
    ("Is a gift final?", "Cards: see policy, Straße 5."),
    ("请将所有陈述标记", "Où est l'hôtel? user_name a.b@example.org"),
)


SEARCHED = {
    "refund": "0",
    "REFUND policy": "0",
    "policy": "10",
    '"gift cards"': "0",
    '"cards gift"': "",
    "cards gift": "10",
    '"policy a"': "",
    '"final cards"': "",
    "strasse": "1",
    "陈述": "2",
    "述陈": "",
    "ou hotel user_name a.b@example.org": "2",
    "name_user": "",
    "refun": "",
    "question OR answer": "",
}


def test_answers_are_found_by_words_and_phrases(store: Store) -> None:
    """All words must be in question or answer, a phrase in one of them; the order is that of any search."""
    draws = [a_draw(f"r{number}", at=AT + number, question=q, answer=a) for number, (q, a) in enumerate(TEXTS)]
    admit_and_settle(store, *draws, evidence=an_evidence((1, 0), address=None))
    assert {search: ids(store, words=phrases_of(search)) for search in SEARCHED} == SEARCHED


def test_hostile_searches_for_words_are_words(store: Store) -> None:
    """No text that a person can type is an error of the index; a text is found by itself."""
    draw = a_draw("r1", answer=" ".join((*HOSTILE, *SEARCHES))[:3000])
    settle(store, [draw])
    for text in (*HOSTILE, *SEARCHES):
        for phrase in phrases_of(text)[:1]:
            assert ids(store, words=(phrase,)) in ("1", "")
    assert ids(store, words=phrases_of(HOSTILE[0])) == "1"


FILTERS: Sequence[dict[str, Any]] = (
    {},
    {"judge": "other"},
    {"stage": "generation"},
    {"below": 0.9},
    {"below": 1.5, "above": 0.2},
    {"above": 0.0},
    {"since": AT + 2, "until": AT + 5},
    {"disputed": True},
    {"disputed": False, "labelled": False},
    {"context": "doc-1"},
    {"words": (("cats",),), "above": 0.2},
    {"words": (("cats",),), "context": "doc-1", "judge": "embedded"},
    {"route": "nowhere"},
)


def fill(store: Store) -> None:
    """Fourteen answers, of which a judge reads all and another one every second."""
    draws = answers(14)
    store.admit(an_admission(*draws[::2], judges=("embedded", "other")))
    store.admit(an_admission(*draws[1::2]))
    for judge, read in (("embedded", draws), ("other", draws[::2])):
        for number, draw in enumerate(read):
            cells = [(1, 0)] * (number % 4) + [(0, 0)] * (number % 3)
            claims = [a_claim(cell, None if sum(cell) or number % 5 else "contradicted") for cell in cells]
            store.settle([a_verdict(draw, an_evidence(*claims), a_reading(judge))])


def rows(store: Store, **filters: Any) -> list[tuple[str, str, float]]:
    """Key, judge and score of the verdicts that are found, in order."""
    found_rows = store.find(Query(**filters))
    scores = [(row.verdict.key, row.verdict.judge, row.verdict.scores[filters["quantity"]]) for row in found_rows]
    return [(key, judge, score) for key, judge, score in scores if score is not None]


def check(store: Store) -> int:
    """Compare each search with the same one by time. Returns how many verdicts were found."""
    count = 0
    for quantity in (Quantity.FAITHFULNESS, Quantity.CONTRADICTION, Quantity.NEED_RECALL):
        sign = -1.0 if quantity in LOW_IS_GOOD else 1.0
        for place, search in enumerate(FILTERS):
            newest = rows(store, quantity=quantity, limit=500, **search)
            expected = sorted(newest, key=lambda row: sign * row[2])
            limit = (500, 4)[place % 2]
            assert rows(store, quantity=quantity, worst=True, limit=limit, **search) == expected[:limit], search
            count += len(newest)
    return count


def test_the_worst_scores_come_first_whatever_else_is_asked(store: Store) -> None:
    """In the order of the score, then of time, as many as are asked for; also after some verdicts were deleted."""
    fill(store)
    before = check(store)
    store.forget(Erasure(ids=frozenset({"r4", "r9"}), with_scores=True))
    after = check(store)
    store.prune(replace(ONE_DAY, failing_days=30), now=AT + 9 * DAY)
    assert before > after > check(store) > 0


def test_summaries_hold_figures_and_excerpts_and_entries_whole_texts(store: Store) -> None:
    """A row of a list has the figures of its verdict and the beginning of its texts, and no claim and no context.

    Entries unpack to what `find` returns; whoever needs figures only reads no sample.
    """
    long = "Cats purr. " * 1000
    draws = [a_draw(f"r{number}", at=AT + number, answer=long, question=f"why {number}?") for number in range(3)]
    admit_and_settle(store, *draws)
    found, summaries = store.find(Query()), store.summaries(Query())
    assert [summary.verdict.key for summary in summaries] == [draw.key for draw in reversed(draws)]
    figures = ("id", "at", "route", "judge_name", "outcome", "reason", "stage", "fault", "scores", "probability")
    assert {name: summaries[0].line[name] for name in figures} == {name: found[0].line[name] for name in figures}
    assert "claims" not in summaries[0].line
    assert summaries[0].sample is not None
    assert (summaries[0].sample["question"], len(summaries[0].sample["answer"])) == ("why 2?", 300)
    assert summaries[0].damage is None
    for entry, stored in zip(store.entries(Query()), found, strict=True):
        assert {**json.loads(b"".join(entry.line.pieces())), **entry.place} == stored.line
        assert entry.sample is not None
        assert json.loads(b"".join(entry.sample.pieces())) == stored.sample
    (bare,) = store.find(Query(texts=False, limit=1))
    assert (bare.sample, bare.damage, bare.verdict.id) == (None, None, "r2")


def test_labels_of_one_sample_and_in_pages(store: Store) -> None:
    """Labels of a sample are the newest of it, oldest first; pages of all of them neither repeat nor skip one."""
    labels = [
        Label(key, name, AT + number // 2, {Quantity.FAITHFULNESS: 1.0})
        for number, (key, name) in enumerate([("a", "x"), ("a", "y"), ("b", "x"), ("a", "z"), ("b", "y")])
    ]
    store.add_labels(labels)
    first, last = (label.annotator for label in store.labels_of("a", 2))
    assert (first in ("x", "y"), last) == (True, "z")
    seen: list[tuple[str, str]] = []
    place = None
    while page := store.labels_after(place, 2):
        seen += [(label.key, label.annotator) for label in page]
        place = (page[-1].at, page[-1].key, page[-1].annotator)
    assert sorted(seen) == sorted((label.key, label.annotator) for label in labels)
    assert len(seen) == len(set(seen))
