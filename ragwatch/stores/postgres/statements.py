"""SQL statements of intake, settlement, batches, costs and waiting parts. Each takes the writer within a transaction.

Rows are written in the order of their keys, so that two workers with the same rows wait instead of blocking each other.
Lists are given in binary (%b): as text, psycopg takes 20 us for each body of a sample.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence

from ragwatch.core.budget import Cost, SpendingCap, fits
from ragwatch.core.sample import Draw
from ragwatch.core.tally import Tallies, count_assignments, verdict_tallies
from ragwatch.core.verdict import Verdict
from ragwatch.errors import ReceivedMeanwhileError
from ragwatch.ports import Admission, Assignment, FollowUp
from ragwatch.stores import rows
from ragwatch.stores.days import DayStatements
from ragwatch.stores.decoding import VERDICT_COLUMNS
from ragwatch.stores.kept_texts import Texts
from ragwatch.stores.limits import COMPACT_AFTER_SECONDS, DAY, MAX_SPENDING_AGE_SECONDS, MINUTE
from ragwatch.stores.postgres.connections import Writer
from ragwatch.stores.postgres.locks import BUDGET, SEQUENCES, lock
from ragwatch.stores.rows import ZLIB_LEVEL, digest
from ragwatch.stores.traits import traits_body

WAITING_PARTS = "SELECT part_group, name, body, at FROM parts WHERE source = %s ORDER BY id"
RECEIVED = "SELECT digest FROM received WHERE source = %s AND digest = ANY(%b::bytea[])"
MAX_ROWS_PER_STEP = 5000


def write_parts(writer: Writer, admission: Admission, seal: Callable[[bytes], bytes]) -> None:
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


def delete_old_parts(writer: Writer, now: float) -> int:
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


SPENT = "SELECT COALESCE(SUM(usd), 0), COALESCE(SUM(tokens), 0)::bigint FROM spending WHERE judge = %s AND at > %s"


def reserve_cost(writer: Writer, judge: str, worst: Cost, caps: Sequence[SpendingCap], now: float) -> int | None:
    """See `Accounts.reserve`. The lock of a judge's budget is held until the reservation is committed."""
    if caps:
        lock(writer, BUDGET, judge)
    for cap in caps:
        ((usd, tokens),) = writer.execute(SPENT, (judge, now - cap.seconds)).fetchall()
        if not fits(cap, Cost(usd, tokens), worst):
            return None
    ((number,),) = writer.execute(
        "INSERT INTO spending (judge, at, usd, tokens, settled) VALUES (%s, %s, %s, %s, false) RETURNING id",
        (judge, now, float(worst.usd), worst.tokens),
    ).fetchall()
    return int(number)


def pay_cost(writer: Writer, reservation: int, actual: Cost) -> None:
    """See `Accounts.pay`. Only the first call for a reservation counts, so that a repeated step changes nothing."""
    writer.execute(
        "UPDATE spending SET usd = %s, tokens = %s, settled = true WHERE id = %s AND NOT settled",
        (float(actual.usd), actual.tokens, reservation),
    )


def compact_costs(writer: Writer, now: float) -> None:
    """Delete rows older than any cap, and merge settled rows by judge and minute, so that sums stay fast.

    A merged row has the time of its last call, so that no cost leaves a sliding window too early. One statement deletes
    and inserts, so that no sum misses a cost.
    """
    writer.execute("DELETE FROM spending WHERE at < %s", (now - MAX_SPENDING_AGE_SECONDS,))
    writer.execute(
        "WITH minutes AS ("
        " SELECT MAX(id) AS last, MAX(at) AS at, SUM(usd) AS usd, SUM(tokens)::bigint AS tokens, array_agg(id) AS ids"
        " FROM spending WHERE settled AND at < %s GROUP BY judge, floor(at / %s) HAVING COUNT(*) > 1"
        "), merged AS ("
        " UPDATE spending s SET at = m.at, usd = m.usd, tokens = m.tokens FROM minutes m WHERE s.id = m.last"
        ") DELETE FROM spending s USING minutes m WHERE s.id = ANY(m.ids) AND s.id <> m.last",
        (now - COMPACT_AFTER_SECONDS, MINUTE),
    )


_COLUMNS = ", ".join("v.scores::text" if name == "scores" else f"v.{name}" for name in VERDICT_COLUMNS)

DAYS = DayStatements(
    next_at="SELECT MIN(at) FROM verdicts WHERE at >= %s",
    newest_seq="SELECT MAX(seq) FROM verdicts",
    pruned_seq="SELECT seq FROM pruned",
    of_day="SELECT route, seq FROM verdicts WHERE at >= %s AND at < %s AND seq <= %s",
    by_seqs=(
        rf"SELECT {_COLUMNS}, v.line, NULLIF(s.body, '\x00'), s.source"  # noqa: S608 - constants only
        " FROM verdicts v LEFT JOIN samples s USING (key) WHERE v.seq = ANY(%b::bigint[]) ORDER BY v.seq"
    ),
    key_of="SELECT key, judge FROM verdicts WHERE seq = %s",
    list_of=list,
)


