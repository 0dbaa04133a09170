"""Families: Snapshot and counts -> metric families of prometheus_client, row by row of the catalogue.

What is unknown has no sample: one NaN silences every alert that compares it. Counters begin at zero only once a
Snapshot hangs: before, the store was not read, and a zero followed by its counts would look like an increase.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from math import isfinite
from types import MappingProxyType

from prometheus_client import Metric
from prometheus_client.samples import Exemplar, Sample

from ragwatch.core import snapshot as seen
from ragwatch.core.snapshot import Gauge
from ragwatch.core.tally import BUCKETS, INF, SUM, Tally, bound_label
from ragwatch.exporter import figures
from ragwatch.exporter.catalogue import CATALOGUE
from ragwatch.exporter.figures import Labels, Reading
from ragwatch.exporter.known import KnownLabels
from ragwatch.exporter.series import GaugeSource, MetricType, Origin, SeriesDefinition
from ragwatch.telemetry import CALL_SECONDS, EventCount, GaugeLevel, Telemetry

Cells = Mapping[Labels, float]
Exemplars = Mapping[tuple[str, str, str, str], seen.Exemplar]

# OpenMetrics allows 128 characters in the names and values of an exemplar's labels. A trace id comes from a log, so
# it is also held to characters that every reader of the format agrees on.
_TRACE_ID = re.compile(r"[!-~]{1,79}")
_SUFFIX: Mapping[MetricType, str] = MappingProxyType({MetricType.COUNTER: "_total", MetricType.INFO: "_info"})
_BOUNDS: Mapping[Origin, tuple[str, ...]] = MappingProxyType(
    {
        **{tally: (*map(bound_label, bounds), INF) for tally, bounds in BUCKETS.items()},
        EventCount.JUDGE_SECONDS: (*map(bound_label, CALL_SECONDS), INF),
    }
)
_TALLIED = tuple((row, row.origin) for row in CATALOGUE if isinstance(row.origin, Tally))
_COUNTED = tuple((row, row.origin) for row in CATALOGUE if isinstance(row.origin, EventCount))
_GAUGED = tuple((row, row.origin) for row in CATALOGUE if isinstance(row.origin, Gauge))
_LEVELS = tuple((row, row.origin) for row in CATALOGUE if isinstance(row.origin, GaugeLevel))
_READ_OFF = tuple((row, row.origin) for row in CATALOGUE if isinstance(row.origin, GaugeSource))
_OF_DEFAULT = frozenset({Tally.STAGE, Tally.FAULT})
_BY_QUANTITY = frozenset(tally for row, tally in _TALLIED if row.quantity is not None)


def family(series: SeriesDefinition) -> Metric:
    """An empty family. Counters and infos go without their suffix here; the encoders put it back."""
    return Metric(series.name.removesuffix(_SUFFIX.get(series.kind, "")), series.help, str(series.kind))


def of_snapshot(snapshot: seen.Snapshot, known: KnownLabels) -> list[Metric]:
    """Families of all that the digest drew."""
    estimates = figures.estimates_by_quantity(snapshot)
    cells: dict[tuple[Tally, str], dict[Labels, float]] = {}
    for (tally, labels), value in snapshot.tallies.items():
        if tally in _BY_QUANTITY:
            cells.setdefault((tally, labels[0]), {})[labels[1:]] = value
        elif tally in _OF_DEFAULT:  # a second judge reads the same answers: their counts do not add up
            if labels[1] == known.default:
                cells.setdefault((tally, ""), {})[labels[0], labels[2]] = value
        else:
            cells.setdefault((tally, ""), {})[labels] = value
    found = []
    for row, figure in _READ_OFF:
        if row.quantity is not None:
            found.append(_plain(row, figures.of_quantity(figure, row.quantity, snapshot, estimates), known))
        elif figure in figures.OF_SNAPSHOT:
            found.append(_plain(row, figures.OF_SNAPSHOT[figure](snapshot), known))
    gauges: dict[Gauge, dict[Labels, float]] = {}
    for (gauge, labels), reading in snapshot.gauges.items():
        gauges.setdefault(gauge, {})[labels] = reading
    found += [_plain(row, gauges.get(gauge, {}).items(), known) for row, gauge in _GAUGED]
    for row, tally in _TALLIED:
        found.append(_summed(row, cells.get((tally, row.quantity or ""), {}), known, snapshot.exemplars))
    return [each for each in found if each.samples]


def of_telemetry(telemetry: Telemetry, known: KnownLabels) -> list[Metric]:
    """Families of our own life."""
    cells: dict[EventCount, dict[Labels, float]] = {}
    for (count, labels), value in telemetry.counts().items():
        cells.setdefault(count, {})[labels] = value
    found = [_summed(row, cells.get(count, {}), known, {}) for row, count in _COUNTED]
    found += [
        _plain(row, figures.OF_TELEMETRY[figure](telemetry), known)
        for row, figure in _READ_OFF
        if figure in figures.OF_TELEMETRY
    ]
    heights: dict[GaugeLevel, dict[Labels, float]] = {}
    for (level, labels), height in telemetry.levels().items():
        heights.setdefault(level, {})[labels] = height
    found += [_plain(row, heights.get(level, {}).items(), known) for row, level in _LEVELS]
    return [each for each in found if each.samples]


def _summed(series: SeriesDefinition, cells: Cells, known: KnownLabels, exemplars: Exemplars) -> Metric:
    if series.kind is MetricType.HISTOGRAM:
        return _histogram(series, cells, known, exemplars)
    if series.from_zero:
        cells = {**dict.fromkeys(known.combinations(series), 0), **cells}
    return _plain(series, cells.items(), known)


def _plain(series: SeriesDefinition, readings: Iterable[Reading], known: KnownLabels) -> Metric:
    made = family(series)
    name, labels, checks = series.name, series.labels, known.checks(series.labels)
    made.samples = [
        Sample(name, dict(zip(labels, values, strict=True)), value)
        for values, value in readings
        if isfinite(value) and all(values[index] in allowed for index, allowed in checks)
    ]
    return made


def _histogram(series: SeriesDefinition, cells: Cells, known: KnownLabels, exemplars: Exemplars) -> Metric:
    made = family(series)
    checks = known.checks(series.labels)
    rows: dict[Labels, dict[str, float]] = {}
    for labels, amount in cells.items():
        rows.setdefault(labels[:-1], {})[labels[-1]] = amount
    for values, row in rows.items():
        if all(values[index] in allowed for index, allowed in checks):
            made.samples.extend(_buckets(series, values, row, exemplars))
    return made


def _buckets(
    series: SeriesDefinition, values: Labels, row: Mapping[str, float], exemplars: Exemplars
) -> Iterator[Sample]:
    """Samples of one histogram: cells are accumulated, the last bucket is the count."""
    labels = dict(zip(series.labels, values, strict=True))
    bounds = _BOUNDS[series.origin]
    totals = list(accumulate(row.get(bound, 0) for bound in bounds))
    for bound, total in zip(bounds, totals, strict=True):
        exemplar = _exemplar(exemplars.get((str(series.quantity), values[0], values[-1], bound)))
        yield Sample(f"{series.name}_bucket", {**labels, "le": bound}, total, None, exemplar)
    yield Sample(f"{series.name}_count", labels, totals[-1])
    if isfinite(row.get(SUM, 0.0)):
        yield Sample(f"{series.name}_sum", labels, row.get(SUM, 0.0))


def _exemplar(shown: seen.Exemplar | None) -> Exemplar | None:
    if shown is None:
        return None
    labels = {"sample_id": shown.key}
    if shown.trace_id is not None and _TRACE_ID.fullmatch(shown.trace_id):
        labels["trace_id"] = shown.trace_id
    return Exemplar(labels, shown.value, shown.at)
