"""The catalogue follows Prometheus naming conventions that promtool does not check."""

import re

from ragwatch.exporter.catalogue import CATALOGUE, MetricType, Series, markdown
from ragwatch.model.quantities import Quantity
from ragwatch.statistics.snapshot import Gauge
from ragwatch.statistics.tally import Tally
from ragwatch.telemetry import EventCount, GaugeLevel

# What a number is measured in: a base unit, or the plural of what is counted.
UNITS = frozenset(
    {
        *("total", "counters", "ratio", "low", "high", "probability", "score", "info", "seconds", "bytes", "chars"),
        *("samples", "records", "contexts", "labels", "annotators", "detectors", "files", "rows"),
        *("successful", "success", "pending", "degraded", "open", "paused", "fallback", "leader"),
        *("evidence", "threshold", "alarm"),
        "age",  # in days, as its HELP says: promtool wants no other unit of time than seconds
    }
)
BAD_WORDS = frozenset({"percent", "percentage", "milliseconds", "ms", "minutes", "hours", "kilobytes", "kb", "count"})
TARGET_LABELS = frozenset({"type", "service", "env", "environment", "cluster", "region", "zone", "owner", "instance"})


def faults(series: Series) -> list[str]:
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
    if not re.fullmatch(r"[A-Z][^\n{}]{10,}\.", series.help):
        faults.append("help")
    return faults


def test_every_row_keeps_the_conventions() -> None:
    """Names have a unit and no label, counters end in _total, and HELP is one sentence."""
    assert {series.name: wrong for series in CATALOGUE if (wrong := faults(series))} == {}


def test_names_are_unique_with_their_suffixes() -> None:
    """No series collides with another one, nor with the parts of a histogram."""
    names = []
    for series in CATALOGUE:
        names.append(series.name)
        if series.kind is MetricType.HISTOGRAM:
            names += [series.name + suffix for suffix in ("_bucket", "_sum", "_count")]
    assert len(names) == len(set(names))


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


def test_what_the_digest_caches_says_so() -> None:
    """An estimate is as old as the last digest, and its HELP admits it."""
    cached = [series for series in CATALOGUE if "window" in series.labels]
    assert len(cached) == len(Quantity) * 7 + 8 + 3 + 5
    assert all("as of the last digest" in series.help for series in cached)
