"""Builds the Grafana dashboards, which `ragwatch rules --dashboards` writes; nothing else in ragwatch uses them.

Five read series of the recording rules where replicas are summed, and series of the exporter elsewhere. One reads the
views of a PostgreSQL store.
"""

from ragwatch.rules.dashboards import answer_boards as answers
from ragwatch.rules.dashboards import cause_boards as causes
from ragwatch.rules.dashboards.board import board
from ragwatch.rules.dashboards.panel import PLACEHOLDER, BoardPlan, Feature
from ragwatch.rules.dashboards.query import Json
from ragwatch.rules.dashboards.sql_board import FILE as SQL_FILE
from ragwatch.rules.dashboards.sql_board import sql_board

__all__ = ["PLACEHOLDER", "SQL_FILE", "BoardPlan", "Feature", "Json", "boards", "sql_board"]

_BOARDS = (
    ("Overview", "Answer quality, the stage at fault, and how both have changed.", answers.overview),
    ("Retrieval", "Retrieval quality from canaries, judged answers and traffic signals.", causes.retrieval),
    ("Generation", "How faithfully and completely the generator answers from its contexts.", answers.generation),
    ("Judges", "Calls, coverage, cost and reliability of the judges.", causes.judges),
    ("Operation", "Health of ragwatch itself: reading, sampling, background loops.", causes.operation),
)


def boards(plan: BoardPlan) -> dict[str, Json]:
    """Builds the dashboards, by file name. Panels that the configured judges can never fill are left out."""
    return {f"{title.lower()}.json": board(title, description, rows(), plan) for title, description, rows in _BOARDS}
