"""Intake and settlement: draws enter the queue with their cursor and counts, and leave it with their verdicts.

Rows are written in the order of their keys, so that two workers with the same rows wait instead of blocking each other.
"""

import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing

from ragwatch.errors import ReceivedMeanwhileError
from ragwatch.model.sample import Draw, RejectReason
from ragwatch.ports import Admission, Assignment, FollowUp, Part
from ragwatch.statistics.causes.traits import traits_of
from ragwatch.statistics.tally import Tallies, Tally, verdict_tallies
from ragwatch.statistics.trends import score_sums
from ragwatch.statistics.verdict import Judged, Verdict
from ragwatch.stores import feedback
from ragwatch.stores.counting import add_tallies
from ragwatch.stores.dropping import Dropping
from ragwatch.stores.engine import ADMITTING, DAY, JUDGING, SEQUENCES, Row, Writer
from ragwatch.stores.kept_texts import Texts
from ragwatch.stores.rows import digest, draw_of, verdict_row
from ragwatch.stores.texts import ZLIB_LEVEL, pack
from ragwatch.stores.trends import add_sums, add_versions

MAX_ROWS_PER_STEP = 5000
MAX_LEASED_CHARS = 8 << 20  # of texts leased at a time; the last draw may exceed it
MAX_REPLY_BYTES = 32 * 1024  # of the raw replies of an LLM judge to all calls about one answer
_PARTS = "SELECT part_group, name, body, at FROM parts WHERE source = :source ORDER BY ROW_ID"
_RECEIVED = "SELECT digest FROM received WHERE source = :source AND digest = BLOBS(:digests)"
SETTLED = (
    "DELETE FROM work WHERE seq IN (SELECT w.seq FROM work w WHERE w.judge = :judge AND w.key = LIST(:keys)"
    " LOCKING(ORDER BY w.seq FOR UPDATE)) RETURNING key"
)
_FOLLOW_UP = (
    "INSERT INTO work (key, judge, probability, since)"
    " SELECT :key, :judge, CAST(:probability AS double precision), CAST(:since AS double precision)"
    " WHERE NOT EXISTS (SELECT 1 FROM verdicts WHERE key = :key AND judge = :judge) ON CONFLICT DO NOTHING"
)
_ADD_REPLIES = (
    "INSERT INTO replies (seq, key, body) SELECT v.seq, v.key, :body FROM verdicts v"
    " JOIN SAMPLE_KEYS k ON k.key = v.key WHERE v.key = :key AND v.judge = :judge"
)
_KEPT_ROWS = {"received": "source, digest", "parts": "source, part_group, name"}


