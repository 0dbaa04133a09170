"""SQL statements for parts that wait for the rest of a sample, and for ids of records that were received."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from ragwatch.errors import ReceivedMeanwhileError
from ragwatch.ports import Admission
from ragwatch.stores.limits import DAY
from ragwatch.stores.postgres.connections import Writer
from ragwatch.stores.rows import ZLIB_LEVEL, digest

PARTS = "SELECT part_group, name, body, at FROM parts WHERE source = %s ORDER BY id"
RECEIVED = "SELECT digest FROM received WHERE source = %s AND digest = ANY(%b::bytea[])"
MAX_ROWS_PER_STEP = 5000


def write(writer: Writer, admission: Admission, seal: Callable[[bytes], bytes]) -> None:
    """Store the parts and ids of an admission, and delete the groups that it releases.

    Raises:
        ReceivedMeanwhileError: An id is stored already: another worker was faster than the look-up of this one.
    """
    source, at = admission.source, admission.at or 0.0
    if admission.hold:
        bodies = [seal(zlib.compress(part.payload, ZLIB_LEVEL)) for part in admission.hold]
        writer.execute(
            "INSERT INTO parts (source, part_group, name, at, body) SELECT %s, p.part_group, p.name, p.at, p.body"
            " FROM unnest(%b::text[], %b::text[], %b::float8[], %b::bytea[])"
            " WITH ORDINALITY AS p(part_group, name, at, body, place) ORDER BY p.place ON CONFLICT DO NOTHING",
            (
                source,
                [part.group for part in admission.hold],
                [part.name for part in admission.hold],
                [float(part.at) for part in admission.hold],
                bodies,
            ),
        )
    if admission.release:
        groups = sorted(admission.release)
        writer.execute("DELETE FROM parts WHERE source = %s AND part_group = ANY(%b::text[])", (source, groups))
    if admission.received:
        digests = sorted(set(map(digest, admission.received)))
        stored = writer.execute(
            "INSERT INTO received (source, digest, at) SELECT %s, d, %s FROM unnest(%b::bytea[]) AS d"
            " ON CONFLICT DO NOTHING",
            (source, at, digests),
        ).rowcount
        if stored < len(digests):
            raise ReceivedMeanwhileError("store: another worker has received a record of this batch; it is read again")


def delete_old(writer: Writer, now: float) -> int:
    """Delete a limited number of ids that were received more than a day ago, and of parts that wait for so long.

    Sources release their parts within minutes; older ones belong to a source that is not configured any more. Ids are
    not partitioned by day: no unique index spans partitions, and an id must be unique across midnight.
    """
    deleted = 0
    for table in ("received", "parts"):
        deleted += writer.execute(
            f"DELETE FROM {table} WHERE ctid = ANY(ARRAY("  # noqa: S608 - constant names
            f"SELECT ctid FROM {table} WHERE at < %s OR at > %s LIMIT %s))".encode(),
            (now - DAY, now + DAY, MAX_ROWS_PER_STEP),
        ).rowcount
    return deleted
