"""SQL statements of trends. Each takes the writing connection within an open transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragwatch.core.estimate import Addends
from ragwatch.core.trends import FINE, FINE_SECONDS, BucketKey
from ragwatch.ports import Admission, Retention
from ragwatch.ports.trends import Peak
from ragwatch.stores.sqlite.sqlite_writer import SqliteWriter
from ragwatch.stores.trend_rows import (
    HIGHEST,
    KEYS,
    MAX_NEW_VERSIONS_PER_DAY,
    MAX_VERSIONS,
    MERGED,
    SUMS,
    VERSION_KIND,
    describe_version,
    peak_rows,
    sum_rows,
    version_rows,
)

DAY = 86400.0
SUMS_OF_PLACE, PEAKS_OF_PLACE = MERGED.format("?"), HIGHEST.format("?")
_ADD = (
    f"INSERT INTO trends VALUES ({', '.join('?' * len(KEYS + SUMS))}) ON CONFLICT DO UPDATE SET "  # noqa: S608 - constants
    + ", ".join(f"{column} = {column} + excluded.{column}" for column in SUMS)
)
_PEAK = (
    "INSERT INTO peaks VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
    " value = MAX(value, excluded.value), threshold = excluded.threshold"
)


def add(writer: SqliteWriter, sums: Mapping[BucketKey, Addends]) -> None:
    """Increment sums."""
    writer.executemany(_ADD, sum_rows(sums))


def add_peaks(writer: SqliteWriter, peaks: Sequence[Peak]) -> None:
    """See `TrendStore.add_peaks`."""
    writer.executemany(_PEAK, peak_rows(peaks))


def add_versions(writer: SqliteWriter, admission: Admission) -> None:
    """Store the versions that records name; one that is new, and not the first of its key, becomes an event."""
    now = admission.at or 0.0
    for field, digest, version in version_rows(admission.versions):
        total, new = writer.execute(
            "SELECT COUNT(*), COALESCE(SUM(at > ?), 0) FROM known_versions WHERE field = ?", (now - DAY, field)
        ).fetchone()
        if total >= MAX_VERSIONS or new >= MAX_NEW_VERSIONS_PER_DAY:
            continue
        added = writer.execute("INSERT OR IGNORE INTO known_versions VALUES (?, ?, ?)", (field, digest, now)).rowcount
        if added and total:
            writer.execute("INSERT INTO events VALUES (?, ?, ?)", (version.at, VERSION_KIND, describe_version(version)))


def delete_old(writer: SqliteWriter, retention: Retention, now: float) -> None:
    """Delete the sums and peaks that no chart shows any more."""
    for table in ("trends", "peaks"):
        writer.execute(
            f"DELETE FROM {table} WHERE start < ? OR (span = ? AND start < ?)",  # noqa: S608 - constants
            (now - retention.trend_days * DAY, FINE, now - FINE_SECONDS),
        )
