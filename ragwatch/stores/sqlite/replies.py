"""SQL statements of raw replies of LLM judges. Rows of deleted verdicts go by a trigger."""

from __future__ import annotations

from collections.abc import Iterable

from ragwatch.core.verdict import Verdict
from ragwatch.stores.answer_terms import Rules
from ragwatch.stores.replies import replies_to_store
from ragwatch.stores.sqlite.sqlite_writer import SqliteWriter

BY_SEQ = "SELECT body FROM replies WHERE seq = ?"
_INSERT = "INSERT INTO replies (seq, key, body) SELECT seq, key, seal(?) FROM verdicts WHERE key = ? AND judge = ?"
_DELETE = "DELETE FROM replies WHERE seq IN (SELECT seq FROM verdicts WHERE key = ?)"


def add(writer: SqliteWriter, verdicts: Iterable[Verdict], rules: Rules) -> None:
    """Add the replies behind verdicts, within the transaction that stores these."""
    for key, judge, body in replies_to_store(verdicts, rules.texts):
        writer.execute(_INSERT, (body, key, judge))


def remove(writer: SqliteWriter, key: str) -> None:
    """Remove the replies about an answer."""
    writer.execute(_DELETE, (key,))
