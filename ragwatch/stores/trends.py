"""Sums of scores and peaks of drift evidence by bucket of time, for charts; and the versions that records name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragwatch.model.estimate import Addends
from ragwatch.ports import Admission, Peak, Retention, TrendQuery, TrendSums
from ragwatch.statistics.trends import FINE, FINE_SECONDS, BucketKey, TrendKey
from ragwatch.stores.engine import SEQUENCES, Component, Writer
from ragwatch.stores.limits import DAY
from ragwatch.stores.rows import digest

MAX_NEW_VERSIONS_PER_DAY = 20
"""Of one metadata key that become events: a key with another value in every record is no version."""
MAX_VERSIONS = 1000
"""Of one metadata key that are known; later ones become no event."""
VERSION_KIND = "version"
SUMS = ("n", "w", "wx", "w2", "w2x", "w2x2", "w3", "w4")
KEYS = ("span", "kind", "place", "start", "name", "judge", "version")
MERGED = (
    f"SELECT name, judge, version, start / :step * :step AS point, {', '.join(f'SUM({column})' for column in SUMS)}"  # noqa: S608 - constants
    " FROM trends WHERE span = :span AND kind = :kind AND place = :place AND start >= :since AND start < :until"
    " GROUP BY name, judge, version, point ORDER BY name, judge, version, point"
)
HIGHEST = (
    "SELECT name, start / :step * :step AS point, MAX(value), MAX(threshold) FROM peaks"
    " WHERE span = :span AND kind = :kind AND place = :place AND start >= :since AND start < :until"
    " GROUP BY name, point ORDER BY name, point"
)
_ADDED = f"ON CONFLICT ({', '.join(KEYS)}) DO UPDATE SET " + ", ".join(
    f"{column} = trends.{column} + excluded.{column}" for column in SUMS
)
_PEAK = (
    "INSERT INTO peaks (span, kind, place, start, name, value, threshold)"
    " VALUES (:span, :kind, :place, :start, :name, :value, :threshold)"
    " ON CONFLICT (span, kind, place, start, name) DO UPDATE SET threshold = excluded.threshold,"
    " value = CASE WHEN excluded.value > peaks.value THEN excluded.value ELSE peaks.value END"
)
_VERSIONS = (
    "SELECT COUNT(*), COALESCE(SUM(CASE WHEN at > :since THEN 1 ELSE 0 END), 0) FROM known_versions"
    " WHERE field = :field"
)


class Trends(Component):
    """Implements `ports.TrendStore`."""

    def trends(self, query: TrendQuery) -> list[TrendSums]:
        """See `TrendStore.trends`."""
        return [
            TrendSums(
                TrendKey(query.kind, query.place, name, judge, version),
                int(start),
                Addends(int(n), *map(float, others)),
            )
            for name, judge, version, start, n, *others in self.engine.pages.rows(MERGED, parameters_of(query))
        ]

    def add_peaks(self, peaks: Sequence[Peak]) -> None:
        """See `TrendStore.add_peaks`."""
        rows = [
            {
                "span": peak.span,
                "kind": str(peak.series.kind),
                "place": peak.series.place,
                "start": peak.start,
                "name": peak.series.name,
                "value": peak.value,
                "threshold": peak.threshold,
            }
            for peak in sorted(peaks, key=lambda peak: (peak.span, peak.series, peak.start))
        ]
        with self.engine.transaction() as writer:
            writer.executemany(_PEAK, rows)

    def peaks(self, query: TrendQuery) -> list[Peak]:
        """See `TrendStore.peaks`."""
        return [
            Peak(TrendKey(query.kind, query.place, name), query.step, int(start), float(value), threshold)
            for name, start, value, threshold in self.engine.pages.rows(HIGHEST, parameters_of(query))
        ]


def parameters_of(query: TrendQuery) -> dict[str, object]:
    """Return the parameters of `MERGED` and `HIGHEST`."""
    names = ("step", "span", "place", "since", "until")
    return {"kind": str(query.kind)} | {name: getattr(query, name) for name in names}


def add_sums(writer: Writer, sums: Mapping[BucketKey, Addends]) -> None:
    """Increment sums, in the order of their keys, so that two workers with the same ones wait for each other."""
    rows = sorted(
        (span, str(kind), place, start, name, judge, version, *(getattr(added, column) or 0.0 for column in SUMS))
        for ((kind, place, name, judge, version), span, start), added in sums.items()
    )
    writer.insert(
        "trends", [dict(zip((*KEYS, *SUMS), row, strict=True)) | {"n": int(row[len(KEYS)])} for row in rows], _ADDED
    )


def add_versions(writer: Writer, admission: Admission) -> None:
    """Store the versions that records name; one that is new, and not the first of its key, becomes an event."""
    now = admission.at or 0.0
    by_key = {(version.field, digest(version.value)): version for version in admission.versions}
    for (field, value), version in sorted(by_key.items(), key=lambda item: item[0]):
        ((total, new),) = writer.rows(_VERSIONS, {"since": now - DAY, "field": field})
        if total >= MAX_VERSIONS or new >= MAX_NEW_VERSIONS_PER_DAY:
            continue
        row = {"field": field, "digest": value, "at": now}
        if writer.insert("known_versions", [row], "ON CONFLICT DO NOTHING") and total:
            detail = f"{version.field}: {version.value}"
            writer.insert("events", [{"at": version.at, "kind": VERSION_KIND, "detail": detail}])


def delete_old(writer: Writer, retention: Retention, now: float) -> None:
    """Delete the sums and peaks that no chart shows any more, while no worker settles."""
    writer.lock(SEQUENCES)
    for table in ("trends", "peaks"):
        writer.execute(
            f"DELETE FROM {table} WHERE start < :oldest OR (span = :fine AND start < :fine_oldest)",  # noqa: S608 - constants
            {"oldest": now - retention.trend_days * DAY, "fine": FINE, "fine_oldest": now - FINE_SECONDS},
        )
