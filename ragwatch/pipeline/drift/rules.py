"""Drift rules: what is watched for drift, and how; from configuration to schemes of `core.detect`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ragwatch.core.drift.bands import HedgedBand
from ragwatch.core.drift.day_band import DayBand
from ragwatch.core.drift.detect import Direction, Unit, threshold_for
from ragwatch.core.drift.detectors import KINDS
from ragwatch.core.drift.detectors.betting import TwoSample
from ragwatch.core.drift.detectors.control import ControlScheme
from ragwatch.core.drift.detectors.reference import ReferenceScheme
from ragwatch.core.scores import LOW_IS_GOOD, Quantity
from ragwatch.pipeline.drift.streams import ControlStream, ReferenceStream, Stream

_EQUAL: Mapping[str, float] = MappingProxyType({})
_NO_CONTROLS: Mapping[str, str] = MappingProxyType({})
Cell = tuple[str, str]  # quantity, route


@dataclass(frozen=True, slots=True)
class DriftRules:
    """What is watched, and how.

    Attributes:
        judge: Whose scores; those of others are passed over.
        version: Its version in force: scores of another version mean something else.
        quantities: What is watched.
        routes: Where, as label values.
        detector: Kind of detector against a reference.
        false_alarm_days: All detectors together raise one false alarm in so many days, or fewer.
        threshold: Evidence that is an alarm, for kinds without that guarantee; None for what follows from the days.
        reference: Scores to learn from, at least.
        reference_seconds: Time to learn for, at least: what is ordinary differs by the hour.
        tolerance: What a mean may be worse without anybody being called.
        confidence: With which the band of a day holds at all times of it.
        lowest: Lowest inclusion probability configured, by route; 1 where none is named.
        controls: By route, another one that runs at the same time and is the measure in place of a reference.
    """

    judge: str
    version: str
    quantities: tuple[Quantity, ...]
    routes: tuple[str, ...]
    detector: str = "betting"
    false_alarm_days: float = 30.0
    threshold: float | None = None
    reference: int = 2000
    tolerance: float = 0.02
    reference_seconds: float = 0.0
    confidence: float = 0.95
    lowest: Mapping[str, float] = field(default_factory=lambda: _EQUAL)
    controls: Mapping[str, str] = field(default_factory=lambda: _NO_CONTROLS)

    @property
    def cells(self) -> tuple[tuple[Quantity, str], ...]:
        """All (quantity, route) that have a detector. A route that is a control has none of its own."""
        measures = set(self.controls.values())
        return tuple((each, route) for each in self.quantities for route in self.routes if route not in measures)

    @property
    def alarm_at(self) -> float:
        """Evidence that is an alarm."""
        return threshold_for(self.false_alarm_days, len(self.cells)) if self.threshold is None else self.threshold

    def scheme(self, quantity: Quantity, route: str) -> ReferenceScheme:
        """How a quantity on a route is watched against its own past."""
        direction, heaviest = _direction(quantity), self._heaviest(route)
        kind, alarm_at = KINDS[self.detector], self.alarm_at
        return ReferenceScheme(
            lambda baseline: kind(baseline, alarm_at, direction, heaviest),
            direction,
            scores=self.reference,
            tolerance=self.tolerance,
            max_weight=heaviest,
            unit=Unit.DAYS,
            span=self.reference_seconds,
        )

    def stream(self, quantity: Quantity, route: str) -> Stream:
        """A stream that has seen nothing."""
        control = self.controls.get(route)
        if control is None:
            return ReferenceStream(self.scheme(quantity, route))
        heaviest = max(self._heaviest(route), self._heaviest(control))
        # Betting in any case: of all kinds it alone can be paired. So its threshold follows from the days.
        days = threshold_for(self.false_alarm_days, len(self.cells))
        return ControlStream(ControlScheme(TwoSample(days, _direction(quantity), heaviest), Unit.DAYS))

    def band(self, route: str) -> DayBand:
        """A band of a day that has not begun."""
        return DayBand(HedgedBand(1.0 - self.confidence, self._heaviest(route)))

    def readers(self) -> dict[str, list[tuple[Cell, bool]]]:
        """By route: the cells its scores go to, and whether as their control."""
        found: dict[str, list[tuple[Cell, bool]]] = {}
        for quantity, route in self.cells:
            found.setdefault(route, []).append(((quantity, route), False))
            if (control := self.controls.get(route)) is not None:
                found.setdefault(control, []).append(((quantity, route), True))
        return found

    def _heaviest(self, route: str) -> float:
        return 1.0 / self.lowest.get(route, 1.0)


def _direction(quantity: Quantity) -> Direction:
    return Direction.RISE if quantity in LOW_IS_GOOD else Direction.FALL
