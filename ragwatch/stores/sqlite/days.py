"""SQL statements that read all verdicts day by day: see `ragwatch.stores.days`."""

from __future__ import annotations

import json

from ragwatch.stores.days import DayStatements
from ragwatch.stores.decoding import VERDICT_COLUMNS
from ragwatch.stores.sqlite.retention import PRUNED_SEQ

_COLUMNS = ", ".join(f"v.{name}" for name in VERDICT_COLUMNS)

DAYS = DayStatements(
    next_at="SELECT MIN(at) FROM verdicts WHERE at >= ?",
    newest_seq="SELECT MAX(seq) FROM verdicts",
    pruned_seq=PRUNED_SEQ,
    # With the plus sign, SQLite uses the index of `at` and not the primary key.
    of_day="SELECT route, seq FROM verdicts WHERE at >= ? AND at < ? AND +seq <= ?",
    by_seqs=(
        f"SELECT {_COLUMNS}, v.line, NULLIF(s.body, x'00'), s.source"  # noqa: S608 - constants only
        " FROM verdicts v LEFT JOIN samples s USING (key)"
        " WHERE v.seq IN (SELECT value FROM json_each(?)) ORDER BY v.seq"
    ),
    key_of="SELECT key, judge FROM verdicts WHERE seq = ?",
    list_of=lambda seqs: json.dumps(list(seqs)),
)
