"""Canaries and replies for tests, a line each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ragwatch.core.canary.definition import Canary, Direction, Expected, Failure, Grade, Hit, Retrieved
from ragwatch.core.canary.report import CanaryReport, evaluate
from ragwatch.pipeline.canaries import CanaryLoop, CanarySuite
from ragwatch.ports import Store
from ragwatch.telemetry import Telemetry
from support.kit import AT, Clock


def a_canary(*expected: Any, name: str = "refunds", **parts: Any) -> Canary:
    """A canary that expects these ids (or contexts)."""
    found = tuple(Expected(each) if isinstance(each, str) else each for each in expected)
    return Canary(name, parts.pop("query", f"What about {name}?"), found, **parts)


def a_text(text: str, grade: int = 1) -> Expected:
    """A context expected by its text."""
    return Expected(None, text, Grade(grade))


def a_reply(*ids: str, scores: Any = None, direction: str | None = "similarity", **parts: Any) -> Retrieved:
    """A reply of these ids; scores fall from 0.9 by 0.1 unless given."""
    found = [0.9 - 0.1 * rank for rank in range(len(ids))] if scores is None else scores
    hits = tuple(Hit(name, f"Text of {name}.", score) for name, score in zip(ids, found, strict=True))
    return Retrieved(hits, None if direction is None else Direction(direction), **parts)


def a_failure(reason: str = "timeout") -> Retrieved:
    """A call that brought nothing."""
    return Retrieved(failure=Failure(reason), detail="no reply", seconds=10.0)


def a_report(canary: Canary, retrieved: Retrieved, cutoff: int = 5, **parts: Any) -> CanaryReport:
    """What the reply means."""
    return evaluate(canary, retrieved, cutoff, at=AT, **parts)


def a_canary_loop(
    store: Store,
    *suites: CanarySuite,
    telemetry: Telemetry | None = None,
    clock: Callable[[], float] | None = None,
    holder: str = "me",
    **parts: Any,
) -> CanaryLoop:
    """The loop of some suites."""
    clock = clock or Clock()
    return CanaryLoop(suites, store=store, telemetry=telemetry or Telemetry(), holder=holder, clock=clock, **parts)


def a_suite_of(**place: Any) -> dict[str, Any]:
    """A suite as in the configuration, whose probe nobody answers."""
    probe = {"kind": "http", "url": "http://127.0.0.1:9/", "body": {"q": "{{ query }}"}, "contexts": "hits"}
    items = [{"query": "q", "expected": ["d1"]}]
    return {"suite": "docs", "schedule": "1d", "items": items, "probe": probe, **place}
