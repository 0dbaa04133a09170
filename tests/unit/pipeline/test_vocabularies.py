"""Vocabularies: learnt once from the first questions, the same after a kill; intake measures with them."""

from __future__ import annotations

import tempfile
from base64 import b64encode
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from zlib import compress

import pytest
from support.elections import Server, WorkerStore
from support.kit import a_batch, a_line
from support.loops import ALL, an_intake
from support.mortal import Fate, KilledError, MortalConnection

from ragwatch.errors import StoreError
from ragwatch.pipeline.vocabularies import KIND, Vocabularies
from ragwatch.statistics.tally import Tallies, Tally
from ragwatch.statistics.text.vocabulary import Vocabulary, learn
from ragwatch.stores.sqlite.store import SqliteStore

ORDINARY = "What do cats do?"
SHORT = b64encode(compress(bytes(8))).decode()


def words(store: SqliteStore, questions: int = 10) -> Vocabularies:
    """A process that has begun."""
    vocabularies = Vocabularies(questions, ("search", "other"), store=store)
    vocabularies.resume()
    return vocabularies


def test_learnt_once_and_left_alone(store: SqliteStore) -> None:
    """Ten questions make a vocabulary; later ones change nothing, nor does a restart or a larger wish."""
    first = words(store)
    first.learn({"search": [ORDINARY] * 6})
    assert (first.meters, first.mark("search")) == ({}, None)
    second = words(store)
    second.learn({"search": [ORDINARY] * 6, "other": ["Why?"]})
    assert second.meters["search"].vocabulary == learn(Vocabulary(), [ORDINARY] * 12)
    mark = second.mark("search")
    second.learn({"search": ["Refund!"] * 9})
    assert words(store, 100).mark("search") == second.mark("search") == mark
    assert second.mark("other") is None


def test_renewed_begins_with_nothing(store: SqliteStore) -> None:
    """Here and after a restart."""
    vocabularies = words(store)
    vocabularies.learn({"search": [ORDINARY] * 10})
    vocabularies.renew("search")
    for same in (vocabularies, words(store)):
        assert same.mark("search") is None
        same.learn({"search": ["Refund!"] * 10})
        assert same.meters["search"].vocabulary == learn(Vocabulary(), ["Refund!"] * 10)
        same.renew("search")


def test_workers_learn_together(store: SqliteStore) -> None:
    """Of workers that share a store, the questions of all count; what is complete is used and dropped by all."""
    server = Server()
    one, two = (Vocabularies(10, ("search",), store=WorkerStore(store, server, name)) for name in "ab")  # type: ignore[arg-type]  # a store
    one.learn({"search": [ORDINARY] * 6})
    two.learn({"search": [ORDINARY] * 6})
    assert two.meters["search"].vocabulary == learn(Vocabulary(), [ORDINARY] * 12)
    assert one.mark("search") is None
    one.learn({"search": ["Refund!"] * 9})
    assert one.mark("search") == two.mark("search")
    two.renew("search")
    one.resume()
    assert one.mark("search") is None
    store.remember(f"{KIND}/search", {"counts": "AAAA"})
    one.learn({"search": [ORDINARY] * 3})
    assert (store.recall(f"{KIND}/search") or {})["questions"] == 3


@pytest.mark.parametrize(
    "kept",
    [
        {},
        {"counts": "AAAA"},
        {"counts": SHORT, "questions": 1},
        {"counts": "?", "questions": 1},
        {"counts": 7, "questions": 1},
    ],
)
def test_what_another_version_kept_is_learnt_anew(store: SqliteStore, kept: dict[str, object]) -> None:
    """State that cannot be understood is no reason to stop."""
    store.remember(f"{KIND}/search", kept)
    vocabularies = words(store)
    vocabularies.learn({"search": [ORDINARY] * 10})
    assert vocabularies.meters["search"].vocabulary.questions == 10


def test_what_cannot_be_kept_is_not_used(tmp_path: Path) -> None:
    """A vocabulary that a restart would not know measures nothing."""
    store = SqliteStore(tmp_path / "state")
    vocabularies = words(store)
    store.close()
    with pytest.raises(StoreError):
        vocabularies.learn({"search": [ORDINARY] * 10})
    assert vocabularies.meters == {}


def lines(first: int, last: int, question: str) -> list[bytes]:
    """Lines of a log."""
    return [a_line(f"r{number}", question=question) for number in range(first, last)]


def read(store: SqliteStore, spans: list[tuple[int, int, str]]) -> tuple[Vocabularies, Tallies]:
    """What intake makes of these batches: vocabularies, and counts of strangeness."""
    vocabularies = words(store)
    batches = [a_batch(*lines(*span), cursor=str(span[1])) for span in spans]
    loop = an_intake(store, *batches, plan=replace(ALL, probability=0.0), vocabularies=vocabularies)
    while loop._step():
        pass
    counted = {place: count for place, count in store.tallies().items() if place[0] is Tally.QUESTION_STRANGENESS}
    return vocabularies, Tallies(counted)


def test_intake_learns_then_measures(store: SqliteStore) -> None:
    """The batch that completes the vocabulary is not measured with it, every one after it is."""
    vocabularies, counted = read(
        store, [(0, 6, ORDINARY), (6, 12, ORDINARY), (12, 14, ORDINARY), (14, 17, "Refund tickets")]
    )
    assert vocabularies.meters["search"].vocabulary.questions == 12
    cells = {labels[1]: count for (_, labels), count in counted.items() if labels[1] != "sum"}
    assert sum(cells.values()) == 5
    assert cells["1.0"] == 3


@pytest.mark.costly
def test_a_kill_never_changes_a_vocabulary_that_was_used() -> None:
    """At each write of a life: what was counted was counted with the vocabulary that the next life reads."""
    measured = []
    for instant in range(40):
        with tempfile.TemporaryDirectory() as folder:
            store, fate = SqliteStore(Path(folder)), Fate()
            store.engine._writer = MortalConnection(store.engine._writer, fate)  # type: ignore[assignment]
            fate.left = instant
            with suppress(KilledError):
                read(store, [(0, 10, ORDINARY), (10, 15, "Refund tickets")])
            store.close()
            store = SqliteStore(Path(folder))
            counted = [place for place in store.tallies() if place[0] is Tally.QUESTION_STRANGENESS]
            measured.append(bool(counted))
            assert not counted or words(store).mark("search") == learn(Vocabulary(), [ORDINARY] * 10).mark, instant
            store.close()
    assert measured == sorted(measured)
    assert (measured[0], measured[-1]) == (False, True)
