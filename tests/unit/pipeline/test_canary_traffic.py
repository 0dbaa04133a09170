"""Canary traffic: answers to our own canaries do not count as traffic, and nobody else's answers are hidden as such."""

from __future__ import annotations

import pytest
from support.intakes import an_intake
from support.kit import AT, JUDGE, a_batch, a_line

from ragwatch.core.canary.mark import CanaryMarks
from ragwatch.core.tally import Tally
from ragwatch.stores.sqlite.store import SqliteStore

MARKS = CanaryMarks(b"secret")
MARK = MARKS.mark("refunds", AT)


def drawn(store: SqliteStore) -> list[str]:
    """Ids of what is drawn."""
    return sorted(draw.sample.id for draw in store.lease(JUDGE, 9, now=AT, seconds=0))


async def test_answers_to_our_own_canaries_are_no_traffic(store: SqliteStore) -> None:
    """They are seen and counted as what they are, and enter neither the draw nor any signal."""
    lines = (a_line("a"), a_line("b", metadata={"canary": MARK}), a_line("c", metadata={"tier": "gold"}))
    await an_intake(store, a_batch(*lines), marks=MARKS).step()
    assert drawn(store) == ["a", "c"]
    tallies = store.tallies()
    assert (tallies[Tally.SEEN, ("app",)], tallies[Tally.OF_CANARIES, ("app",)]) == (3, 1)
    assert tallies[Tally.ANSWER_CHARS, ("search", "50.0")] == 2
    assert tallies[Tally.INVALID_MARKS, ("app",)] == 0


@pytest.mark.parametrize("mark", [True, "refunds", MARK[:-1], CanaryMarks(b"guess").mark("refunds", AT), {"x": 1}])
async def test_x26_nobody_else_can_hide_an_answer(store: SqliteStore, mark: object) -> None:
    """A mark without our secret is counted, and its answer drawn and measured as every other."""
    await an_intake(store, a_batch(a_line("a"), a_line("b", metadata={"canary": mark})), marks=MARKS).step()
    assert drawn(store) == ["a", "b"]
    tallies = store.tallies()
    assert (tallies[Tally.OF_CANARIES, ("app",)], tallies[Tally.INVALID_MARKS, ("app",)]) == (0, 1)


async def test_marks_may_be_trusted(store: SqliteStore) -> None:
    """`sampling.trust_canary_mark`, for services that cannot log the header: whatever the record says counts."""
    lines = (a_line("a"), a_line("b", metadata={"canary": True}))
    await an_intake(store, a_batch(*lines), marks=None).step()
    assert drawn(store) == ["a"]
    assert store.tallies()[Tally.OF_CANARIES, ("app",)] == 1


@pytest.mark.parametrize("nobody", [None, "", " ", "-", "None", "null", "False", "0", False, 0, [], {}])
async def test_what_names_no_canary_is_traffic(store: SqliteStore, nobody: object) -> None:
    """A service that logs the header of every request logs nothing, in some spelling, for those of its users."""
    lines = (a_line("a", metadata={"canary": nobody}), a_line("b", metadata={"canary": MARK}))
    await an_intake(store, a_batch(*lines), marks=MARKS).step()
    assert drawn(store) == ["a"]
    tallies = store.tallies()
    assert (tallies[Tally.OF_CANARIES, ("app",)], tallies[Tally.INVALID_MARKS, ("app",)]) == (1, 0)
