"""The script of a run, as it is posted to /control. Every field has a default: `{}` is a server without faults."""

from __future__ import annotations

import math
import random

from pydantic import BaseModel, ConfigDict, Field

from loopback.faults import Fault


class Latency(BaseModel):
    """Seconds a call takes: `mean` alone always, with `sigma` lognormal around it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mean: float = 0.0
    sigma: float = 0.0

    def draw(self, rng: random.Random) -> float:
        """Seconds of one call."""
        if self.mean <= 0.0 or self.sigma <= 0.0:
            return self.mean
        return rng.lognormvariate(math.log(self.mean) - self.sigma**2 / 2, self.sigma)


class BatchRules(BaseModel):
    """When a batch ends, and how: after so many looks at it and seconds; `shuffled` results come in another order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    polls: int = 1
    seconds: float = 0.0
    shuffled: bool = True


class Control(BaseModel):
    """A run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    faults: tuple[Fault, ...] = ()  # what goes wrong; the first that strikes a call happens to it
    seed: int = 0  # of shares, latencies and the order of results
    latency: Latency = Latency()  # of Messages and chat calls
    embedding_latency: Latency = Latency()  # of embeddings
    # tokens of thought before each Messages reply, unless the request turns thinking off
    thinking: int = Field(default=0, ge=0)
    # `response_format` types the chat endpoint takes; others get 400
    formats: frozenset[str] = frozenset({"json_schema", "json_object", "text"})
    heeds_schema: bool = True  # false plays a server that takes a JSON schema and does not hold itself to it
    models: frozenset[str] = frozenset()  # names that exist; empty means any
    batch: BatchRules = BatchRules()  # of Message Batches
    facts: bool = False  # the model reports the facts of a line one by one where only some of them are supported
