"""The contract of `ports.Store` about parts that wait for the rest of a sample, and about ids that were received."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from support.kit import AT, a_draw, an_admission

from ragwatch.errors import StoreError
from ragwatch.ports import Admission, Part, Retention, Store

DAY = 86400.0


def holding(*parts: Part, release: tuple[str, ...] = (), received: tuple[str, ...] = (), at: float = AT) -> Admission:
    """An admission that holds and releases parts."""
    return replace(an_admission(), hold=parts, release=release, received=received, at=at)


def part(group: str, name: str = "a", payload: bytes = b"{}") -> Part:
    """A part."""
    return Part(group, name, payload, AT)


def test_parts_wait_until_their_group_is_released(opened: Callable[[], Store]) -> None:
    """Parts come back whole and in order after a restart; released groups do not, and other sources have their own."""
    store = opened()
    parts = [part("t1", "b", bytes(range(256)) * 50), part("t2"), part("t1", "a", b"")]
    store.admit(holding(*parts))
    store.admit(replace(holding(part("t1", "a", b"other")), source="app2"))
    store = opened()
    assert list(store.parts("app")) == parts
    store.admit(holding(part("t3"), release=("t1", "unknown")))
    assert list(opened().parts("app")) == [parts[1], part("t3")]
    assert [one.payload for one in opened().parts("app2")] == [b"other"]


def test_a_part_that_arrives_again_is_ignored(store: Store) -> None:
    """Of parts of one name in one group, the first is kept: a client that retries changes nothing."""
    store.admit(holding(part("t1", payload=b"first")))
    store.admit(holding(part("t1", payload=b"second"), part("t1", payload=b"third")))
    assert [one.payload for one in store.parts("app")] == [b"first"]


def test_parts_that_are_held_and_released_at_once_are_gone(store: Store) -> None:
    """A group whose last parts arrive in the batch that releases it leaves nothing behind."""
    store.admit(holding(part("t1", "a")))
    store.admit(holding(part("t1", "b"), release=("t1",)))
    assert list(store.parts("app")) == []


def test_received_ids_are_recognised_by_source(opened: Callable[[], Store]) -> None:
    """An id is known after its admission, for its source alone, also after a restart."""
    opened().admit(holding(received=("r1", "r2")))
    store = opened()
    assert store.received("app", ["r1", "r2", "r3", "r1"]) == {"r1", "r2"}
    assert store.received("other", ["r1"]) == set()
    assert store.received("app", []) == set()


def test_nothing_is_held_or_received_when_the_admission_fails(opened: Callable[[], Store]) -> None:
    """Parts, ids, draws and cursor are one transaction: a client that was not answered sends all of it again."""
    store = opened()
    bad = replace(
        holding(part("t1"), received=("r1",)), draws=[(replace(a_draw("x"), at="no time"), ())], tallies={("bad",): 1}
    )
    with pytest.raises((StoreError, ValueError, TypeError)):
        store.admit(bad)
    assert (list(store.parts("app")), store.received("app", ["r1"]), store.cursors("app")) == ([], set(), {})


def test_old_ids_and_parts_are_pruned(store: Store) -> None:
    """Ids are remembered for a day, and parts of a source that releases none do not stay for ever."""
    store.admit(holding(part("t1"), received=("old",)))
    store.admit(holding(replace(part("t2"), at=AT + DAY), received=("new",), at=AT + DAY))
    store.prune(Retention(30, 90, 1 << 40), now=AT + DAY + 1)
    assert store.received("app", ["old", "new"]) == {"new"}
    assert [one.group for one in store.parts("app")] == ["t2"]


def test_many_ids_at_once(store: Store) -> None:
    """More ids than one statement can name are looked up."""
    ids = tuple(f"r{number}" for number in range(1500))
    store.admit(holding(received=ids[::2]))
    assert store.received("app", ids) == set(ids[::2])
