"""Rows of the tables of trends, which both kinds of store share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ragwatch.core.estimate import Addends
from ragwatch.core.trends import BucketKey, TrendKey
from ragwatch.ports import Peak, TrendQuery, TrendSums, VersionValue
from ragwatch.stores.rows import digest

MAX_NEW_VERSIONS_PER_DAY = 20
"""Of one metadata key that become events: a key with another value in every record is no version."""
MAX_VERSIONS = 1000
"""Of one metadata key that are known; later ones become no event."""
VERSION_KIND = "version"
SUMS = ("n", "w", "wx", "w2", "w2x", "w2x2", "w3", "w4")
KEYS = ("span", "kind", "place", "start", "name", "judge", "version")
MERGED = (
    f"SELECT name, judge, version, start / {{0}} * {{0}} AS point, {', '.join(f'SUM({column})' for column in SUMS)}"  # noqa: S608 - constants
    " FROM trends WHERE span = {0} AND kind = {0} AND place = {0} AND start >= {0} AND start < {0}"
    " GROUP BY name, judge, version, point ORDER BY name, judge, version, point"
)
HIGHEST = (
    "SELECT name, start / {0} * {0} AS point, MAX(value), MAX(threshold) FROM peaks"
    " WHERE span = {0} AND kind = {0} AND place = {0} AND start >= {0} AND start < {0}"
    " GROUP BY name, point ORDER BY name, point"
)


def parameters_of(query: TrendQuery) -> tuple[object, ...]:
    """Return the parameters of `MERGED` and `HIGHEST`."""
    return (query.step, query.step, query.span, str(query.kind), query.place, query.since, query.until)


def sum_rows(sums: Mapping[BucketKey, Addends]) -> list[tuple[object, ...]]:
    """Return rows of (*KEYS, *SUMS), in the order of their keys."""
    return sorted(
        (span, str(kind), place, start, name, judge, version, *(getattr(added, column) or 0.0 for column in SUMS))
        for ((kind, place, name, judge, version), span, start), added in sums.items()
    )


def sums_of(query: TrendQuery, stored: Iterable[tuple[str, str, str, int, int, *tuple[float, ...]]]) -> list[TrendSums]:
    """Decode rows of `MERGED`."""
    return [
        TrendSums(
            TrendKey(query.kind, query.place, name, judge, version), int(start), Addends(int(n), *map(float, others))
        )
        for name, judge, version, start, n, *others in stored
    ]


def peak_rows(peaks: Iterable[Peak]) -> list[tuple[object, ...]]:
    """Return rows of (span, kind, place, start, name, value, threshold), in the order of their keys."""
    return sorted(
        (peak.span, str(peak.series.kind), peak.series.place, peak.start, peak.series.name, peak.value, peak.threshold)
        for peak in peaks
    )


def peaks_of(query: TrendQuery, stored: Iterable[tuple[str, int, float, float | None]]) -> list[Peak]:
    """Decode rows of `HIGHEST`."""
    return [
        Peak(TrendKey(query.kind, query.place, name), query.step, int(start), float(value), threshold)
        for name, start, value, threshold in stored
    ]


def version_rows(versions: Iterable[VersionValue]) -> list[tuple[str, bytes, VersionValue]]:
    """Return (field, digest of the value, value), each once and in the order of keys."""
    by_key = {(version.field, digest(version.value)): version for version in versions}
    return [(*key, by_key[key]) for key in sorted(by_key)]


def describe_version(version: VersionValue) -> str:
    """Describe a version that is new, as the detail of an event."""
    return f"{version.field}: {version.value}"
