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
        self.began = clock()
        self._made = 0
        self._waits = random.Random(f"{control.seed}/latency")

    def change(self, control: Control) -> None:
        """Go on with another script: what was asked, batches and caches stay."""
        self.control = control
        self.script = Script(control.faults, control.seed)

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
