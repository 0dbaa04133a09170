"""Converts a Snapshot and process counters to metric families of prometheus_client, one per row of the catalogue.

An unknown value yields no sample, because alerts that compare a NaN never fire. Counters are exported from zero only
once there is a Snapshot: before that the store has not been read, and a zero followed by its counts would look like an
increase.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import accumulate, product
from math import isfinite
from operator import itemgetter
from types import MappingProxyType
from typing import TypeVar

from prometheus_client import Metric
from prometheus_client.samples import Exemplar, Sample

from ragwatch.exporter.catalogue import CATALOGUE, with_criteria
from ragwatch.exporter.series import (
    FromSnapshot,
    FromTelemetry,
    Labels,
    MetricType,
    OfQuantity,
    Origin,
    Reading,
    Series,
    estimates_by_quantity,
)
from ragwatch.model.quantities import Criterion, Quantity
from ragwatch.model.sample import OTHER
from ragwatch.statistics.segments import Segments
from ragwatch.statistics.snapshot import Exemplar as SampleExemplar
from ragwatch.statistics.snapshot import Gauge, Snapshot
from ragwatch.statistics.tally import BUCKETS, INF, SUM, Tally, bound_label
from ragwatch.telemetry import CALL_SECONDS, EventCount, GaugeLevel, Telemetry


class AllowedLabels:
    """Allowed values of the labels `source`, `route`, `judge`, `suite`, and of `segment` with `value`.

    A value that is removed from the configuration is removed from the series as well, even if the store has counts.

    The arguments are what is configured. The route `other` is added, criteria are quantities too, and the first judge
    is the `default`, which series without a judge are about.
    """

    def __init__(
        self,
        *,
        sources: Iterable[str] = (),
        routes: Iterable[str] = (),
        judges: Iterable[str] = (),
        suites: Iterable[str] = (),
        segments: Segments | None = None,
        criteria: tuple[Criterion, ...] = (),
    ) -> None:
        ordered = tuple(judges)
        self.default, self.criteria = next(iter(ordered), ""), criteria
        pairs: frozenset[tuple[str, str]] = frozenset() if segments is None else segments.pairs
        self._options: dict[tuple[str, ...], AbstractSet[object]] = {
            ("source",): frozenset(sources),
            ("route",): frozenset(routes) | {OTHER},
            ("judge",): frozenset(ordered),
            ("suite",): frozenset(suites),
            ("segment",): {key for key, _ in pairs},
            ("segment", "value"): pairs,
        }
        self._listed: dict[str, Iterable[object]] = {
            **{names[0]: options for names, options in self._options.items() if len(names) == 1},
            "value": {value for _, value in pairs},
            "quantity": (*Quantity, *(criterion.name for criterion in criteria)),
        }

    def allows(self, labels: Labels) -> Callable[[Labels], bool]:
        """Returns a test of the values of these labels."""
        checks = [
            (itemgetter(*map(labels.index, names)), options)
            for names, options in self._options.items()
            if set(names).issubset(labels)
        ]
        return lambda values: all(picked(values) in options for picked, options in checks)

    def combinations(self, series: Series) -> Iterator[Labels]:
        """Yields every combination of label values of a series that is exported from zero, allowed or not."""
        return product(*(self._all(series, label) for label in series.labels))

    def _all(self, series: Series, label: str) -> list[str]:
        options = self._listed.get(label, series.values)
        if options is None:
            raise LookupError(f"{series.name}: its row names no values of the label {label}")
        return sorted(map(str, options))


Source = TypeVar("Source", bound=Origin)
Kind = TypeVar("Kind")
Cells = Mapping[Labels, float]
Exemplars = Mapping[tuple[str, str, str, str], SampleExemplar]

# OpenMetrics allows 128 characters in the names and values of an exemplar's labels. A trace id comes from a log, so
# it is also restricted to characters that every parser of the format accepts.
_TRACE_ID = re.compile(r"[!-~]{1,79}")
_SUFFIX: Mapping[MetricType, str] = MappingProxyType({MetricType.COUNTER: "_total", MetricType.INFO: "_info"})
_BOUNDS: Mapping[Origin, tuple[str, ...]] = MappingProxyType(
    {
        **{tally: (*map(bound_label, bounds), INF) for tally, bounds in BUCKETS.items()},
        EventCount.JUDGE_SECONDS: (*map(bound_label, CALL_SECONDS), INF),
    }
)
_OF_DEFAULT_JUDGE = {
    row.origin: row.origin.labels.index("judge")
    for row in CATALOGUE
    if row.default_judge and isinstance(row.origin, Tally)
}
_BY_QUANTITY = frozenset(row.origin for row in CATALOGUE if isinstance(row.origin, Tally) and row.quantity is not None)


@lru_cache(32)
def _rows(kind: type[Source], criteria: tuple[Criterion, ...] = ()) -> tuple[tuple[Series, Source], ...]:
    """Rows whose values come from there, each with its origin."""
    return tuple((row, row.origin) for row in with_criteria(criteria) if isinstance(row.origin, kind))


def family(series: Series) -> Metric:
    """Builds an empty family. Names of counters and infos omit their suffix here; the encoders append it."""
    return Metric(series.name.removesuffix(_SUFFIX.get(series.kind, "")), series.help, str(series.kind))


def of_snapshot(snapshot: Snapshot, allowed: AllowedLabels) -> list[Metric]:
    """Builds the families of a Snapshot."""
    estimates = estimates_by_quantity(snapshot)
    cells: dict[tuple[Tally, str], dict[Labels, float]] = {}
    counted = snapshot.tallies if snapshot.exported is None else snapshot.exported
    for (tally, labels), value in counted.items():
        if tally in _BY_QUANTITY:
            cells.setdefault((tally, labels[0]), {})[labels[1:]] = value
        elif (judge := _OF_DEFAULT_JUDGE.get(tally)) is not None:  # several judges read the same answers: export one
            if labels[judge] == allowed.default:
                cells.setdefault((tally, ""), {})[*labels[:judge], *labels[judge + 1 :]] = value
        else:
            cells.setdefault((tally, ""), {})[labels] = value
    gauges = _by_kind(snapshot.gauges)
    readings = [
        *(
            (row, figure.read(row.quantity, snapshot, estimates))
            for row, figure in _rows(OfQuantity, allowed.criteria)
            if row.quantity is not None
        ),
        *((row, figure.read(snapshot)) for row, figure in _rows(FromSnapshot)),
        *((row, gauges.get(gauge, {}).items()) for row, gauge in _rows(Gauge)),
    ]
    metrics = [_family_of_readings(row, values, allowed) for row, values in readings]
    for row, tally in _rows(Tally, allowed.criteria):
        metrics.append(_family_of_counts(row, cells.get((tally, row.quantity or ""), {}), allowed, snapshot.exemplars))
    return [metric for metric in metrics if metric.samples]


def of_telemetry(telemetry: Telemetry, allowed: AllowedLabels) -> list[Metric]:
    """Builds the families of the process's own counters and levels."""
    cells, levels = _by_kind(telemetry.counts()), _by_kind(telemetry.levels())
    metrics = [_family_of_counts(row, cells.get(count, {}), allowed, {}) for row, count in _rows(EventCount)]
    metrics += [_family_of_readings(row, figure.read(telemetry), allowed) for row, figure in _rows(FromTelemetry)]
    metrics += [_family_of_readings(row, levels.get(level, {}).items(), allowed) for row, level in _rows(GaugeLevel)]
    return [metric for metric in metrics if metric.samples]


