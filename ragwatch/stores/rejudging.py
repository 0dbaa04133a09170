"""Answers that another judge reads again: the candidates, and the verdicts, which are marked in their scores."""

import math
from collections import Counter
from collections.abc import Collection, Sequence

from ragwatch.model.sample import Draw
from ragwatch.ports import RejudgeCandidate, RejudgeQuery
from ragwatch.statistics.tally import Tallies, Tally
from ragwatch.statistics.trends import score_sums
from ragwatch.statistics.verdict import Verdict
from ragwatch.stores.counting import add_tallies
from ragwatch.stores.engine import JUDGING, SEQUENCES, UNBIASED, Component
from ragwatch.stores.rows import draw_of, raises_store_error, single_number
from ragwatch.stores.settling import add_replies, insert_verdicts
from ragwatch.stores.trends import add_sums

_CANDIDATES = (
    "SELECT v.key, v.at, s.body <> DROPPED, o.version, REJUDGED(o.), w.key IS NOT NULL"  # noqa: S608 - constants
    " FROM verdicts v LEFT JOIN samples s ON s.key = v.key"
    " LEFT JOIN verdicts o ON o.key = v.key AND o.judge = :judge"
    " LEFT JOIN work w ON w.key = v.key AND w.judge = :judge"
    f" WHERE v.judge = :of AND v.at >= :since AND v.at < :until AND {UNBIASED}"
)
_FIRST = (
    "SELECT MIN(at) FROM (SELECT o.at FROM verdicts o WHERE o.judge = :judge AND NOT REJUDGED(o.)"
    " UNION ALL SELECT s.at FROM work w JOIN samples s ON s.key = w.key WHERE w.judge = :judge) AS assigned"
)
_DRAWS = (
    "SELECT v.key, s.source, s.route, s.at, s.body, v.probability FROM verdicts v JOIN samples s ON s.key = v.key"
    " WHERE v.judge = :judge AND v.key = LIST(:keys) AND s.body <> DROPPED ORDER BY v.at, v.seq"
)
_ADDABLE = (
    "SELECT s.key FROM samples s WHERE s.key = LIST(:keys) AND s.body <> DROPPED"
    " AND NOT EXISTS (SELECT 1 FROM verdicts v WHERE v.key = s.key AND v.judge = :judge)"
    " AND NOT EXISTS (SELECT 1 FROM work w WHERE w.key = s.key AND w.judge = :judge)"
)


class Rejudging(Component):
    """Implements `ports.RejudgeStore`."""

    def rejudge_candidates(self, query: RejudgeQuery) -> list[RejudgeCandidate]:
        names = ["judge", "of", "since", "until", *(["route"] if query.route is not None else [])]
        route = "" if query.route is None else " AND v.route = :route"
        values = {name: getattr(query, name) for name in names}
        stored = self.engine.pages.rows(f"{_CANDIDATES}{route} ORDER BY v.at, v.seq", values)
        return list(map(_candidate_of, stored))

    def first_reading(self, judge: str) -> float:
        first = single_number(self.engine.pages.rows(_FIRST, {"judge": judge}))
        return math.inf if first is None else first

    def draws_of(self, judge: str, keys: Collection[str]) -> list[Draw]:
        return [draw_of(row) for row in self.engine.pages.rows(_DRAWS, {"judge": judge, "keys": sorted(keys)})]

    def add_rejudged(self, verdicts: Sequence[Verdict], *, charted_before: float) -> int:
        counts: Tallies = Counter()
        addable = set[tuple[str, str]]()
        with self.engine.transaction(JUDGING) as writer:
            writer.lock(SEQUENCES)  # as follow-ups of a cascade do, so that neither misses what the other writes
            for judge in {one.reading.judge for one in verdicts}:
                keys = [one.draw.key for one in verdicts if one.reading.judge == judge]
                addable |= {(key, judge) for (key,) in writer.rows(_ADDABLE, {"keys": keys, "judge": judge})}
            new = [one for one in verdicts if (one.draw.key, one.reading.judge) in addable]
            insert_verdicts(writer, new, rejudged=True)
            add_replies(writer, new, self.rules.texts)
            counts.update((Tally.REJUDGED, (one.reading.judge,)) for one in new)
            add_tallies(writer, counts)
            add_sums(writer, score_sums(one for one in new if one.draw.at < charted_before))
        return len(new)


@raises_store_error
def _candidate_of(row: tuple[str, float, object, str | None, object, object]) -> RejudgeCandidate:
    key, at, has_texts, version, rejudged, waiting = row
    flags = {"has_texts": bool(has_texts), "rejudged": bool(rejudged), "waiting": bool(waiting)}
    return RejudgeCandidate(key=key, at=float(at), version=version, **flags)
