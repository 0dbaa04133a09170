"""Builds the five Grafana dashboards in `grafana/dashboards`; ragwatch never imports this.

They read series of the recording rules, so they need no configuration of their own.
"""

from __future__ import annotations

from tools.dashboards import boards_answers as answers
from tools.dashboards import boards_causes as causes
from tools.dashboards.board import board
from tools.dashboards.panel import Json

__all__ = ["boards"]

_BOARDS = (
    ("overview", "Overview", "Answer quality, the stage at fault, and how both have changed.", answers.overview),
    (
        "retrieval",
        "Retrieval",
        "Retrieval quality from canaries, judged answers and traffic signals.",
        causes.retrieval,
    ),
    (
        "generation",
        "Generation",
        "How faithfully and completely the generator answers from its contexts.",
        answers.generation,
    ),
    ("judges", "Judges", "Calls, coverage, cost and reliability of the judges.", causes.judges),
    ("operation", "Operation", "Health of ragwatch itself: reading, sampling, background loops.", causes.operation),
)


def boards(pages: str) -> dict[str, Json]:
    """Builds the dashboards, by file name.

    Args:
        pages: URL of the ragwatch pages, for links.
    """
    return {f"{uid}.json": board(uid, title, description, rows(), pages) for uid, title, description, rows in _BOARDS}