OPEN_BATCHES = "SELECT id, provider_id, prepared, seed FROM batches WHERE judge = %s ORDER BY id"
BATCHED_DRAWS = (
    "SELECT reservation, key, source, route, at, body, probability FROM work JOIN samples USING (key)"
    " WHERE batch = %s ORDER BY seq"
)


def prepare_batch(writer: Writer, judge: str, draws: Mapping[str, int], seed: str, now: float) -> int:
    """See `Batches.prepare_batch`. Draws that are settled or in another batch are skipped: none is paid for twice."""
    ((batch,),) = writer.execute(
        "INSERT INTO batches (judge, prepared, seed) VALUES (%s, %s, %s) RETURNING id", (judge, now, seed)
    ).fetchall()
    writer.execute(
        "UPDATE work SET batch = %s, reservation = d.reservation, holder = NULL, leased_until = '-Infinity'"
        " FROM unnest(%b::text[], %b::bigint[]) AS d(key, reservation)"
        " WHERE work.judge = %s AND work.key = d.key AND work.batch IS NULL",
        (batch, list(draws), list(draws.values()), judge),
    )
    return int(batch)


def send_batch(writer: Writer, batch: int, provider_id: str) -> None:
    """See `Batches.send_batch`."""
    writer.execute("UPDATE batches SET provider_id = %s WHERE id = %s", (provider_id, batch))


def close_batch(writer: Writer, batch: int) -> int:
    """See `Batches.close_batch`."""
    writer.execute("DELETE FROM batches WHERE id = %s", (batch,))
    return writer.execute("UPDATE work SET batch = NULL, reservation = NULL WHERE batch = %s", (batch,)).rowcount


SLOTS = 16
TALLIES = "SELECT name, labels, MAX(label_names), SUM(value ORDER BY slot) FROM tallies GROUP BY name, labels"
"""In the order of slots, so that rounding never makes a counter fall."""
PENDING = "SELECT judge, COUNT(*) FROM work GROUP BY judge"
OVERDUE = (
    "SELECT route, judge, trunc(at / 60)::bigint, SUM(1 / probability) FROM work JOIN samples USING (key)"
    " WHERE since < %s GROUP BY 1, 2, 3"
)
_SETTLED = (
    "WITH settled AS (SELECT * FROM unnest(%b::text[], %b::text[]) AS s(judge, key)),"
    " held AS (SELECT w.seq FROM work w JOIN settled s ON w.judge = s.judge AND w.key = s.key"
    " ORDER BY w.seq FOR UPDATE OF w)"
    " DELETE FROM work USING held WHERE work.seq = held.seq RETURNING work.judge, work.key"
)
_FOLLOW_UP = (
    "INSERT INTO work (key, judge, probability, since)"
    " SELECT %(key)s, %(judge)s, %(probability)s::float8, %(at)s::float8"
    " WHERE NOT EXISTS (SELECT 1 FROM verdicts WHERE key = %(key)s AND judge = %(judge)s) ON CONFLICT DO NOTHING"
)
_MARKS = {"scores": "%(scores)s::jsonb", "line": "%(line)b"}

Seal = Callable[[bytes], bytes]
Row = Callable[[Verdict], rows.VerdictRow]
Part = Callable[[float], int]  # partition of an answer, by its time


def insert_samples(writer: Writer, draws: Sequence[Draw], *, seal: Seal, part: Part) -> set[str]:
    """Insert the samples of draws. Returns the keys of those that are new."""
    ordered = sorted({draw.key: draw for draw in reversed(draws)}.values(), key=lambda draw: draw.key)
    if not ordered:
        return set()
    stored = writer.execute(
        "WITH given AS (SELECT * FROM unnest(%b::text[], %b::text[], %b::text[], %b::float8[], %b::bytea[], %b::int[])"
        " AS g(key, source, route, at, body, part)),"
        " new AS (INSERT INTO sample_keys (key, part) SELECT key, part FROM given ORDER BY key"
        " ON CONFLICT DO NOTHING RETURNING key)"
        " INSERT INTO samples (key, source, route, at, body, part)"
        " SELECT key, source, route, at, body, part FROM given JOIN new USING (key) RETURNING key",
        (
            [draw.key for draw in ordered],
            [draw.source for draw in ordered],
            [draw.route for draw in ordered],
            [float(draw.at) for draw in ordered],
            [seal(rows.pack(draw.sample.to_record())) for draw in ordered],
            [part(draw.at) for draw in ordered],
        ),
    ).fetchall()
    return {key for (key,) in stored}


