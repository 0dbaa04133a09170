"""The catalogue follows Prometheus naming conventions that promtool does not check."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ragwatch.core.snapshot import Gauge
from ragwatch.core.tally import Tally
from ragwatch.exporter.catalogue import CATALOGUE, MetricType, SeriesDefinition, markdown
from ragwatch.exporter.figures import by_name
from ragwatch.exporter.series import Origin
from ragwatch.model.quantities import Quantity
from ragwatch.telemetry import EventCount, GaugeLevel

PROBABILITY = by_name("route", "probabilities")
# What a number is measured in: a base unit, or the plural of what is counted.
UNITS = frozenset(
    {
        "total",
        "counters",
        "ratio",
        "low",
        "high",
        "seconds",
        "bytes",
        "info",
        "samples",
        "records",
        "score",
        "contexts",
        "age",  # in days, as its HELP says: promtool wants no other unit of time than seconds
        "detectors",
        "files",
        "chars",
        "probability",
        "successful",
        "pending",
        "success",
        "degraded",
        "evidence",
        "threshold",
        "alarm",
        "open",
        "paused",
        "fallback",
        "leader",
        "labels",
        "annotators",
        "rows",
    }
)
BAD_WORDS = frozenset({"percent", "percentage", "milliseconds", "ms", "minutes", "hours", "kilobytes", "kb", "count"})
TARGET_LABELS = frozenset({"type", "service", "env", "environment", "cluster", "region", "zone", "owner", "instance"})


def faults(series: SeriesDefinition) -> list[str]:
    """What is wrong with a row, in words."""
    words = series.name.split("_")
    faults = []
    if not re.fullmatch(r"ragwatch(_[a-z0-9]+)+", series.name):
        faults.append("form")
    if BAD_WORDS & set(words) or words[-1] not in UNITS:
        faults.append("unit")
    if "by" in words:
        faults.append("by")
    counted = isinstance(series.origin, EventCount | Tally) and series.origin is not Tally.UNKNOWN_COUNTERS
    if counted != (words[-1] == "total" or series.kind is MetricType.HISTOGRAM):
        faults.append("total")
    named = {
        label
        for label in series.labels
        if label in words
        and label not in ("judge", "stage", "fault", "source", "canary", "category", "limit", "segment")
    }
    if named or any(f"_{label}_{label}" in series.name for label in series.labels):
        faults.append("label in name")
    if TARGET_LABELS & set(series.labels):
        faults.append("target label")
    if not series.help.endswith(".") or "\n" in series.help or "{" in series.help:
        faults.append("help")
    return faults


@pytest.mark.costly
@pytest.mark.parametrize("series", CATALOGUE, ids=lambda series: series.name)
def test_every_row_keeps_the_conventions(series: SeriesDefinition) -> None:
    """Names have a unit and no label, counters end in _total, and HELP is one sentence."""
    assert faults(series) == []


@pytest.mark.parametrize(
    ("name", "origin", "fault"),
    [
        ("ragwatch_answers_percent", PROBABILITY, "unit"),
        ("ragwatch_faithfulness", PROBABILITY, "unit"),
        ("ragwatch_lag_milliseconds", PROBABILITY, "unit"),
        ("ragwatch_samples_by_route_total", Tally.DRAWN, "by"),
        ("ragwatch_route_samples_total", Tally.DRAWN, "label in name"),
        ("ragwatch_answers_seen_seconds", Tally.DRAWN, "total"),
        ("ragwatch_answers_total", PROBABILITY, "total"),
        ("ragwatch_Answers_total", Tally.DRAWN, "form"),
    ],
)
def test_the_lint_catches(name: str, origin: Origin, fault: str) -> None:
    """A lint that passes everything would prove nothing."""
    assert fault in faults(replace(CATALOGUE[0], name=name, origin=origin))


def test_names_are_unique_with_their_suffixes() -> None:
    """No series collides with another one, nor with the parts of a histogram."""
    names = []
    for series in CATALOGUE:
        names.append(series.name)
        if series.kind is MetricType.HISTOGRAM:
            names += [series.name + suffix for suffix in ("_bucket", "_sum", "_count")]
    assert len(names) == len(set(names))


def test_every_quantity_has_the_same_series() -> None:
    """Each quantity contributes the fourteen series of the contract."""
    for quantity in Quantity:
        promised = {
            series.name.removeprefix(f"ragwatch_{quantity}_") for series in CATALOGUE if series.quantity is quantity
        }
        assert promised == {
            "ratio",
            "ratio_low",
            "ratio_high",
            "ratio_bound_low",
            "ratio_bound_high",
            "samples",
            "effective_samples",
            "last_sample_timestamp_seconds",
            "weight_total",
            "weighted_score_total",
            "squared_weight_total",
            "squared_weight_score_total",
            "squared_weight_squared_score_total",
            "score",
        }


def test_everything_that_is_counted_has_a_series() -> None:
    """No tally, count or gauge is kept in vain. The number of scores is the count of their histogram."""
    origins = {series.origin for series in CATALOGUE}
    assert {*Tally, *EventCount, *GaugeLevel, *Gauge} - origins == {Tally.N}


def test_the_table_names_every_series_once() -> None:
    """The table of the reference has one row a series, with Q for the quantity."""
    names = re.findall(r"^\| `(ragwatch_\w+)`", markdown(), flags=re.MULTILINE)
    spelled = {name.replace("_Q_", f"_{quantity}_") for name in names for quantity in Quantity}
    assert len(names) == len(set(names))
    assert spelled == {series.name for series in CATALOGUE}