class Settling(Dropping):
    """Takes draws in, and settles them."""

    def cursors(self, source: str) -> dict[str, str]:
        return dict(self.engine.rows("SELECT stream, cursor FROM cursors WHERE source = :source", {"source": source}))

    def parts(self, source: str) -> Iterator[Part]:
        with closing(self.engine.walk(_PARTS, {"source": source})) as stored:
            for group, name, body, at in stored:
                try:
                    yield Part(group, name, zlib.decompress(body), at)
                except (zlib.error, TypeError):
                    self.engine.damage.note("parts", name)

    def received(self, source: str, ids: Collection[str]) -> set[str]:
        by_digest = {digest(identity): identity for identity in ids}
        if not by_digest:
            return set()
        known = self.engine.rows(_RECEIVED, {"source": source, "digests": list(by_digest)})
        return {by_digest[value] for (value,) in known}

    def admit(self, admission: Admission) -> int:
        tallies: Tallies = Counter(admission.tallies)
        with self.engine.transaction(ADMITTING) as writer:
            stored = _insert_samples(writer, (draw for draw, _ in admission.draws))
            new: dict[str, Draw] = {}
            work = list[dict[str, object]]()
            for draw, assignments in admission.draws:
                if draw.key not in stored or draw.key in new:
                    tallies[Tally.REJECTED, (admission.source, RejectReason.DUPLICATE_ID)] += 1
                    continue
                new[draw.key] = draw
                tallies[Tally.DRAWN, (draw.route,)] += 1
                tallies.update((Tally.ASSIGNED, (assignment.judge,)) for assignment in assignments)
                tallies.update(admission.of_draws.get(draw.key, {}))
                since = draw.at if admission.at is None else admission.at
                work += [_work(draw.key, one, since) for one in assignments]
            with writer.queued():  # the server works while traits are computed
                writer.insert("work", work)
                whole = self.rules.texts is Texts.ALL
                traits = {key: writer.seal(pack(traits_of(new[key].sample, texts=whole))) for key in sorted(new)}
                rows = [{"key": key, "body": body} for key, body in traits.items()]
                writer.insert("traits", rows, "ON CONFLICT (key) DO UPDATE SET body = excluded.body")
            feedback.write(writer, admission, list(new), tallies)
            _store_cursor(writer, admission)
            _write_parts(writer, admission)
            add_versions(writer, admission)
            add_tallies(writer, tallies)
            self.note_dropped(len(admission.release))
        return len(new)

    def settle(
        self, verdicts: Sequence[Verdict], follow_ups: Sequence[FollowUp] = (), tallies: Tallies | None = None
    ) -> int:
        counts: Tallies = Counter()
        with self.engine.transaction(JUDGING) as writer:
            settled = settle(writer, verdicts, counts)
            new = {(verdict.reading.judge, verdict.draw.key) for verdict in settled}
            if new or not verdicts:
                counts.update(tallies or {})
            for follow_up in follow_ups:
                if (follow_up.after, follow_up.key) in new:
                    row = _work(follow_up.key, follow_up.assignment, follow_up.at)
                    # No row if the judge has the draw in its queue or has settled it.
                    counts[Tally.ASSIGNED, (follow_up.assignment.judge,)] += writer.execute(_FOLLOW_UP, row)
            add_replies(writer, settled, self.rules.texts)
            self.texts_settled(writer, settled)
            add_tallies(writer, counts)
            add_sums(writer, score_sums(settled))
        return len(new)

    def leased(self, rows: Iterable[Row]) -> list[Draw]:
        """Decode pending draws, until their texts exceed `MAX_LEASED_CHARS`."""
        draws: list[Draw] = []
        chars = 0
        for row in rows:
            draws.append(draw_of(row))
            if draws[-1].damage is not None:
                self.engine.damage.note("samples", draws[-1].key)
            chars += draws[-1].sample.chars
            if chars > MAX_LEASED_CHARS:
                break
        return draws


def _work(key: str, assignment: Assignment, since: float) -> dict[str, object]:
    return {"key": key, "judge": assignment.judge, "probability": assignment.probability, "since": since}


def _insert_samples(writer: Writer, draws: Iterable[Draw]) -> set[str]:
    """Insert the samples of draws, the first one of each key. Returns the keys of those that are new."""
    first: dict[str, dict[str, object]] = {}
    for draw in draws:
        if draw.key not in first:
            body = writer.seal(pack(draw.sample.to_record()))
            row = {"key": draw.key, "source": draw.source, "route": draw.route, "at": draw.at, "body": body}
            first[draw.key] = {**row, **writer.part(draw.at)}
    return writer.insert_samples(list(first.values()))


def _write_parts(writer: Writer, admission: Admission) -> None:
    """Store the parts and ids of an admission, and delete the groups that it releases.

    Raises `ReceivedMeanwhileError` if an id is stored already: another worker was faster than the look-up of this one.
    """
    source = admission.source
    parts = [
        {
            "source": source,
            "part_group": part.group,
            "name": part.name,
            "at": part.at,
            "body": writer.seal(zlib.compress(part.payload, ZLIB_LEVEL)),
        }
        for part in admission.hold
    ]
    writer.insert("parts", parts, "ON CONFLICT DO NOTHING")
    if admission.release:
        groups = {"source": source, "groups": sorted(admission.release)}
        writer.execute("DELETE FROM parts WHERE source = :source AND part_group = LIST(:groups)", groups)
    at = admission.at or 0.0
    ids = [{"source": source, "digest": one, "at": at} for one in sorted(set(map(digest, admission.received)))]
    if writer.insert("received", ids, "ON CONFLICT DO NOTHING") < len(ids):
        raise ReceivedMeanwhileError("store: another worker has received a record of this batch; it is read again")


