"""Boards: the five dashboards. They read recorded series, so they need the rules but no configuration."""

from __future__ import annotations

from ragwatch.exporter.oncall import boards_answers as answers
from ragwatch.exporter.oncall import boards_causes as causes
from ragwatch.exporter.oncall.board import board
from ragwatch.exporter.oncall.panel import Json

_BOARDS = (
    ("overview", "Overview", "Is it good, which stage is at fault, since when.", answers.overview),
    ("retrieval", "Retrieval", "Does the retriever find what it must, and do answers use it.", causes.retrieval),
    ("generation", "Generation", "What the generator makes of its contexts.", answers.generation),
    ("judges", "Judges", "What judging costs, what it misses, how far to trust it.", causes.judges),
    ("operation", "Operation", "Does ragwatch itself run.", causes.operation),
)


def boards(pages: str) -> dict[str, Json]:
    """Dashboards by file name.

    Args:
        pages: Address of ragwatch's own pages, for links.
    """
    return {f"{uid}.json": board(uid, title, told, rows(), pages) for uid, title, told, rows in _BOARDS}
