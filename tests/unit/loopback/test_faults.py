"""Faults of the loopback server strike where its script says; its latency and its limits are those of the script."""

from __future__ import annotations

import random
from typing import Any

import httpx
import pytest
from loopback.asked import a_request
from loopback.control import Control, Latency
from loopback.faults import KINDS, REFUSALS, Fault, Script
from loopback.process import LoopbackProcess
from loopback.world import World


def test_a_script_strikes_where_it_says() -> None:
    """Path, text, times and those that go by first are heeded; a share is drawn alike from the same seed."""
    busy, page = Fault(kind="overloaded", after=1, times=2), Fault(kind="html", path="/v1/embeddings", match="tea")
    script = Script([busy, page])
    struck = [script.pick("/v1/messages", "") for _ in range(4)]
    assert [fault.kind if fault else None for fault in struck] == [None, "overloaded", "overloaded", None]
    assert script.pick("/v1/embeddings", "milk") is None
    assert script.pick("/v1/embeddings", "green tea") is not None
    faults = [Fault(kind="overloaded", share=0.3)]
    first, second, other = (Script(faults, seed) for seed in (1, 1, 2))
    draws = [[script.pick("/v1/messages", "") is not None for _ in range(1000)] for script in (first, second, other)]
    assert draws[0] == draws[1] != draws[2]
    assert 250 < sum(draws[0]) < 350


def test_unknown_faults_and_keys_are_refused(web: httpx.Client) -> None:
    """A script with a word that nobody knows is not half played."""
    scripts: list[dict[str, Any]] = [{"faults": [{"kind": "boredom"}]}, {"latencies": {}}]
    for script in scripts:
        assert web.post("/control", json=script).status_code == 400
    assert REFUSALS.keys() < KINDS


def test_latency_has_the_mean_it_says() -> None:
    """Lognormal around its mean, the same from the same seed; without a spread always the mean."""
    latency = Latency(mean=1.0, sigma=0.4)
    draws = [latency.draw(random.Random(seed)) for seed in range(4000)]
    assert sum(draws) / len(draws) == pytest.approx(1.0, abs=0.03)
    assert min(draws) > 0
    assert Latency(mean=0.5).draw(random.Random(0)) == 0.5
    again = [World(Control(latency=latency, seed=3)).wait("/v1/messages") for _ in range(2)]
    assert again[0] == again[1]


def test_a_full_bucket_answers_429_and_says_when(web: httpx.Client, loopback: LoopbackProcess) -> None:
    """Each reply tells what is left; without room a call is refused with the seconds to wait."""
    loopback.control(requests_per_minute=2)
    replies = [web.post("/v1/messages", json=a_request()) for _ in range(3)]
    assert [reply.status_code for reply in replies] == [200, 200, 429]
    left = [reply.headers["anthropic-ratelimit-requests-remaining"] for reply in replies]
    assert left == ["1", "0", "0"]
    assert 1 <= int(replies[2].headers["retry-after"]) <= 30
    assert replies[0].headers["anthropic-ratelimit-requests-reset"].endswith("Z")