def _store_cursor(writer: Writer, admission: Admission) -> None:
    """Store the cursor of a stream; an empty cursor deletes it, because the stream has ended."""
    row = {"source": admission.source, "stream": admission.stream, "cursor": admission.cursor}
    if admission.cursor:
        writer.insert("cursors", [row], "ON CONFLICT (source, stream) DO UPDATE SET cursor = excluded.cursor")
    else:
        writer.execute("DELETE FROM cursors WHERE source = :source AND stream = :stream", row)


def settle(writer: Writer, verdicts: Sequence[Verdict], counts: Tallies) -> list[Verdict]:
    """Move draws from the queue to the verdicts, and count them. Returns the new ones, the first on each draw."""
    taken = set[tuple[str, str]]()
    for judge in sorted({verdict.reading.judge for verdict in verdicts}):
        keys = [verdict.draw.key for verdict in verdicts if verdict.reading.judge == judge]
        taken |= {(judge, key) for (key,) in writer.rows(SETTLED, {"judge": judge, "keys": keys})}
    new = []
    for verdict in verdicts:
        if (work := (verdict.reading.judge, verdict.draw.key)) in taken:
            taken.remove(work)
            new.append(verdict)
    if new:
        writer.lock(SEQUENCES)
        insert_verdicts(writer, new)
    for verdict in new:
        counts.update(verdict_tallies(verdict))
    return new


def insert_verdicts(writer: Writer, verdicts: Sequence[Verdict], *, rejudged: bool = False) -> None:
    """Insert verdicts in this order."""
    rows = [verdict_row(verdict, rejudged=rejudged) for verdict in verdicts]
    writer.insert("verdicts", [{**row, "line": writer.seal(row["line"]), **writer.part(row["at"])} for row in rows])


def add_replies(writer: Writer, verdicts: Iterable[Verdict], texts: Texts) -> None:
    """Add the replies behind verdicts, within the transaction that stores these; none if no texts are kept."""
    judged = [one for one in verdicts if isinstance(one, Judged) and one.evidence.replies and texts is not Texts.NONE]
    for one in sorted(judged, key=lambda one: one.draw.key):
        body = writer.seal(pack({"replies": _cut(one.evidence.replies, MAX_REPLY_BYTES)}))
        writer.execute(_ADD_REPLIES, {"body": body, "key": one.draw.key, "judge": one.reading.judge})


def _cut(replies: Iterable[str], max_bytes: int) -> list[str]:
    """Return the replies up to a number of bytes, and say at the end that and how much was left out.

    >>> _cut(["first", "second"], 7)
    ['first', 'se [4 bytes more]']
    """
    kept, left = list[str](), max_bytes
    for text in replies:
        data = text.encode("utf-8", "replace")
        if len(data) > left:
            kept.append(f"{data[:left].decode('utf-8', 'ignore')} [{len(data) - left} bytes more]")
            break
        kept.append(text)
        left -= len(data)
    return kept


def delete_old_parts(writer: Writer, now: float) -> int:
    """Delete a limited number of ids that were received more than a day ago, and of parts that wait for so long.

    Sources release their parts within minutes; older ones belong to a source that is not configured any more. Ids are
    not partitioned by day: no unique index spans partitions, and an id must be unique across midnight.
    """
    values = {"before": now - DAY, "after": now + DAY, "limit": MAX_ROWS_PER_STEP}
    return sum(
        writer.execute(
            f"DELETE FROM {table} WHERE ({key}) IN"  # noqa: S608 - constant names
            f" (SELECT {key} FROM {table} WHERE at < :before OR at > :after LIMIT :limit)",
            values,
        )
        for table, key in _KEPT_ROWS.items()
    )
