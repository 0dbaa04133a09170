"""Traits of answers in the database: stored with the draw, read by time, erased with its texts."""

from __future__ import annotations

from ragwatch.core.causes.traits import Traits, traits_of, without_texts
from ragwatch.core.sample import Draw
from ragwatch.errors import StoreError
from ragwatch.ports import ScoreRow
from ragwatch.stores.kept_texts import Texts
from ragwatch.stores.rows import ScoreCells, pack, raises_store_error, score_row, unpack


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


@raises_store_error
def answer_of(row: tuple[*ScoreCells, bytes | None]) -> tuple[ScoreRow, Traits | None]:
    """Decode a row of `queries.answers_statement`; damaged traits are None, as if there were none."""
    body, traits = row[-1], None
    if body is not None:
        try:
            traits = unpack(body)
        except StoreError:
            traits = None
    return score_row(row[:-1]), traits
