"""Costs of judges, and the draws that wait in message batches of a provider."""

from collections.abc import Mapping, Sequence

from ragwatch.model.budget import Cost, SpendingCap, fits
from ragwatch.model.sample import Draw
from ragwatch.ports import OpenBatch
from ragwatch.stores.engine import BUDGET, DAY, JUDGING, Component, Row, Writer
from ragwatch.stores.rows import draw_of

MINUTE = 60.0
MAX_SPENDING_AGE_SECONDS = 8 * DAY  # one day more than the longest useful cap
COMPACT_AFTER_SECONDS = 600.0
_SPENT = (
    "SELECT COALESCE(SUM(usd), 0.0), CAST(COALESCE(SUM(tokens), 0) AS bigint) FROM spending"
    " WHERE judge = :judge AND at > :since"
)
_RESERVE = (
    "INSERT INTO spending (judge, at, usd, tokens, settled) VALUES (:judge, :at, :usd, :tokens, FALSE) RETURNING id"
)
_PAY = "UPDATE spending SET usd = :usd, tokens = :tokens, settled = TRUE WHERE id = :id AND NOT settled"
_MERGE = "UPDATE spending SET at = :at, usd = :usd, tokens = :tokens WHERE id = :id"
_OPEN_BATCHES = "SELECT id, provider_id, prepared, seed FROM batches WHERE judge = :judge ORDER BY id"
_BATCHED = (
    "SELECT w.reservation, w.key, s.source, s.route, s.at, s.body, w.probability FROM work w"
    " JOIN samples s ON s.key = w.key WHERE w.batch = :batch ORDER BY w.seq"
)
_PREPARE = "INSERT INTO batches (judge, prepared, seed) VALUES (:judge, :prepared, :seed) RETURNING id"
_MOVE = (
    "UPDATE work SET batch = :batch, reservation = :reservation UNLEASED"
    " WHERE judge = :judge AND key = :key AND batch IS NULL"
)


class Accounts(Component):
    """Implements `ports.Accounts` and `ports.Batches`."""

    def reserve(self, judge: str, worst: Cost, caps: Sequence[SpendingCap], *, now: float) -> int | None:
        """See `Accounts.reserve`. Refused on a disk too full to store the verdict.

        The lock of a judge's budget is held until the reservation is committed.
        """
        with self.engine.transaction(JUDGING) as writer:
            if caps:
                writer.lock(BUDGET, judge)
            for cap in caps:
                ((usd, tokens),) = writer.rows(_SPENT, {"judge": judge, "since": now - cap.seconds})
                if not fits(cap, Cost(usd, tokens), worst):
                    return None
            row = {"judge": judge, "at": now, "usd": float(worst.usd), "tokens": worst.tokens}
            return int(writer.rows(_RESERVE, row)[0][0])

    def pay(self, reservation: int, actual: Cost) -> None:
        """See `Accounts.pay`. Only the first call for a reservation counts, so that a repeated step changes nothing."""
        with self.engine.transaction() as writer:
            writer.execute(_PAY, {"id": reservation, "usd": float(actual.usd), "tokens": actual.tokens})

    def spent(self, judge: str, since: float) -> Cost:
        return Cost(*self.engine.rows(_SPENT, {"judge": judge, "since": since})[0])

    def prepare_batch(self, judge: str, draws: Mapping[str, int], seed: str, *, now: float) -> int:
        """See `Batches.prepare_batch`. Draws that are settled or in another batch are skipped: none is paid twice."""
        with self.engine.transaction() as writer:
            ((batch,),) = writer.rows(_PREPARE, {"judge": judge, "prepared": now, "seed": seed})
            moved = [{"batch": batch, "judge": judge, "key": key, "reservation": draws[key]} for key in sorted(draws)]
            writer.executemany(_MOVE, moved)
        return int(batch)

    def send_batch(self, batch: int, provider_id: str) -> None:
        with self.engine.transaction() as writer:
            writer.execute("UPDATE batches SET provider_id = :name WHERE id = :id", {"name": provider_id, "id": batch})

    def batches(self, judge: str) -> list[OpenBatch]:
        return [OpenBatch(*row) for row in self.engine.rows(_OPEN_BATCHES, {"judge": judge})]

    def batched(self, batch: int) -> list[tuple[Draw, int]]:
        return [(draw_of(row[1:]), row[0]) for row in self.engine.rows(_BATCHED, {"batch": batch})]

    def close_batch(self, batch: int) -> int:
        with self.engine.transaction() as writer:
            writer.execute("DELETE FROM batches WHERE id = :batch", {"batch": batch})
            freed = "UPDATE work SET batch = NULL, reservation = NULL WHERE batch = :batch"
            return writer.execute(freed, {"batch": batch})


def compact_costs(writer: Writer, now: float) -> None:
    """Delete rows older than any cap, and merge settled rows by judge and minute, so that sums stay fast.

    A merged row has the time of its last call, so that no cost leaves a sliding window too early. What is merged is
    read first: a cost that is paid meanwhile stays as it is.
    """
    writer.execute("DELETE FROM spending WHERE at < :oldest", {"oldest": now - MAX_SPENDING_AGE_SECONDS})
    minutes: dict[tuple[str, int], list[Row]] = {}
    sql = "SELECT id, judge, at, usd, tokens FROM spending WHERE settled AND at < :before ORDER BY id"
    for row in writer.rows(sql, {"before": now - COMPACT_AFTER_SECONDS}):
        minutes.setdefault((row[1], int(row[2] // MINUTE)), []).append(row)
    merged = [rows for rows in minutes.values() if len(rows) > 1]
    for rows in merged:
        ids, _, times, usd, tokens = zip(*rows, strict=True)
        writer.execute(_MERGE, {"id": ids[-1], "at": max(times), "usd": sum(usd), "tokens": sum(tokens)})
    gone = [row[0] for rows in merged for row in rows[:-1]]
    writer.execute("DELETE FROM spending WHERE id = INTS(:gone)", {"gone": gone})
