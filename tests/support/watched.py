"""Scores in a store, for what watches them: faithful and unfaithful answers, one a minute."""

import random
from collections.abc import Sequence
from typing import Any

from ragwatch.model.evidence import Evidence
from ragwatch.model.quantities import Quantity
from ragwatch.pipeline.drift.loop import Standing
from ragwatch.pipeline.drift.rules import DriftRules
from ragwatch.pipeline.drift.scores import ScoreDriftLoop
from ragwatch.ports import LoopContext, Store
from ragwatch.telemetry import Telemetry
from support.kit import AT, JUDGE, Clock, a_draw, a_reading, a_verdict, an_admission, an_evidence

MINUTE = 60.0
GOOD, BAD = an_evidence((1, 0)), an_evidence((0, 0))
RULES = DriftRules(JUDGE, "scripted-1", (Quantity.FAITHFULNESS,), ("search",), reference=300)
CELL = ("faithfulness", "search")


def faithful(good: int, bad: int = 0, *, seed: int = 1) -> list[bool]:
    """Whether answers are faithful: of the first most are, of the later ones a third."""
    rng = random.Random(seed)
    return [rng.random() < (0.95 if index < good else 0.3) for index in range(good + bad)]


def settle(
    store: Store,
    answers: Sequence[bool | Evidence],
    first: int = 0,
    *,
    route: str = "search",
    version: str = "scripted-1",
    probability: float = 1.0,
) -> None:
    """Judge answers (faithful or not, or what a judge says of each): the n-th in minute `first + n`."""
    draws = [
        a_draw(
            f"{route}-{version}-{first + index}", at=AT + MINUTE * (first + index), route=route, probability=probability
        )
        for index in range(len(answers))
    ]
    store.admit(an_admission(*draws))
    reading = a_reading(version=version)
    read = [one if isinstance(one, Evidence) else GOOD if one else BAD for one in answers]
    store.settle([a_verdict(draw, evidence, reading) for draw, evidence in zip(draws, read, strict=True)])


def a_drift(
    store: Store,
    rules: DriftRules = RULES,
    *,
    telemetry: Telemetry | None = None,
    moved: bool = False,
    now: float = AT + 1e6,
    standing: Standing | None = None,
) -> ScoreDriftLoop:
    """A process that has continued what the store remembers, at some instant."""
    loop = ScoreDriftLoop(
        rules, LoopContext(store, telemetry or Telemetry(), Clock(now)), judge_moved=lambda: moved, standing=standing
    )
    loop.resume()
    return loop


async def stepped(store: Store, rules: DriftRules = RULES, **parts: Any) -> ScoreDriftLoop:
    """The same, after one step."""
    loop = a_drift(store, rules, **parts)
    await loop.step()
    return loop


async def watch_answers(loop: ScoreDriftLoop, store: Store, *answers: Any, **parts: Any) -> None:
    """Judge answers as `settle` does, and take one step."""
    settle(store, *answers, **parts)
    await loop.step()
