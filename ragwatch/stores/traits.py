"""Traits of answers in the database: stored with the draw, read by time, erased with its texts."""

from __future__ import annotations

from ragwatch.core.causes.traits import Traits, traits_of, without_texts
from ragwatch.core.sample import Draw
from ragwatch.errors import StoreError
from ragwatch.ports import AnswerQuery, ScoreRow
from ragwatch.stores.kept_texts import Texts
from ragwatch.stores.rows import SCORE_COLUMNS, ScoreCells, pack, raises_store_error, score_row, unpack


def traits_body(draw: Draw, texts: Texts) -> bytes:
    """The stored traits of a draw, as far as `store.texts` allows."""
    return pack(traits_of(draw.sample, texts=texts is Texts.ALL))


def reduced(body: bytes) -> bytes | None:
    """Stored traits without texts; None if they contain none. Damaged traits become empty."""
    try:
        stored = unpack(body)
        kept = without_texts(stored)
    except (StoreError, LookupError, TypeError, AttributeError):
        return b""
    return None if kept == stored else pack(kept)


def answers_statement(
    query: AnswerQuery, *, mark: str, scores: str, place: str, unbiased: str
) -> tuple[str, list[object]]:
    """Return SQL and parameters of a page of judged answers; `answer_of` decodes the rows.

    Args:
        query: Which ones.
        mark: Placeholder of a parameter.
        scores: Expression of the scores as text.
        place: Placeholders of time and sequence number.
        unbiased: Condition that leaves out times of which retention has deleted some answers.
    """
    columns = ", ".join(scores if name == "scores" else f"v.{name}" for name in SCORE_COLUMNS.split(", "))
    where = [f"v.at >= {mark}", f"v.at < {mark}", "v.outcome = 'judged'", unbiased]
    parameters: list[object] = [query.since, query.until]
    for condition, values in (
        (f"v.route = {mark}", None if query.route is None else (query.route,)),
        (f"v.judge = {mark}", None if query.judge is None else (query.judge,)),
        (f"(v.at, v.seq) < ({place})", query.before),
    ):
        if values is not None:
            where.append(condition)
            parameters += values
    sql = (
        f"SELECT {columns}, t.body FROM verdicts v LEFT JOIN traits t ON t.key = v.key"  # noqa: S608 - constants
        f" WHERE {' AND '.join(where)} ORDER BY v.at DESC, v.seq DESC LIMIT {mark}"
    )
    return sql, [*parameters, query.limit]


@raises_store_error
def answer_of(row: tuple[*ScoreCells, bytes | None]) -> tuple[ScoreRow, Traits | None]:
    """Decode a row of `answers_statement`; damaged traits are None, as if there were none."""
    body, traits = row[-1], None
    if body is not None:
        try:
            traits = unpack(body)
        except StoreError:
            traits = None
    return score_row(row[:-1]), traits
