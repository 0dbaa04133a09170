"""The world of a run: its script, its clocks and its memory. A new script makes a new one."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from loopback.batch import Batch
from loopback.control import Control
from loopback.faults import Refusal, Script
from loopback.record import Record
from loopback.tokens import PromptCache
from loopback.wire import Reply, refused

ROOMY = 4_000
"""Requests a minute that headers tell of where there is no limit."""


class Bucket:
    """Requests allowed: a bucket that holds one minute's worth and refills steadily."""

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self.size = per_minute
        self._clock = clock
        self._left = float(per_minute)
        self._at = clock()

    def take(self) -> float:
        """Seconds until there is room for a request; 0 when it was let through."""
        now = self._clock()
        self._left = min(float(self.size), self._left + (now - self._at) * self.size / 60.0)
        self._at = now
        if self._left < 1.0:
            return (1.0 - self._left) * 60.0 / self.size
        self._left -= 1.0
        return 0.0

    @property
    def left(self) -> int:
        """Requests that would be let through now."""
        return int(self._left)

    @property
    def full_in(self) -> float:
        """Seconds until the bucket is full again."""
        return (self.size - self._left) * 60.0 / self.size


class World:
    """Everything that one run remembers.

    Args:
        control: Its script.
        clock: Seconds, for latency, caches and limits.
    """

    def __init__(self, control: Control, clock: Callable[[], float] = time.monotonic) -> None:
        self.control = control
        self.clock = clock
        self.script = Script(control.faults, control.seed)
        self.record = Record()
        self.cache = PromptCache(clock)
        self.batches: dict[str, Batch] = {}
        self.bucket = Bucket(control.requests_per_minute or ROOMY, clock)
        self.began = clock()
        self._made = 0
        self._waits = random.Random(f"{control.seed}/latency")

    def change(self, control: Control) -> None:
        """Go on with another script: what was asked, batches and caches stay."""
        self.control = control
        self.script = Script(control.faults, control.seed)
        self.bucket = Bucket(control.requests_per_minute or ROOMY, self.clock)

    def room_in(self) -> float:
        """Seconds until a call may come; 0 when it may now, and always where the script sets no limit."""
        return self.bucket.take() if self.control.requests_per_minute else 0.0

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def since(self) -> float:
        """Seconds since the run began."""
        return self.clock() - self.began

    def new_id(self, kind: str) -> str:
        """A name nobody has."""
        self._made += 1
        return f"{kind}_{self._made:08d}"

    def wait(self, path: str) -> float:
        """Seconds that the next call of this path takes."""
        latency = self.control.embedding_latency if path == "/v1/embeddings" else self.control.latency
        return latency.draw(self._waits)

    def knows(self, model: Any) -> bool:
        """Whether there is such a model."""
        return isinstance(model, str) and (not self.control.models or model in self.control.models)

    def no_model(self, model: Any, path: str) -> Reply:
        """Status 404."""
        return refused(Refusal(404, "not_found_error", f"model: {model}"), path)
