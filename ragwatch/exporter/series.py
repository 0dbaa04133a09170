"""Defines a row of the catalogue: a series, its type and the origin of its values.

Gauges and infos are read from a Snapshot or from process telemetry; no value means no sample.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter

from ragwatch.model.quantities import Quantity
from ragwatch.statistics.snapshot import EstimateRow, Gauge, Snapshot
from ragwatch.statistics.tally import Tally
from ragwatch.telemetry import EventCount, GaugeLevel, Telemetry

Labels = tuple[str, ...]
Reading = tuple[Labels, float]
Estimates = Mapping[Quantity, list[EstimateRow]]


@dataclass(frozen=True, slots=True)
class FromSnapshot:
    """Values that are read from a Snapshot, with their labels in order."""

    labels: Labels
    read: Callable[[Snapshot], Iterable[Reading]]


@dataclass(frozen=True, slots=True)
class FromTelemetry:
    """Values that are read from the telemetry of this process, likewise."""

    labels: Labels
    read: Callable[[Telemetry], Iterable[Reading]]


@dataclass(frozen=True, slots=True)
class OfQuantity:
    """Values of one quantity that are read from a Snapshot, likewise."""

    labels: Labels
    read: Callable[[Quantity, Snapshot, Estimates], Iterable[Reading]]


class MetricType(StrEnum):
    """Prometheus metric types in use."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


_BY_SUFFIX = {"total": MetricType.COUNTER, "info": MetricType.INFO}
Origin = Tally | EventCount | GaugeLevel | Gauge | FromSnapshot | FromTelemetry | OfQuantity


@dataclass(frozen=True, slots=True)
class Series:
    """One series of the catalogue."""

    origin: Origin  # where the values come from
    help: str  # HELP text: one sentence that says what is measured, with its unit
    name: str = ""  # name as Prometheus stores it (a histogram's without `_bucket`); empty for that of the origin
    quantity: Quantity | None = None  # the quantity it is about, for the series that every quantity has
    # whether it is exported as 0 for every allowed combination of label values before the first event, so that
    # `increase()` counts the first event
    from_zero: bool = False
    # all values of its label that are neither configured nor quantities; it is exported from zero then, too
    values: type[StrEnum] | None = None
    # whether a histogram is of values that may be negative. Then it has no `_sum`, which would go down, nor `_count`,
    # which OpenMetrics allows beside `_sum` only
    signed: bool = False
    # whether only what the default judge said is exported, as several judges read the same answers
    default_judge: bool = False
    # label names: those of the origin without the bucket, a quantity in the name and an implied judge
    labels: tuple[str, ...] = field(init=False)
    # metric type: what is counted in buckets is a histogram; `_total` and `_info` are said by the name
    kind: MetricType = field(init=False)

    def __post_init__(self) -> None:
        """Derive name, labels and type once: a scrape reads them for every sample."""
        if not self.name:
            counter = isinstance(self.origin, EventCount | Tally) and "bucket" not in self.origin.labels
            object.__setattr__(self, "name", f"ragwatch_{self.origin}{'_total' if counter else ''}")
        implied = {"bucket"} | ({"quantity"} if self.quantity else set()) | ({"judge"} if self.default_judge else set())
        object.__setattr__(self, "labels", tuple(name for name in self.origin.labels if name not in implied))
        object.__setattr__(self, "from_zero", self.from_zero or self.values is not None)
        by_name = _BY_SUFFIX.get(self.name.rpartition("_")[2], MetricType.GAUGE)
        object.__setattr__(self, "kind", MetricType.HISTOGRAM if "bucket" in self.origin.labels else by_name)


def estimates_by_quantity(snapshot: Snapshot) -> Estimates:
    """Groups the rows of estimates by quantity, once for the seven series that read them."""
    rows: dict[Quantity, list[EstimateRow]] = {}
    for row in (*snapshot.estimates, *snapshot.corrected):
        rows.setdefault(row.quantity, []).append(row)
    return rows


