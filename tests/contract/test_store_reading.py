"""The contract of `ports.Store` for those who read lists: figures and excerpts, whole texts one by one, damage told."""

from __future__ import annotations

import json

from support.kit import AT, a_draw, a_verdict, an_admission

from ragwatch.core.labels.label import Label
from ragwatch.model.quantities import Quantity
from ragwatch.ports import PackedVerdict, Query, Store

LONG = "Cats purr. " * 1000


def filled(store: Store, count: int = 3) -> list[str]:
    """Settle some verdicts; their keys, the newest first."""
    draws = [a_draw(f"r{number}", at=AT + number, answer=LONG, question=f"why {number}?") for number in range(count)]
    store.admit(an_admission(*draws))
    store.settle([a_verdict(draw) for draw in draws])
    return [draw.key for draw in reversed(draws)]


def ids(entries: list[PackedVerdict]) -> list[str]:
    """Ids of the samples, in order."""
    return [json.loads(b"".join(entry.line.pieces()))["id"] for entry in entries]


def test_summaries_hold_figures_and_excerpts(store: Store) -> None:
    """A row of a list has the figures of its verdict and the beginning of its texts, and no claim and no context."""
    keys = filled(store)
    summaries = store.summaries(Query())
    assert [summary.verdict.key for summary in summaries] == keys
    whole = store.find(Query())[0].line
    figures = ("id", "at", "route", "judge_name", "outcome", "reason", "stage", "fault", "scores", "probability")
    assert {name: summaries[0].line[name] for name in figures} == {name: whole[name] for name in figures}
    assert "claims" not in summaries[0].line
    assert summaries[0].sample is not None
    assert (summaries[0].sample["question"], len(summaries[0].sample["answer"])) == ("why 2?", 300)
    assert summaries[0].damage is None


def test_summaries_are_searched_as_whole_verdicts_are(store: Store) -> None:
    """The same query finds the same verdicts, whichever way they are read."""
    filled(store)
    for query in (
        Query(limit=1),
        Query(quantity=Quantity.FAITHFULNESS, above=0.5),
        Query(stage="none"),
        Query(until=AT),
    ):
        keys = [stored.verdict.key for stored in store.find(query)]
        assert [stored.verdict.key for stored in store.summaries(query)] == keys
        assert [(entry.verdict.key, entry.place["key"]) for entry in store.entries(query)] == list(
            zip(keys, keys, strict=True)
        )


def test_entries_hold_whole_texts(store: Store) -> None:
    """Entries unpack to what `find` returns."""
    filled(store)
    for entry, stored in zip(store.entries(Query()), store.find(Query()), strict=True):
        assert {**json.loads(b"".join(entry.line.pieces())), **entry.place} == stored.line
        assert entry.sample is not None
        assert json.loads(b"".join(entry.sample.pieces())) == stored.sample


def test_a_page_goes_on_behind_the_one_before(store: Store) -> None:
    """`after` neither repeats nor skips one, also among verdicts of one instant."""
    draws = [a_draw(f"r{number}") for number in range(5)]
    store.admit(an_admission(*draws))
    store.settle([a_verdict(draw) for draw in draws])
    seen: list[str] = []
    after = None
    while page := list(store.entries(Query(limit=2, after=after))):
        seen += ids(page)
        after = (float(page[-1].place["at"]), page[-1].seq)
    assert sorted(seen) == [f"r{number}" for number in range(5)]


def test_texts_can_be_left_unread(store: Store) -> None:
    """Whoever needs figures only reads no sample."""
    filled(store, 1)
    (stored,) = store.find(Query(texts=False))
    assert (stored.sample, stored.damage, stored.verdict.id) == (None, None, "r0")


def test_labels_of_one_sample_and_in_pages(store: Store) -> None:
    """Labels of a sample are the newest of it, oldest first; pages of all of them neither repeat nor skip one."""
    labels = [
        Label(key, name, AT + number // 2, {Quantity.FAITHFULNESS: 1.0})
        for number, (key, name) in enumerate([("a", "x"), ("a", "y"), ("b", "x"), ("a", "z"), ("b", "y")])
    ]
    store.add_labels(labels)
    assert [label.annotator for label in store.labels_of("a", 2)] == ["y", "z"] or [
        label.annotator for label in store.labels_of("a", 2)
    ] == ["x", "z"]
    seen: list[tuple[str, str]] = []
    place = None
    while page := store.labels_after(place, 2):
        seen += [(label.key, label.annotator) for label in page]
        place = (page[-1].at, page[-1].key, page[-1].annotator)
    assert sorted(seen) == sorted((label.key, label.annotator) for label in labels)
    assert len(seen) == len(set(seen))


def test_a_new_store_has_met_no_damage(store: Store) -> None:
    """Nothing is damaged before something was."""
    filled(store, 1)
    assert (store.damaged(), len(store.summaries(Query()))) == (0, 1)
