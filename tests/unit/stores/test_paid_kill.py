"""Batches under kill -9 at every instant: no draw is lost, none is paid twice, and money is never under-counted."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from support.kit import AT, JUDGE, a_draw, a_verdict, an_admission
from support.mortal import Fate, KilledError, MortalConnection

from ragwatch.core.budget import Cost, SpendingCap
from ragwatch.core.tally import Invariant, violations
from ragwatch.ports import Query
from ragwatch.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.uncounted

NAMES = tuple("abcdefg")
WORST, ACTUAL = 0.25, 0.125
CAP = SpendingCap(86400.0, usd=100.0)


class Provider:
    """Takes batches, and bills each draw when it does. It outlives us."""

    def __init__(self) -> None:
        self.taken: dict[str, list[str]] = {}

    def submit(self, seed: str, keys: list[str], fate: Fate) -> None:
        """Take a batch; the line may go dead before and behind."""
        fate.tick()
        self.taken[seed] = keys
        fate.tick()

    @property
    def billed(self) -> float:
        """What we owe."""
        return ACTUAL * sum(map(len, self.taken.values()))


class Life:
    """A process that sends what waits in batches of three, and collects them."""

    def __init__(self, state: Path, provider: Provider, instants: int | None) -> None:
        self.state, self.provider, self.fate = state, provider, Fate()
        self.store = SqliteStore(state)
        self.store.engine._writer = MortalConnection(self.store.engine._writer, self.fate)  # type: ignore[assignment]
        self.fate.left = instants

    def work(self) -> None:
        """Until nothing is left to do."""
        while self.collect() or self.prepare():
            pass

    def prepare(self) -> bool:
        """Set money aside, put draws aside."""
        draws = self.store.lease(JUDGE, 3, now=AT, seconds=60)
        held = {draw.key: self.store.reserve(JUDGE, Cost(WORST), [CAP], now=AT) for draw in draws}
        if held:
            self.store.prepare_batch(JUDGE, {key: number or 0 for key, number in held.items()}, draws[0].key, now=AT)
        return bool(held)

    def collect(self) -> bool:
        """Send what was not sent, and fetch the replies of what was."""
        for batch in self.store.batches(JUDGE):
            inside = self.store.batched(batch.id)
            if batch.provider_id is None:
                if batch.seed not in self.provider.taken:  # it may have been, in a life before
                    self.provider.submit(batch.seed, [draw.key for draw, _ in inside], self.fate)
                self.store.send_batch(batch.id, f"msgbatch_{batch.seed}")
            for draw, reservation in inside:
                self.store.pay(reservation, Cost(ACTUAL))
                self.store.settle([a_verdict(draw)])
            self.store.close_batch(batch.id)
            return True
        return False

    def die(self) -> None:
        """End as after kill -9: what is in the files stays, to the byte."""
        image = {path: path.read_bytes() for path in self.state.iterdir() if path.is_file()}
        self.fate.left = None
        self.store.close()
        for path, content in image.items():
            path.write_bytes(content)


def check(state: Path, provider: Provider) -> int:
    """What must hold after any kill. Returns the number of draws that wait."""
    store = SqliteStore(state)
    settled = {stored.verdict.id for stored in store.find(Query())}
    waiting = store.pending().get(JUDGE, 0)
    inside = [draw.sample.id for batch in store.batches(JUDGE) for draw, _ in store.batched(batch.id)]
    free = [draw.sample.id for draw in store.lease(JUDGE, 99, now=AT, seconds=1)]
    assert sorted([*settled, *inside, *free]) == sorted(NAMES)
    assert waiting == len(inside) + len(free)
    assert Invariant.ASSIGNED_ARE_SETTLED_OR_PENDING not in violations(*store.tallies_and_pending())
    assert store.spent(JUDGE, 0.0).usd >= provider.billed
    store.close()
    return waiting


@pytest.mark.costly
@pytest.mark.parametrize(
    ("lives", "step"),
    [(1, 3), (2, 5), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((5, 7), (1, 1), (2, 2), (5, 3)))],
)
def test_a_kill_at_any_instant_loses_no_draw_and_no_money(tmp_path: Path, lives: int, step: int) -> None:
    """A life is cut at its n-th statement, for every n, once or several times in a row; the last one finishes."""
    instants, whole = 0, False
    while not whole:
        state, provider = tmp_path / str(instants), Provider()
        store = SqliteStore(state)
        store.admit(an_admission(*(a_draw(name) for name in NAMES)))
        store.close()
        for _ in range(lives):
            life = Life(state, provider, instants)
            with suppress(KilledError):
                life.work()
                whole = life.fate.left != 0
            life.die()
            check(state, provider)
        life = Life(state, provider, None)
        life.work()
        life.store.close()
        assert check(state, provider) == 0
        assert sorted(key for keys in provider.taken.values() for key in keys) == sorted(
            a_draw(name).key for name in NAMES
        )
        instants += step
    assert instants > 30
