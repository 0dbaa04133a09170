"""Drift rules: which scores are watched for drift, and how."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ragwatch.model.quantities import LOW_IS_GOOD, Quantity
from ragwatch.pipeline.drift.streams import ControlStream, ReferenceStream, ScoreStream
from ragwatch.statistics.drift.bands import DayBand, HedgedBand
from ragwatch.statistics.drift.detect import Direction, Unit, threshold_for
from ragwatch.statistics.drift.detectors import KINDS, ControlScheme, TwoSample
from ragwatch.statistics.drift.recovery import EndTest
from ragwatch.statistics.drift.reference import ReferenceScheme
from ragwatch.statistics.segments import Segments

RISK = 0.05
"""Probability that the reference of any detector is not representative, so that the false alarm rate does not hold."""
TOLERANCES: Mapping[Quantity, float] = MappingProxyType(
    {quantity: quantity.row.tolerance for quantity in Quantity if quantity.row.tolerance is not None}
)
"""Smallest change that is told, of quantities that move by a few points without any fault."""
MAX_SEGMENT_DETECTORS = 400
"""Detectors of segments at most: a reference is 1 KB of stored state, and the newest scores are about 50 KB."""
SEGMENT_SHARE = 0.5
"""Share of the false alarms that the detectors of segments have together, if there are any; routes have the rest.

Weights, not e-BH: the promise is about the time until the first false alarm. Rates of false alarms add up to at most
their sum, however detectors depend on each other. e-BH bounds the share of false alarms among those of one instant,
and with one right alarm it lets more false ones through.
"""
Cell = tuple[str, str]  # quantity, route
SegmentCell = tuple[str, str, str, str]  # quantity, route, segment, value


@dataclass(frozen=True, slots=True)
class DriftRules:
    """Which scores are watched, and how."""

    judge: str  # the judge whose scores are watched; those of others are skipped
    version: str  # its version in force: scores of another version are not comparable
    quantities: tuple[Quantity, ...]
    routes: tuple[str, ...]
    detector: str = "betting"  # kind of detector against a reference
    false_alarm_days: float = 30.0  # all detectors together raise one false alarm in so many days, or fewer
    # evidence from which on there is an alarm, for kinds without that guarantee; None to compute it from the days
    threshold: float | None = None
    reference: int = 2000  # scores to learn from, at least
    # change of a mean for the worse that is ignored; less of it where a mean is near its good end
    tolerance: float = 0.02
    # the same for some quantities, wherever their means are
    tolerances: Mapping[Quantity, float] = field(default_factory=lambda: TOLERANCES)
    reference_seconds: float = 0.0  # time to learn for, at least: traffic differs by the hour
    confidence: float = 0.95  # level of the confidence sequence of a day
    # lowest inclusion probability configured, by route; 1 where none is named
    lowest: Mapping[str, float] = field(default_factory=dict)
    # by route, another one that scores are compared with at the same time, instead of a reference
    controls: Mapping[str, str] = field(default_factory=dict)
    # values of metadata keys that are watched on their own, on each route. `other` is not: nobody could tell whose
    # answers changed
    segments: Segments = field(default_factory=Segments)

    @property
    def cells(self) -> tuple[tuple[Quantity, str], ...]:
        """All (quantity, route) that have a detector. A route that is a control has none of its own."""
        controls = set(self.controls.values())
        routes = [route for route in self.routes if route not in controls]
        return tuple((quantity, route) for quantity in self.quantities for route in routes)

    @property
    def alarm_at(self) -> float:
        """Evidence from which on there is an alarm about a route."""
        return self._promised if self.threshold is None else self.threshold

    @property
    def segment_detectors(self) -> int:
        """Number of detectors of segments, or their largest number."""
        pairs = sum(map(len, self.segments.values.values()))
        return min(pairs * len(self.routes) * len(self.quantities), MAX_SEGMENT_DETECTORS)

    @property
    def segment_alarm_at(self) -> float:
        """Evidence from which on there is an alarm about a segment."""
        if self.threshold is not None:
            return self.threshold
        return threshold_for(self.false_alarm_days, self.segment_detectors) / SEGMENT_SHARE

    @property
    def _promised(self) -> float:
        share = 1.0 - SEGMENT_SHARE if self.segment_detectors else 1.0
        return threshold_for(self.false_alarm_days, len(self.cells)) / share

    def scheme(self, quantity: Quantity, route: str, *, segment: bool = False) -> ReferenceScheme:
        """How a quantity on a route, or in a segment of its answers, is compared with its own past."""
        direction, heaviest = _direction(quantity), self._heaviest(route)
        kind, alarm_at = KINDS[self.detector], self.segment_alarm_at if segment else self.alarm_at
        return ReferenceScheme(
            lambda baseline: kind(baseline, alarm_at, direction, heaviest),
            direction,
            scores=self.reference,
            tolerance=self.tolerances.get(quantity, self.tolerance),
            odds=quantity not in self.tolerances,
            max_weight=heaviest,
            unit=Unit.DAYS,
            risk=RISK / (self.segment_detectors if segment else len(self.cells)),
            span=self.reference_seconds,
        )

    def stream(self, quantity: Quantity, route: str, *, segment: bool = False) -> ScoreStream:
        """A new stream; of a segment it is compared with its own past, whether or not its route has a control."""
        control = self.controls.get(route)
        if control is None or segment:
            end = EndTest(self.false_alarm_days, _direction(quantity), self._heaviest(route))
            return ReferenceStream(self.scheme(quantity, route, segment=segment), end)
        heaviest = max(self._heaviest(route), self._heaviest(control))
        # Always betting: it is the only kind that can compare pairs. So the threshold follows from the days.
        scheme = ControlScheme(TwoSample(self._promised, _direction(quantity), heaviest), Unit.DAYS)
        return ControlStream(scheme)

    def segment_cells(self, route: str, segments: Mapping[str, str]) -> Iterator[SegmentCell]:
        """The cells that the scores of an answer with these segments belong to; routes have their own.

        >>> rules = DriftRules("j", "1", (Quantity.FAITHFULNESS,), ("faq",), segments=Segments({"tenant": ("acme",)}))
        >>> [cell[1:] for cell in rules.segment_cells("faq", {"tenant": "acme", "tier": "free"})]
        [('faq', 'tenant', 'acme')]
        >>> list(rules.segment_cells("faq", {"tenant": "other"}))
        []
        """
        for key, value in segments.items():
            if value in self.segments.values.get(key, ()):
                for quantity in self.quantities:
                    yield quantity, route, key, value

    def band(self, route: str) -> DayBand:
        """A new confidence sequence of a day."""
        return DayBand(HedgedBand(1.0 - self.confidence, self._heaviest(route)))

    def readers(self) -> dict[str, list[tuple[Cell, bool]]]:
        """By route: the cells that its scores belong to, and whether as their control."""
        readers: dict[str, list[tuple[Cell, bool]]] = {}
        for quantity, route in self.cells:
            readers.setdefault(route, []).append(((quantity, route), False))
            if (control := self.controls.get(route)) is not None:
                readers.setdefault(control, []).append(((quantity, route), True))
        return readers

    def _heaviest(self, route: str) -> float:
        return 1.0 / self.lowest.get(route, 1.0)


def _direction(quantity: Quantity) -> Direction:
    return Direction.RISE if quantity in LOW_IS_GOOD else Direction.FALL