def estimated(name: str) -> OfQuantity:
    """Reads an attribute of the estimates of a quantity."""
    read = attrgetter(name)
    return OfQuantity(
        ("quantity", "route", "judge", "window", "corrected"),
        lambda quantity, _, estimates: [
            (
                (row.route, row.judge, row.window, row.reference or ("yes" if row.corrected else "no")),
                read(row.estimate),
            )
            for row in estimates.get(quantity, ())
        ],
    )


LAST_SAMPLE = OfQuantity(
    ("quantity", "route", "judge"),
    lambda quantity, snapshot, _: [
        (tuple(labels), at) for (scored, *labels), at in snapshot.last_sample.items() if scored == quantity
    ],
)


def by_name(label: str, name: str) -> FromSnapshot:
    """Reads a figure of each source, route or judge, an attribute of the Snapshot that maps its name to the figure."""
    read: Callable[[Snapshot], Mapping[str, float]] = attrgetter(name)
    return FromSnapshot((label,), lambda snapshot: [((one,), value) for one, value in read(snapshot).items()])


def lag(name: str) -> FromSnapshot:
    """Reads an attribute of the lags of sources, where it is known."""
    read = attrgetter(name)
    return FromSnapshot(
        ("source",),
        lambda snapshot: [
            ((source,), value) for source, lag in snapshot.lags.items() if (value := read(lag)) is not None
        ],
    )


def per_judge(part: Tally, whole: Tally) -> FromSnapshot:
    """Divides `part` by `whole`, both by (judge, version, ...), for the configured versions of the judges."""

    def read(snapshot: Snapshot) -> Iterator[Reading]:
        for (tally, labels), total in snapshot.tallies.items():
            if tally is whole and total > 0:
                judge, version, *rest = labels
                if snapshot.judges.get(judge, ("", ""))[1] == version:
                    yield (judge, *rest), snapshot.tallies[part, labels] / total

    return FromSnapshot(tuple(label for label in whole.labels if label != "version"), read)


def ranked(measure: str, *labels: str) -> FromSnapshot:
    """Divides the sum of a ranking metric by the number of ranked answers, by route and k."""

    def read(snapshot: Snapshot) -> Iterator[Reading]:
        for (tally, values), total in snapshot.tallies.items():
            if tally is Tally.RANKING_SCORE and values[1] == measure:
                route, _, k = values
                answers = snapshot.tallies[Tally.RANKED, (route,)]
                if answers:
                    yield ((route, k) if k else (route,)), total / answers

    return FromSnapshot(labels, read)


def of_rows(rows: str, labels: Labels, figure: str) -> FromSnapshot:
    """Reads an attribute of every row of a table of the Snapshot; the labels are attributes of the row, too."""
    table, place, read = attrgetter(rows), attrgetter(*labels), attrgetter(figure)
    return FromSnapshot(labels, lambda snapshot: [(tuple(map(str, place(row))), read(row)) for row in table(snapshot)])


def known(name: str) -> FromTelemetry:
    """Reads an attribute of the telemetry, where it is known."""
    read = attrgetter(name)
    return FromTelemetry((), lambda telemetry: [] if (value := read(telemetry)) is None else [((), value)])


_FIGURES = {
    "value": "ratio",
    "low": "ratio_low",
    "high": "ratio_high",
    "bound_low": "ratio_bound_low",
    "bound_high": "ratio_bound_high",
    "coverage": "response_ratio",
    "n": "samples",
    "n_eff": "effective_samples",
}


def of_estimate(of: str, origin: Callable[[str], Origin], texts: Mapping[str, str]) -> Iterator[Series]:
    """Yields the series of the figures of an estimate: `ragwatch_OF_ratio` and so on, with their HELP by figure."""
    for figure, text in texts.items():
        yield Series(origin(figure), text, f"ragwatch_{of}_{_FIGURES[figure]}")


def of_origins(texts: Mapping[Origin, str]) -> Iterator[Series]:
    """Yields series that are named as their origins, with their HELP."""
    return (Series(origin, text) for origin, text in texts.items())
