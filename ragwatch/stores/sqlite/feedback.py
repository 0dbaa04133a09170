"""SQL statements of feedback: what users say of answers, of which the last one on each answer counts.

Feedback may arrive before its answer. It then waits for an hour, after which it counts as feedback on an unknown one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ragwatch.core.feedback import FeedbackOutcome, joining_outcome
from ragwatch.core.tally import Tallies, Tally
from ragwatch.ports import Admission, Feedback, ScoreRow
from ragwatch.stores import rows
from ragwatch.stores.sqlite import statements
from ragwatch.stores.sqlite.retention import LIVE
from ragwatch.stores.sqlite.sqlite_writer import SqliteWriter

EARLY_SECONDS = 3600.0
MAX_EARLY = 10_000
AFTER = "SELECT seq, answered FROM feedback WHERE seq > ? ORDER BY seq LIMIT ?"
OF_SAMPLE = "SELECT score, at FROM feedback WHERE key = ? AND score IS NOT NULL"
SCORES_SINCE = "SELECT key, score FROM feedback WHERE answered >= ? AND score IS NOT NULL"
RATED = (
    f"SELECT {rows.SCORE_COLUMNS}, (SELECT f.score FROM feedback f WHERE f.key = verdicts.key) FROM verdicts"  # noqa: S608 - constants only
    " WHERE key IN (SELECT f.key FROM feedback f WHERE f.answered >= ? AND f.answered < ? AND f.score IS NOT NULL)"
    f" AND {LIVE} ORDER BY verdicts.seq"
)


def write(writer: SqliteWriter, admission: Admission, new: Iterable[str], tallies: Tallies) -> None:
    """Store the feedback of an admission, and that which waited for one of its new samples; count what became of it."""
    for key in new:
        _join_early(writer, key, tallies)
    received = admission.at or 0.0
    for one in admission.feedback:
        outcome = _add(writer, one, received)
        if outcome is not None:
            tallies[Tally.FEEDBACK, (one.source, outcome)] += 1


def _join_early(writer: SqliteWriter, key: str, tallies: Tallies) -> None:
    early = writer.execute("DELETE FROM early_feedback WHERE key = ? RETURNING name, source, at, score", (key,))
    for name, source, at, score in early.fetchall():
        writer.execute("DELETE FROM early_feedback WHERE name = ?", (name,))
        for answered in writer.execute("SELECT at FROM samples WHERE key = ?", (key,)).fetchall():
            tallies[Tally.FEEDBACK, (source, _store(writer, key, *answered, at=at, score=score))] += 1


def _add(writer: SqliteWriter, one: Feedback, received: float) -> FeedbackOutcome | None:
    """Store one feedback. Returns what became of it; None while it waits for its answer, and no earlier one does."""
    marks = ", ".join("?" * len(one.keys))
    samples = writer.execute(f"SELECT key, at FROM samples WHERE key IN ({marks})", one.keys).fetchall()  # noqa: S608 - question marks
    if samples:
        outcomes = [_store(writer, key, answered, at=one.at, score=one.score) for key, answered in samples]
        return outcomes[0]
    if writer.execute("SELECT COUNT(*) FROM early_feedback").fetchone()[0] >= MAX_EARLY:
        return FeedbackOutcome.UNKNOWN_ANSWER
    waiting = f"SELECT name, at, score FROM early_feedback WHERE key IN ({marks}) ORDER BY at DESC LIMIT 1"  # noqa: S608 - question marks
    earlier = writer.execute(waiting, one.keys).fetchone()
    name = one.keys[0] if earlier is None else earlier[0]
    writer.executemany(
        "INSERT INTO early_feedback VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (key) DO UPDATE"
        " SET at = excluded.at, score = excluded.score WHERE excluded.at >= early_feedback.at",
        [(key, name, one.source, one.at, one.score, received) for key in one.keys],
    )
    return None if earlier is None else joining_outcome(earlier[1:], one.at, one.score)


def _store(writer: SqliteWriter, key: str, answered: float, *, at: float, score: float) -> FeedbackOutcome:
    """Store feedback on a stored sample, unless there is a later one, or the same."""
    old = writer.execute("SELECT at, score FROM feedback WHERE key = ?", (key,)).fetchone()
    outcome = joining_outcome(old, at, score)
    if outcome in (FeedbackOutcome.JOINED, FeedbackOutcome.REPLACED):
        writer.execute(
            "INSERT OR REPLACE INTO feedback (key, at, score, answered) VALUES (?, ?, ?, ?)", (key, at, score, answered)
        )
    return outcome


def expire(writer: SqliteWriter, now: float) -> int:
    """Delete feedback whose answer did not arrive, and count it. Returns how much."""
    gone = writer.execute(
        "DELETE FROM early_feedback WHERE received < ? OR received > ? RETURNING name, source",
        (now - EARLY_SECONDS, now + EARLY_SECONDS),
    ).fetchall()
    unknown = FeedbackOutcome.UNKNOWN_ANSWER
    statements.add_tallies(writer, Counter((Tally.FEEDBACK, (source, unknown)) for _, source in set(gone)))
    return len(gone)


def erase(writer: SqliteWriter, key: str) -> None:
    """Erase the feedback on a sample; what remains refuses further feedback on it."""
    writer.execute("DELETE FROM early_feedback WHERE key = ?", (key,))
    writer.execute(
        "INSERT OR REPLACE INTO feedback (key, at, score, answered)"
        " SELECT key, 0.0, NULL, at FROM samples WHERE key = ?",
        (key,),
    )


@rows.raises_store_error
def rated_row(row: tuple[*rows.ScoreCells, float]) -> tuple[ScoreRow, float]:
    """Decode a row of `RATED`: the score row of a verdict, and the score by the user."""
    return rows.score_row(row[:-1]), rows.number(row[-1])
