"""The check of the store, which readiness follows."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from support.patience import DEADLINE

from ragwatch.daemon.loops import StoreCheck
from ragwatch.errors import StoreError


class HangingStore:
    """A store that answers once it may."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        self.asked = 0

    def last_events(self, _: float) -> dict[str, float]:
        """Wait."""
        self.asked += 1
        assert self.may_answer.wait(DEADLINE)
        return {}


async def test_a_store_that_does_not_answer_fails_until_it_does() -> None:
    """It is asked once meanwhile, and again once it has answered."""
    store: Any = HangingStore()
    check = StoreCheck(store, lambda: 0.0, seconds=0.05)
    for _ in range(3):
        with pytest.raises(StoreError, match=r"^store: does not answer within 0\.05 s"):
            await check.step()
    assert store.asked == 1
    store.may_answer.set()
    patient = StoreCheck(store, lambda: 0.0, seconds=DEADLINE)
    assert await patient.step() is False
    assert store.asked == 2
