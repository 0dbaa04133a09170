"""The intake of scripted batches: by default everything is drawn for one judge, and kept as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ragwatch.core.sample import Sample
from ragwatch.core.sampling import SamplingPlan
from ragwatch.formats import canonical
from ragwatch.pipeline.intake import IntakeLoop, IntakeRules
from ragwatch.ports import Batch, Source, Store
from ragwatch.telemetry import Telemetry
from support.kit import AT, JUDGE, Clock, ListSource

ALL = SamplingPlan(1.0, known_routes=frozenset({"search", "support"}))
_OF_LOOP = ("parse", "expand", "rescue")


def an_intake(
    store: Store,
    *batches: Batch,
    source: Source | None = None,
    read: Callable[[Mapping[str, object], str], Sample] = canonical.read,
    telemetry: Telemetry | None = None,
    clock: Callable[[], float] | None = None,
    **parts: Any,
) -> Any:
    """The intake of some batches, or of a source; `parts` are those of the loop or of its rules."""
    given = {name: parts.pop(name) for name in _OF_LOOP if name in parts}
    rules = IntakeRules(**{"plan": ALL, "judges": {JUDGE: 1.0}, "redactor": None, "max_pending": 1000, **parts})
    loop: Any = IntakeLoop(
        source or ListSource(batches),
        read,
        rules,
        store=store,
        telemetry=telemetry or Telemetry(),
        clock=clock or Clock(AT),
        **given,
    )
    return loop


async def take_all(intake: IntakeLoop) -> None:
    """Step until nothing is left to read."""
    while await intake.step():
        pass
