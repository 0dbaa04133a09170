"""Converts a Snapshot and process counters to metric families of prometheus_client, one per row of the catalogue.

An unknown value yields no sample, because alerts that compare a NaN never fire. Counters are exported from zero only
once there is a Snapshot: before that the store has not been read, and a zero followed by its counts would look like an
increase.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import accumulate
from math import isfinite
from types import MappingProxyType

from prometheus_client import Metric
from prometheus_client.samples import Exemplar, Sample

from ragwatch.core.criteria import Criterion
from ragwatch.core.snapshot import Exemplar as SampleExemplar
from ragwatch.core.snapshot import Gauge, Snapshot
from ragwatch.core.tally import BUCKETS, INF, SUM, Tally, bound_label
from ragwatch.exporter import figures
from ragwatch.exporter.allowed_labels import AllowedLabels
from ragwatch.exporter.catalogue import CATALOGUE, with_criteria
from ragwatch.exporter.figures import Labels, Reading
from ragwatch.exporter.series import GaugeSource, MetricType, Origin, SeriesDefinition
from ragwatch.telemetry import CALL_SECONDS, EventCount, GaugeLevel, Telemetry

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
_FROM_EVENT_COUNT = tuple((row, row.origin) for row in CATALOGUE if isinstance(row.origin, EventCount))
_FROM_GAUGE = tuple((row, row.origin) for row in CATALOGUE if isinstance(row.origin, Gauge))
_FROM_LEVEL = tuple((row, row.origin) for row in CATALOGUE if isinstance(row.origin, GaugeLevel))
_FROM_GAUGE_SOURCE = tuple((row, row.origin) for row in CATALOGUE if isinstance(row.origin, GaugeSource))
_OF_DEFAULT_JUDGE = {
    row.origin: row.origin.labels.index("judge")
    for row in CATALOGUE
    if row.default_judge and isinstance(row.origin, Tally)
}
_BY_QUANTITY = frozenset(row.origin for row in CATALOGUE if isinstance(row.origin, Tally) and row.quantity is not None)


@lru_cache(16)
def _rows(
    criteria: tuple[Criterion, ...],
) -> tuple[tuple[tuple[SeriesDefinition, GaugeSource], ...], tuple[tuple[SeriesDefinition, Tally], ...]]:
    """Rows of gauges and of counters, each with its origin."""
    rows = with_criteria(criteria)
    return (
        tuple((row, row.origin) for row in rows if isinstance(row.origin, GaugeSource)),
        tuple((row, row.origin) for row in rows if isinstance(row.origin, Tally)),
    )


def family(series: SeriesDefinition) -> Metric:
    """Builds an empty family. Names of counters and infos omit their suffix here; the encoders append it."""
    return Metric(series.name.removesuffix(_SUFFIX.get(series.kind, "")), series.help, str(series.kind))


def of_snapshot(snapshot: Snapshot, allowed: AllowedLabels) -> list[Metric]:
    """Builds the families of a Snapshot."""
    gauge_rows, tally_rows = _rows(allowed.criteria)
    estimates = figures.estimates_by_quantity(snapshot)
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
    metrics = []
    for row, figure in gauge_rows:
        if row.quantity is not None:
            metrics.append(
                _family_of_readings(row, figures.of_quantity(figure, row.quantity, snapshot, estimates), allowed)
            )
        elif figure in figures.OF_SNAPSHOT:
            metrics.append(_family_of_readings(row, figures.OF_SNAPSHOT[figure](snapshot), allowed))
    gauges: dict[Gauge, dict[Labels, float]] = {}
    for (gauge, labels), reading in snapshot.gauges.items():
        gauges.setdefault(gauge, {})[labels] = reading
    metrics += [_family_of_readings(row, gauges.get(gauge, {}).items(), allowed) for row, gauge in _FROM_GAUGE]
    for row, tally in tally_rows:
        metrics.append(_family_of_counts(row, cells.get((tally, row.quantity or ""), {}), allowed, snapshot.exemplars))
    return [metric for metric in metrics if metric.samples]


def of_telemetry(telemetry: Telemetry, allowed: AllowedLabels) -> list[Metric]:
    """Builds the families of the process's own counters and levels."""
    cells: dict[EventCount, dict[Labels, float]] = {}
    for (count, labels), value in telemetry.counts().items():
        cells.setdefault(count, {})[labels] = value
    metrics = [_family_of_counts(row, cells.get(count, {}), allowed, {}) for row, count in _FROM_EVENT_COUNT]
    metrics += [
        _family_of_readings(row, figures.OF_TELEMETRY[figure](telemetry), allowed)
        for row, figure in _FROM_GAUGE_SOURCE
        if figure in figures.OF_TELEMETRY
    ]
    levels: dict[GaugeLevel, dict[Labels, float]] = {}
    for (level, labels), value in telemetry.levels().items():
        levels.setdefault(level, {})[labels] = value
    metrics += [_family_of_readings(row, levels.get(level, {}).items(), allowed) for row, level in _FROM_LEVEL]
    return [metric for metric in metrics if metric.samples]


def _family_of_counts(series: SeriesDefinition, cells: Cells, allowed: AllowedLabels, exemplars: Exemplars) -> Metric:
    if series.kind is MetricType.HISTOGRAM:
        return _histogram(series, cells, allowed, exemplars)
    if series.from_zero:
        cells = {**dict.fromkeys(allowed.combinations(series), 0), **cells}
    return _family_of_readings(series, cells.items(), allowed)


def _family_of_readings(series: SeriesDefinition, readings: Iterable[Reading], allowed: AllowedLabels) -> Metric:
    metric = family(series)
    name, labels, checks = series.name, series.labels, allowed.checks(series.labels)
    metric.samples = [
        Sample(name, dict(zip(labels, values, strict=True)), value)
        for values, value in readings
        if isfinite(value) and all(picked(values) in options for picked, options in checks)
    ]
    return metric


def _histogram(series: SeriesDefinition, cells: Cells, allowed: AllowedLabels, exemplars: Exemplars) -> Metric:
    metric = family(series)
    checks = allowed.checks(series.labels)
    rows: dict[Labels, dict[str, float]] = {}
    for labels, amount in cells.items():
        rows.setdefault(labels[:-1], {})[labels[-1]] = amount
    for values, row in rows.items():
        if all(picked(values) in options for picked, options in checks):
            metric.samples.extend(_buckets(series, values, row, exemplars))
    return metric


def _buckets(
    series: SeriesDefinition, values: Labels, row: Mapping[str, float], exemplars: Exemplars
) -> Iterator[Sample]:
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