def _by_kind(values: Mapping[tuple[Kind, Labels], float]) -> dict[Kind, dict[Labels, float]]:
    by_kind: dict[Kind, dict[Labels, float]] = {}
    for (kind, labels), value in values.items():
        by_kind.setdefault(kind, {})[labels] = value
    return by_kind


def _family_of_counts(series: Series, cells: Cells, allowed: AllowedLabels, exemplars: Exemplars) -> Metric:
    if series.kind is MetricType.HISTOGRAM:
        return _histogram(series, cells, allowed, exemplars)
    if series.from_zero:
        cells = {**dict.fromkeys(allowed.combinations(series), 0), **cells}
    return _family_of_readings(series, cells.items(), allowed)


def _family_of_readings(series: Series, readings: Iterable[Reading], allowed: AllowedLabels) -> Metric:
    metric = family(series)
    name, labels, is_allowed = series.name, series.labels, allowed.allows(series.labels)
    metric.samples = [
        Sample(name, dict(zip(labels, values, strict=True)), value)
        for values, value in readings
        if isfinite(value) and is_allowed(values)
    ]
    return metric


def _histogram(series: Series, cells: Cells, allowed: AllowedLabels, exemplars: Exemplars) -> Metric:
    metric = family(series)
    is_allowed = allowed.allows(series.labels)
    rows: dict[Labels, dict[str, float]] = {}
    for labels, amount in cells.items():
        rows.setdefault(labels[:-1], {})[labels[-1]] = amount
    for values, row in rows.items():
        if is_allowed(values):
            metric.samples.extend(_buckets(series, values, row, exemplars))
    return metric


def _buckets(series: Series, values: Labels, row: Mapping[str, float], exemplars: Exemplars) -> Iterator[Sample]:
    """Builds the samples of one histogram: cells are accumulated, the last bucket is the count.

    OpenMetrics allows `_count` and `_sum` only together, and a `_sum` that never goes down.
    """
    labels = dict(zip(series.labels, values, strict=True))
    bounds = _BOUNDS[series.origin]
    totals = list(accumulate(row.get(bound, 0) for bound in bounds))
    for bound, total in zip(bounds, totals, strict=True):
        exemplar = _exemplar(exemplars.get((str(series.quantity), values[0], values[-1], bound)))
        yield Sample(f"{series.name}_bucket", {**labels, "le": bound}, total, None, exemplar)
    if not series.signed and isfinite(row.get(SUM, 0.0)):
        yield Sample(f"{series.name}_count", labels, totals[-1])
        yield Sample(f"{series.name}_sum", labels, row.get(SUM, 0.0))


def _exemplar(exemplar: SampleExemplar | None) -> Exemplar | None:
    if exemplar is None:
        return None
    labels = {"sample_id": exemplar.key}
    if exemplar.trace_id is not None and _TRACE_ID.fullmatch(exemplar.trace_id):
        labels["trace_id"] = exemplar.trace_id
    return Exemplar(labels, exemplar.value, exemplar.at)
