"""The part of the PostgreSQL store that has answers read again by another judge."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence

from ragwatch.core.sample import Draw
from ragwatch.core.tally import Tallies, Tally
from ragwatch.core.trends import score_sums
from ragwatch.core.verdict import Verdict
from ragwatch.ports import RejudgeCandidate, RejudgeQuery
from ragwatch.stores.answer_terms import Rules
from ragwatch.stores.postgres import replies, statements, trends
from ragwatch.stores.postgres.leading import PostgresLeading
from ragwatch.stores.postgres.locks import SEQUENCES, lock
from ragwatch.stores.postgres.partitions import Parts
from ragwatch.stores.postgres.pruning import rejudged, unbiased
from ragwatch.stores.rejudging import candidate_of, candidates_statement, first_statement, rejudged_row
from ragwatch.stores.rows import draw_of, single_number

_FIRST = first_statement(mark="%s", rejudged=rejudged("o."))
_HAS_TEXTS = "s.body <> '\\x00'::bytea"
_DRAWS = (
    "SELECT v.key, s.source, s.route, s.at, s.body, v.probability FROM verdicts v JOIN samples s ON s.key = v.key"  # noqa: S608 - constants
    f" WHERE v.judge = %s AND v.key = ANY(%b::text[]) AND {_HAS_TEXTS} ORDER BY v.at, v.seq"
)
_ADDABLE = (
    "SELECT g.key, g.judge FROM unnest(%b::text[], %b::text[]) AS g(key, judge) JOIN samples s ON s.key = g.key"  # noqa: S608 - constants
    f" WHERE {_HAS_TEXTS} AND NOT EXISTS (SELECT 1 FROM verdicts v WHERE v.key = g.key AND v.judge = g.judge)"
    " AND NOT EXISTS (SELECT 1 FROM work w WHERE w.key = g.key AND w.judge = g.judge)"
)


class PostgresRejudging(PostgresLeading):
    """Implements `ports.RejudgeStore`."""

    _parts: Parts
    _rules: Rules

    def rejudge_candidates(self, query: RejudgeQuery) -> list[RejudgeCandidate]:
        """See `RejudgeReader.rejudge_candidates`."""
        sql, parameters = candidates_statement(
            query, mark="%s", has_texts=_HAS_TEXTS, rejudged=rejudged("o."), unbiased=unbiased("v.")
        )
        return [candidate_of(row) for row in self.rows(sql, parameters)]

    def first_reading(self, judge: str) -> float:
        """See `RejudgeReader.first_reading`."""
        first = single_number(self.rows(_FIRST, (judge, judge)))
        return math.inf if first is None else first

    def draws_of(self, judge: str, keys: Collection[str]) -> list[Draw]:
        """See `RejudgeReader.draws_of`."""
        return [draw_of(row) for row in self.rows(_DRAWS, (judge, sorted(keys)))]

    def add_rejudged(self, verdicts: Sequence[Verdict], *, charted_before: float) -> int:
        """See `RejudgeStore.add_rejudged`."""
        counts: Tallies = Counter()
        self._parts.refresh()
        with self.transaction() as writer:
            lock(writer, SEQUENCES)  # as follow-ups of a cascade do, so that neither misses what the other writes
            keys, judges = [one.draw.key for one in verdicts], [one.reading.judge for one in verdicts]
            addable = set(writer.execute(_ADDABLE, (keys, judges)).fetchall())
            new = [one for one in verdicts if (one.draw.key, one.reading.judge) in addable]
            if new:
                statements.insert_verdicts(writer, new, self.seal, self._parts.of, row=rejudged_row)
            replies.add(writer, new, self._rules, self.seal)
            for one in new:
                counts[Tally.REJUDGED, (one.reading.judge,)] += 1
            statements.add_tallies(writer, counts, self._slot)
            trends.add(writer, score_sums(one for one in new if one.draw.at < charted_before))
        return len(new)
