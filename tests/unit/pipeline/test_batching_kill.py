"""Batch judging under kill -9: before and after every statement of the store and every call of the provider."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.batched import FULLY, PRICE, Life, Provider, names
from support.callers import failed, said
from support.draws import draws
from support.kit import JUDGE
from support.mortal import KilledError

from ragwatch.statistics.tally import Invariant, Tally, violations

pytestmark = pytest.mark.uncounted

DRAWS = 5


def survive(state: Path, kills: Sequence[int]) -> tuple[Life, int]:
    """Some draws through a life for each kill, and one in peace. Returns the last life, and how many lives were cut."""
    provider = Provider()
    provider.outcomes = {"r03x": [failed("server", "the entry expired"), said(FULLY)]}
    first = Life(state, provider)
    first.admit(*names(DRAWS))
    first.store.close()
    cut = 0
    for instants in (*kills, None):
        life = Life(state, provider)
        provider.fate.left = instants
        with suppress(KilledError):
            asyncio.run(life.work(2 if instants is not None else 3))
        cut += provider.fate.left is not None and provider.fate.left <= 0
        provider.fate.left = None
        if instants is not None:
            life.store.close()
    return life, cut


def check(life: Life) -> None:
    """Every draw has its verdict once, was paid once, and no money is forgotten."""
    assert life.reasons() == dict.fromkeys(names(DRAWS))
    tallies, waiting = life.store.tallies_and_pending()
    assert (tallies[Tally.JUDGED, ("search", JUDGE)], waiting) == (DRAWS, {})
    assert Invariant.ASSIGNED_ARE_SETTLED_OR_PENDING not in violations(tallies, waiting)
    assert life.store.batches(JUDGE) == []
    assert life.provider.entries == DRAWS + 1  # one of them expired, and costs nothing
    assert life.spent().usd >= DRAWS * PRICE - 1e-12
    life.store.close()


@pytest.mark.costly
@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_a_kill_at_any_instant_costs_nothing_twice(step: int) -> None:
    """Killed before or behind every statement and every call, in turn: all draws are judged and paid once."""
    with tempfile.TemporaryDirectory() as folder:
        for instants in range(0, 1000, step):
            life, cut = survive(Path(folder) / str(instants), [instants])
            check(life)
            if not cut:
                break
    assert instants > 40


@pytest.mark.costly
@settings(max_examples=draws(12))
@given(st.lists(st.integers(0, 60), min_size=2, max_size=4))
def test_any_number_of_kills_costs_nothing_twice(kills: list[int]) -> None:
    """Killed again and again."""
    with tempfile.TemporaryDirectory() as folder:
        check(survive(Path(folder), kills)[0])
