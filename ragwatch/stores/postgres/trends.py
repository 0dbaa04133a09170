"""SQL statements of trends. Each takes the writing cursor within an open transaction.

Rows are written in the order of their keys, so that two workers with the same rows wait instead of blocking each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragwatch.core.estimate import Addends
from ragwatch.core.trends import FINE, FINE_SECONDS, BucketKey
from ragwatch.ports import Admission, Retention
from ragwatch.ports.traffic import Peak
from ragwatch.stores.limits import DAY
from ragwatch.stores.postgres.connections import Writer
from ragwatch.stores.postgres.locks import SEQUENCES, lock
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

SUMS_OF_PLACE, PEAKS_OF_PLACE = MERGED.format("%s"), HIGHEST.format("%s")
_ADD = (
    f"INSERT INTO trends VALUES ({', '.join(['%s'] * len(KEYS + SUMS))}) ON CONFLICT ({', '.join(KEYS)}) DO UPDATE SET "  # noqa: S608 - constants
    + ", ".join(f"{column} = trends.{column} + excluded.{column}" for column in SUMS)
).encode()
_PEAK = (
    "INSERT INTO peaks VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (span, kind, place, start, name) DO UPDATE SET"
    " value = GREATEST(peaks.value, excluded.value), threshold = excluded.threshold"
)


def add(writer: Writer, sums: Mapping[BucketKey, Addends]) -> None:
    """Increment sums."""
    if sums:
        writer.executemany(_ADD, sum_rows(sums))


def add_peaks(writer: Writer, peaks: Sequence[Peak]) -> None:
    """See `TrendStore.add_peaks`."""
    writer.executemany(_PEAK, peak_rows(peaks))


def add_versions(writer: Writer, admission: Admission) -> None:
    """Store the versions that records name; one that is new, and not the first of its key, becomes an event."""
    now = admission.at or 0.0
    for field, digest, version in version_rows(admission.versions):
        ((total, new),) = writer.execute(
            "SELECT COUNT(*), COUNT(*) FILTER (WHERE at > %s) FROM known_versions WHERE field = %s", (now - DAY, field)
        ).fetchall()
        if total >= MAX_VERSIONS or new >= MAX_NEW_VERSIONS_PER_DAY:
            continue
        added = writer.execute(
            "INSERT INTO known_versions (field, digest, at) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
            (field, digest, now),
        ).rowcount
        if added and total:
            writer.execute(
                "INSERT INTO events (at, kind, detail) VALUES (%s, %s, %s)",
                (version.at, VERSION_KIND, describe_version(version)),
            )


def delete_old(writer: Writer, retention: Retention, now: float) -> None:
    """Delete the sums and peaks that no chart shows any more, while no worker settles."""
    lock(writer, SEQUENCES)
    for table in ("trends", "peaks"):
        writer.execute(
            f"DELETE FROM {table} WHERE start < %s OR (span = %s AND start < %s)".encode(),  # noqa: S608 - constants
            (now - retention.trend_days * DAY, FINE, now - FINE_SECONDS),
        )
