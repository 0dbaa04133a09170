"""What both kinds of store share of `ports.RejudgeStore`: SQL of candidates, and the mark of verdicts."""

from __future__ import annotations

from ragwatch.core.verdict import Verdict
from ragwatch.ports import RejudgeCandidate, RejudgeQuery
from ragwatch.stores.rows import VerdictRow, raises_store_error, text, verdict_row

MARK = '{"rejudged":true'
"""Begin of the scores of such a verdict, as text. No quantity has this name: see `core.scores.RESERVED`."""


def rejudged_row(verdict: Verdict) -> VerdictRow:
    """Return the columns of table `verdicts` for a verdict with the mark."""
    row = verdict_row(verdict)
    return {**row, "scores": f"{MARK},{text(row['scores']).removeprefix('{')}"}


def candidates_statement(
    query: RejudgeQuery, *, mark: str, has_texts: str, rejudged: str, unbiased: str
) -> tuple[str, list[object]]:
    """Return SQL and parameters of the candidates; `candidate_of` decodes the rows.

    Args:
        query: Which ones.
        mark: Placeholder of a parameter.
        has_texts: Condition on the sample `s`.
        rejudged: Condition on the verdict `o`.
        unbiased: Condition on the verdict `v`, which leaves out times of which retention has deleted some answers.
    """
    where = [f"v.judge = {mark}", f"v.at >= {mark}", f"v.at < {mark}", unbiased]
    parameters: list[object] = [query.judge, query.judge, query.of, query.since, query.until]
    if query.route is not None:
        where.append(f"v.route = {mark}")
        parameters.append(query.route)
    sql = (
        f"SELECT v.key, v.at, {has_texts}, o.version, {rejudged}, w.key IS NOT NULL"  # noqa: S608 - constants
        " FROM verdicts v LEFT JOIN samples s ON s.key = v.key"
        f" LEFT JOIN verdicts o ON o.key = v.key AND o.judge = {mark}"
        f" LEFT JOIN work w ON w.key = v.key AND w.judge = {mark}"
        f" WHERE {' AND '.join(where)} ORDER BY v.at, v.seq"
    )
    return sql, parameters


@raises_store_error
def candidate_of(row: tuple[str, float, object, str | None, object, object]) -> RejudgeCandidate:
    """Decode a row of `candidates_statement`."""
    key, at, has_texts, version, rejudged, waiting = row
    return RejudgeCandidate(
        key=key,
        at=float(at),
        has_texts=bool(has_texts),
        version=version,
        rejudged=bool(rejudged),
        waiting=bool(waiting),
    )


def first_statement(*, mark: str, rejudged: str) -> str:
    """Return SQL of the time of the oldest answer that was assigned to a judge, which is given twice."""
    return (
        f"SELECT MIN(at) FROM (SELECT o.at FROM verdicts o WHERE o.judge = {mark} AND NOT {rejudged}"  # noqa: S608 - constants
        f" UNION ALL SELECT s.at FROM work w JOIN samples s ON s.key = w.key WHERE w.judge = {mark}) AS assigned"
    )
