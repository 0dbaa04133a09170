"""Defines a row of the catalogue: a series, its type and the origin of its values."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from ragwatch.exporter.figures import FromSnapshot, FromTelemetry, OfQuantity
from ragwatch.model.quantities import Quantity
from ragwatch.statistics.snapshot import Gauge
from ragwatch.statistics.tally import Tally
from ragwatch.telemetry import EventCount, GaugeLevel


class MetricType(StrEnum):
    """Prometheus metric types in use."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


_BY_SUFFIX = {"total": MetricType.COUNTER, "info": MetricType.INFO}
Origin = Tally | EventCount | GaugeLevel | Gauge | FromSnapshot | FromTelemetry | OfQuantity


@dataclass(frozen=True, slots=True)
class SeriesDefinition:
    """One series of the catalogue.

    Attributes:
        origin: Where the values come from.
        help: HELP text: one sentence that says what is measured, with its unit.
        name: Name as Prometheus stores it (a histogram's without `_bucket`); empty for that of the origin.
        quantity: The quantity it is about, for the series that every quantity has.
        from_zero: Whether it is exported as 0 for every allowed combination of label values before the first event, so
            that `increase()` counts the first event.
        values: All values of its label that are neither configured nor quantities, if it is exported from zero.
        signed: Whether a histogram is of values that may be negative. Then it has no `_sum`, which would go down, nor
            `_count`, which OpenMetrics allows beside `_sum` only.
        default_judge: Whether only what the default judge said is exported, as several judges read the same answers.
        labels: Label names: those of the origin without the bucket, a quantity in the name and an implied judge.
        kind: Metric type: what is counted in buckets is a histogram; `_total` and `_info` are said by the name.
    """

    origin: Origin
    help: str
    name: str = ""
    quantity: Quantity | None = None
    from_zero: bool = False
    values: type[StrEnum] | None = None
    signed: bool = False
    default_judge: bool = False
    labels: tuple[str, ...] = field(init=False)
    kind: MetricType = field(init=False)

    def __post_init__(self) -> None:
        """Derive name, labels and type once: a scrape reads them for every sample."""
        if not self.name:
            counter = isinstance(self.origin, EventCount) and "bucket" not in self.origin.labels
            object.__setattr__(self, "name", f"ragwatch_{self.origin}{'_total' if counter else ''}")
        implied = {"bucket"} | ({"quantity"} if self.quantity else set()) | ({"judge"} if self.default_judge else set())
        object.__setattr__(self, "labels", tuple(name for name in self.origin.labels if name not in implied))
        by_name = _BY_SUFFIX.get(self.name.rpartition("_")[2], MetricType.GAUGE)
        object.__setattr__(self, "kind", MetricType.HISTOGRAM if "bucket" in self.origin.labels else by_name)
