"""SQL statements that read all verdicts day by day: see `ragwatch.stores.days`."""

from __future__ import annotations

from ragwatch.stores.days import DayStatements
from ragwatch.stores.decoding import VERDICT_COLUMNS

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
