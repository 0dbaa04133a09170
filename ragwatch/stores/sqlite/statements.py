"""SQL statements of intake, settlement, batches, costs and waiting parts. Each is within a transaction."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence

from ragwatch.core.budget import Cost, SpendingCap, fits
from ragwatch.core.sample import Draw
from ragwatch.core.tally import Tallies, count_assignments, verdict_tallies
from ragwatch.core.verdict import Verdict
from ragwatch.ports import Admission, Assignment, FollowUp
from ragwatch.stores import rows
from ragwatch.stores.kept_texts import Texts
from ragwatch.stores.rows import ZLIB_LEVEL, DrawCells, digest, draw_of
from ragwatch.stores.sqlite.sqlite_writer import SqliteWriter
from ragwatch.stores.traits import traits_body

DAY = 86400.0
WAITING_PARTS = "SELECT part_group, name, body, at FROM parts WHERE source = ? ORDER BY rowid"
MAX_ROWS_PER_STEP = 5000
MAX_VARIABLES = 500  # of one SELECT


def write_parts(writer: SqliteWriter, admission: Admission) -> None:
    """Store the parts and ids of an admission, and delete the groups that it releases."""
    source = admission.source
    writer.executemany(
        "INSERT OR IGNORE INTO parts VALUES (?, ?, ?, ?, seal(?))",
        [(source, part.group, part.name, part.at, zlib.compress(part.payload, ZLIB_LEVEL)) for part in admission.hold],
    )
    writer.executemany(
        "DELETE FROM parts WHERE source = ? AND part_group = ?", [(source, group) for group in admission.release]
    )
    at = admission.at or 0.0
    writer.executemany(
        "INSERT OR IGNORE INTO received VALUES (?, ?, ?)",
        [(source, digest(identity), at) for identity in admission.received],
    )


def received_queries(source: str, ids: Collection[str]) -> Iterable[tuple[str, Sequence[object], dict[bytes, str]]]:
    """Queries for the digests that are stored, each with its parameters and its ids by digest."""
    every = {digest(identity): identity for identity in ids}
    digests = list(every)
    for start in range(0, len(digests), MAX_VARIABLES):
        some = digests[start : start + MAX_VARIABLES]
        marks = ", ".join("?" * len(some))
        sql = f"SELECT digest FROM received WHERE source = ? AND digest IN ({marks})"  # noqa: S608 - question marks
        yield sql, (source, *some), {key: every[key] for key in some}


def delete_old_parts(writer: SqliteWriter, now: float) -> int:
    """Delete a limited number of ids that were received more than a day ago, and of parts that wait for so long.

    Sources release their parts within minutes; older ones belong to a source that is not configured any more.
    """
    deleted = 0
    for table in ("received", "parts"):
        deleted += writer.execute(
            f"DELETE FROM {table} WHERE rowid IN"  # noqa: S608 - constant names
            f" (SELECT rowid FROM {table} WHERE at < ? OR at > ? ORDER BY rowid LIMIT ?)",
            (now - DAY, now + DAY, MAX_ROWS_PER_STEP),
        ).rowcount
    return deleted


MAX_AGE_SECONDS = 8 * DAY  # one day more than the longest useful cap
COMPACT_AFTER_SECONDS = 600.0
MINUTE = 60.0

SPENT = "SELECT TOTAL(usd), COALESCE(SUM(tokens), 0) FROM spending WHERE judge = ? AND at > ?"


def reserve_cost(writer: SqliteWriter, judge: str, worst: Cost, caps: Sequence[SpendingCap], now: float) -> int | None:
    """See `Accounts.reserve`."""
    for cap in caps:
        spent = writer.execute(SPENT, (judge, now - cap.seconds)).fetchone()
        if not fits(cap, Cost(*spent), worst):
            return None
    row = (judge, now, worst.usd, worst.tokens)
    return writer.execute(
        "INSERT INTO spending (judge, at, usd, tokens, settled) VALUES (?, ?, ?, ?, 0)", row
    ).lastrowid


def pay_cost(writer: SqliteWriter, reservation: int, actual: Cost) -> None:
    """See `Accounts.pay`. Only the first call for a reservation counts, so that a repeated step changes nothing."""
    writer.execute(
        "UPDATE spending SET usd = ?, tokens = ?, settled = 1 WHERE id = ? AND NOT settled",
        (actual.usd, actual.tokens, reservation),
    )


def compact_costs(writer: SqliteWriter, now: float) -> None:
    """Delete rows older than any cap, and merge settled rows by judge and minute, so that sums stay fast.

    A merged row has the time of its last call, so that no cost leaves a sliding window too early.
    """
    writer.execute("DELETE FROM spending WHERE at < ?", (now - MAX_AGE_SECONDS,))
    settled = "SELECT {} FROM spending WHERE settled AND at < ?1 GROUP BY judge, CAST(at / ?2 AS INTEGER)"
    parameters = (now - COMPACT_AFTER_SECONDS, MINUTE)
    sums = settled.format("MAX(id) AS last, MAX(at) AS at, SUM(usd) AS usd, SUM(tokens) AS tokens, COUNT(*) AS calls")
    writer.execute(
        "UPDATE spending SET at = minute.at, usd = minute.usd, tokens = minute.tokens"  # noqa: S608 - constants only
        f" FROM ({sums}) AS minute WHERE spending.id = minute.last AND minute.calls > 1",
        parameters,
    )
    writer.execute(
        f"DELETE FROM spending WHERE settled AND at < ?1 AND id NOT IN ({settled.format('MAX(id)')})",  # noqa: S608 - the same
        parameters,
    )


OPEN_BATCHES = "SELECT id, provider_id, prepared, seed FROM batches WHERE judge = ? ORDER BY id"
BATCHED_DRAWS = (
    "SELECT reservation, key, source, route, at, body, probability FROM work JOIN samples USING (key)"
    " WHERE batch = ? ORDER BY seq"
)


def prepare_batch(writer: SqliteWriter, judge: str, draws: Mapping[str, int], seed: str, now: float) -> int:
    """See `Batches.prepare_batch`. Draws that are settled or in another batch are skipped: none is paid for twice."""
    batch = writer.execute("INSERT INTO batches (judge, prepared, seed) VALUES (?, ?, ?)", (judge, now, seed)).lastrowid
    writer.executemany(
        "UPDATE work SET batch = ?, reservation = ? WHERE judge = ? AND key = ? AND batch IS NULL",
        [(batch, reservation, judge, key) for key, reservation in draws.items()],
    )
    return int(batch or 0)


def send_batch(writer: SqliteWriter, batch: int, provider_id: str) -> None:
    """See `Batches.send_batch`."""
    writer.execute("UPDATE batches SET provider_id = ? WHERE id = ?", (provider_id, batch))


def close_batch(writer: SqliteWriter, batch: int) -> int:
    """See `Batches.close_batch`."""
    writer.execute("DELETE FROM batches WHERE id = ?", (batch,))
    return writer.execute("UPDATE work SET batch = NULL, reservation = NULL WHERE batch = ?", (batch,)).rowcount


def batched_draw(row: tuple[int, *DrawCells]) -> tuple[Draw, int]:
    """Decode a row of `BATCHED_DRAWS`: a draw and its reservation."""
    return draw_of(row[1:]), row[0]


def insert_sample(writer: SqliteWriter, draw: Draw, texts: Texts) -> bool:
    """Insert the sample of a draw, and its traits. Returns False if its key exists."""
    row = (draw.key, draw.source, draw.route, draw.at, rows.pack(draw.sample.to_record()))
    if writer.execute("INSERT OR IGNORE INTO samples VALUES (?, ?, ?, ?, seal(?))", row).rowcount == 0:
        return False
    writer.execute("INSERT OR REPLACE INTO traits VALUES (?, seal(?))", (draw.key, traits_body(draw, texts)))
    return True


def insert_work(writer: SqliteWriter, key: str, assignments: Sequence[Assignment], since: float) -> None:
    """Queue a draw for its judges, pending since an instant."""
    writer.executemany(
        "INSERT INTO work (key, judge, probability, since) VALUES (?, ?, ?, ?)",
        [(key, assignment.judge, assignment.probability, since) for assignment in assignments],
    )


def settle(writer: SqliteWriter, verdicts: Sequence[Verdict], counts: Tallies) -> list[Verdict]:
    """Move draws from the queue to the verdicts, and count them. Returns the new ones, the first on each draw."""
    new = []
    for verdict in verdicts:
        work = (verdict.reading.judge, verdict.draw.key)
        if writer.execute("DELETE FROM work WHERE judge = ? AND key = ?", work).rowcount == 0:
            continue
        new.append(verdict)
        insert_verdict(writer, verdict)
        counts.update(verdict_tallies(verdict))
    return new


def insert_follow_ups(writer: SqliteWriter, follow_ups: Sequence[FollowUp], counts: Tallies) -> None:
    """Queue draws for further judges, and count them. Skips draws that the judge has in its queue or has settled."""
    for follow_up in follow_ups:
        judge = follow_up.assignment.judge
        row = (follow_up.key, judge, follow_up.assignment.probability, follow_up.at)
        queued = writer.execute(
            "INSERT INTO work (key, judge, probability, since) SELECT ?1, ?2, ?3, ?4"
            " WHERE NOT EXISTS (SELECT 1 FROM verdicts WHERE key = ?1 AND judge = ?2) ON CONFLICT DO NOTHING",
            row,
        ).rowcount
        count_assignments(counts, judge, queued)


def insert_verdict(writer: SqliteWriter, verdict: Verdict) -> None:
    """Insert a verdict."""
    insert_row(writer, rows.verdict_row(verdict))


def insert_row(writer: SqliteWriter, row: rows.VerdictRow) -> None:
    """Insert the columns of a verdict."""
    names = ", ".join(row)
    placeholders = ", ".join("seal(:line)" if name == "line" else f":{name}" for name in row)
    writer.execute(f"INSERT INTO verdicts ({names}) VALUES ({placeholders})", row)  # noqa: S608 - constant column names


def add_tallies(writer: SqliteWriter, tallies: Tallies) -> None:
    """Increment counters."""
    writer.executemany(
        "INSERT INTO tallies (name, labels, label_names, value) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET value = value + excluded.value, label_names = excluded.label_names",
        rows.tally_rows(tallies),
    )


def store_cursor(writer: SqliteWriter, admission: Admission) -> None:
    """Store the cursor of a stream; an empty cursor deletes it, because the stream has ended."""
    stream = (admission.source, admission.stream)
    if admission.cursor:
        writer.execute("INSERT OR REPLACE INTO cursors VALUES (?, ?, ?)", (*stream, admission.cursor))
    else:
        writer.execute("DELETE FROM cursors WHERE source = ? AND stream = ?", stream)