def insert_traits(writer: Writer, draws: Mapping[str, Draw], texts: Texts, *, seal: Seal) -> None:
    """Insert the traits of new samples."""
    if not draws:
        return
    keys = sorted(draws)
    writer.execute(
        "INSERT INTO traits (key, body) SELECT * FROM unnest(%b::text[], %b::bytea[])"
        " ON CONFLICT (key) DO UPDATE SET body = excluded.body",
        (keys, [seal(traits_body(draws[key], texts)) for key in keys]),
    )


def insert_work(writer: Writer, work: Sequence[tuple[str, Assignment, float]]) -> None:
    """Queue draws for their judges in this order, each pending since an instant."""
    if not work:
        return
    writer.execute(
        "INSERT INTO work (key, judge, probability, since) SELECT w.key, w.judge, w.probability, w.since"
        " FROM unnest(%b::text[], %b::text[], %b::float8[], %b::float8[])"
        " WITH ORDINALITY AS w(key, judge, probability, since, place) ORDER BY w.place",
        (
            [key for key, _, _ in work],
            [assignment.judge for _, assignment, _ in work],
            [float(assignment.probability) for _, assignment, _ in work],
            [float(since) for _, _, since in work],
        ),
    )


def settle(writer: Writer, verdicts: Sequence[Verdict], counts: Tallies, *, seal: Seal, part: Part) -> list[Verdict]:
    """Move draws from the queue to the verdicts, and count them. Returns the new ones, the first on each draw."""
    if not verdicts:
        return []
    judges = [verdict.reading.judge for verdict in verdicts]
    keys = [verdict.draw.key for verdict in verdicts]
    taken = set(writer.execute(_SETTLED, (judges, keys)).fetchall())
    new = []
    for verdict in verdicts:
        if (work := (verdict.reading.judge, verdict.draw.key)) in taken:
            taken.remove(work)
            new.append(verdict)
    if new:
        lock(writer, SEQUENCES)
        insert_verdicts(writer, new, seal, part)
    for verdict in new:
        counts.update(verdict_tallies(verdict))
    return new


def insert_verdicts(
    writer: Writer, verdicts: Sequence[Verdict], seal: Seal, part: Part, *, row: Row = rows.verdict_row
) -> None:
    """Insert verdicts with the columns that `row` returns, in this order."""
    stored = [_sealed(row(verdict), seal) | {"part": part(verdict.draw.at)} for verdict in verdicts]
    names = ", ".join(stored[0])
    marks = ", ".join(_MARKS.get(name, f"%({name})s") for name in stored[0])
    writer.executemany(f"INSERT INTO verdicts ({names}) VALUES ({marks})".encode(), stored)  # noqa: S608 - constant column names


def _sealed(row: rows.VerdictRow, seal: Seal) -> dict[str, object]:
    return {**row, "line": seal(row["line"])}


def insert_follow_ups(writer: Writer, follow_ups: Sequence[FollowUp], counts: Tallies) -> None:
    """Queue draws for further judges, and count them. Skips draws that the judge has in its queue or has settled."""
    for follow_up in follow_ups:
        judge = follow_up.assignment.judge
        values = {
            "key": follow_up.key,
            "judge": judge,
            "probability": follow_up.assignment.probability,
            "at": follow_up.at,
        }
        count_assignments(counts, judge, writer.execute(_FOLLOW_UP, values).rowcount)


def add_tallies(writer: Writer, tallies: Tallies, slot: int) -> None:
    """Increment counters."""
    if not tallies:
        return
    columns = [list(column) for column in zip(*sorted(rows.tally_rows(tallies)), strict=True)]
    writer.execute(
        "INSERT INTO tallies (name, labels, slot, label_names, value)"
        " SELECT t.name, t.labels, %s, t.label_names, t.value"
        " FROM unnest(%b::text[], %b::text[], %b::text[], %b::float8[]) AS t(name, labels, label_names, value)"
        " ON CONFLICT (name, labels, slot)"
        " DO UPDATE SET value = tallies.value + excluded.value, label_names = excluded.label_names",
        (slot, *columns),
    )


def store_cursor(writer: Writer, admission: Admission) -> None:
    """Store the cursor of a stream; an empty cursor deletes it, because the stream has ended."""
    stream = (admission.source, admission.stream)
    if admission.cursor:
        writer.execute(
            "INSERT INTO cursors (source, stream, cursor) VALUES (%s, %s, %s)"
            " ON CONFLICT (source, stream) DO UPDATE SET cursor = excluded.cursor",
            (*stream, admission.cursor),
        )
    else:
        writer.execute("DELETE FROM cursors WHERE source = %s AND stream = %s", stream)
