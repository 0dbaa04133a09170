"""The part of the SQLite store that has answers read again by another judge."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Sequence

from ragwatch.core.sample import Draw
from ragwatch.core.tally import Tallies, Tally
from ragwatch.core.trends import score_sums
from ragwatch.core.verdict import Verdict
from ragwatch.ports import RejudgeCandidate, RejudgeQuery
from ragwatch.stores.engine import JUDGING
from ragwatch.stores.rejudging import candidate_of, candidates_statement, first_statement, rejudged_row
from ragwatch.stores.rows import draw_of, single_number
from ragwatch.stores.sqlite import replies, statements, trends
from ragwatch.stores.sqlite.erasure import SqliteErasure
from ragwatch.stores.sqlite.reader import ReadConnection
from ragwatch.stores.sqlite.retention import PRUNED_SEQ, PRUNED_UNTIL, rejudged

_UNBIASED = f"(v.at > COALESCE(({PRUNED_UNTIL}), -9e999) OR v.seq > ({PRUNED_SEQ}))"
_FIRST = first_statement(mark="?", rejudged=rejudged("o."))
_DRAWS = (
    "SELECT v.key, s.source, s.route, s.at, s.body, v.probability FROM verdicts v JOIN samples s ON s.key = v.key"
    " WHERE v.judge = ? AND v.key IN (SELECT value FROM json_each(?)) AND s.body <> x'00' ORDER BY v.at, v.seq"
)
_MAY_BE_ADDED = (
    "SELECT EXISTS (SELECT 1 FROM samples WHERE key = ?1 AND body <> x'00')"
    " AND NOT EXISTS (SELECT 1 FROM verdicts WHERE key = ?1 AND judge = ?2)"
    " AND NOT EXISTS (SELECT 1 FROM work WHERE key = ?1 AND judge = ?2)"
)


class RejudgeConnection:
    """Implements `ports.RejudgeReader` on a connection that reads only."""

    def __init__(self, connection: ReadConnection) -> None:
        self._connection = connection

    def rejudge_candidates(self, query: RejudgeQuery) -> list[RejudgeCandidate]:
        """See `RejudgeReader.rejudge_candidates`."""
        sql, parameters = candidates_statement(
            query, mark="?", has_texts="s.body <> x'00'", rejudged=rejudged("o."), unbiased=_UNBIASED
        )
        return [candidate_of(row) for row in self._connection.rows(sql, parameters)]

    def first_reading(self, judge: str) -> float:
        """See `RejudgeReader.first_reading`."""
        first = single_number(self._connection.rows(_FIRST, (judge, judge)))
        return math.inf if first is None else first

    def draws_of(self, judge: str, keys: Collection[str]) -> list[Draw]:
        """See `RejudgeReader.draws_of`."""
        return [draw_of(row) for row in self._connection.rows(_DRAWS, (judge, json.dumps(sorted(keys))))]


class SqliteRejudging(SqliteErasure):
    """Implements `ports.RejudgeStore`."""

    def rejudge_candidates(self, query: RejudgeQuery) -> list[RejudgeCandidate]:
        """See `RejudgeReader.rejudge_candidates`."""
        return RejudgeConnection(self.pages).rejudge_candidates(query)

    def first_reading(self, judge: str) -> float:
        """See `RejudgeReader.first_reading`."""
        return RejudgeConnection(self.pages).first_reading(judge)

    def draws_of(self, judge: str, keys: Collection[str]) -> list[Draw]:
        """See `RejudgeReader.draws_of`."""
        return RejudgeConnection(self.pages).draws_of(judge, keys)

    def add_rejudged(self, verdicts: Sequence[Verdict], *, charted_before: float) -> int:
        """See `RejudgeStore.add_rejudged`."""
        counts: Tallies = Counter()
        new: list[Verdict] = []
        with self.transaction(JUDGING) as writer:
            for verdict in verdicts:
                judge = verdict.reading.judge
                if writer.execute(_MAY_BE_ADDED, (verdict.draw.key, judge)).fetchone()[0]:
                    statements.insert_row(writer, rejudged_row(verdict))
                    counts[Tally.REJUDGED, (judge,)] += 1
                    new.append(verdict)
            replies.add(writer, new, self._rules)
            statements.add_tallies(writer, counts)
            trends.add(writer, score_sums(one for one in new if one.draw.at < charted_before))
        return len(new)
